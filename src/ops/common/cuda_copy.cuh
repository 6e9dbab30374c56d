// Elements of one tensor to another of the same sizes and type, on a device and by blocks of
// threads: bit for bit (StridedCopy) or through a function. Bytes between the target's elements
// stay as they are.
#pragma once

#include "ops/common/cuda_units.cuh"
#include "ops/device/nest.h"

namespace anydml {

// What a kernel is given. A default one copies nothing.
struct DeviceCopy {
  enum Operand { kFrom, kTo };

  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint32_t unit_bytes = kMaxUnitBytes;
  uint32_t units = 0;
  uint32_t tail_bytes = 0;  // behind the units of a contiguous copy; fewer than a unit
  bool contiguous = true;
  DeviceNest<2> nest;  // in units
};

// The loops of a copy, in elements; in the order of the target's addresses, since scattered
// reads cost less than scattered writes.
inline LoopNest<2> CopyNest(const TensorDesc& from, const TensorDesc& to) {
  LoopNest<2> nest;
  for (uint32_t d = 0; d < to.rank; ++d) nest.Append(to.sizes[d], {from.strides[d], to.strides[d]});
  return SortedByStride(nest, DeviceCopy::kTo);
}

// A copy without a place. `addresses`: those that it will have, or-ed together.
inline DeviceCopy MakeDeviceCopy(const LoopNest<2>& nest, uint32_t element_bytes, uint64_t addresses) {
  DeviceCopy copy;
  copy.contiguous = nest.rank <= 1 && InnermostIsContiguous(nest);
  if (copy.contiguous) {
    const uint64_t bytes = Iterations(nest) * element_bytes;
    copy.unit_bytes = LargestUnit(addresses);
    copy.units = static_cast<uint32_t>(bytes / copy.unit_bytes);
    copy.tail_bytes = static_cast<uint32_t>(bytes % copy.unit_bytes);
  } else {
    copy.unit_bytes = LargestUnit(addresses | UnitConstraints(nest, element_bytes));
    const LoopNest<2> in_units = InUnits(nest, copy.unit_bytes / element_bytes);
    copy.units = static_cast<uint32_t>(Iterations(in_units));
    copy.nest = DeviceNest<2>(in_units);
  }
  return copy;
}

inline DeviceCopy MakeDeviceCopy(const LoopNest<2>& nest, uint32_t element_bytes, const std::byte* from,
                                 std::byte* to) {
  DeviceCopy copy = MakeDeviceCopy(nest, element_bytes, AddressOf(from) | AddressOf(to));
  copy.from = from;
  copy.to = to;
  return copy;
}

// A unit per thread: with more, as with blocks that go on and on, copies of an H200 were slower.
inline uint64_t CopyBlocks(const DeviceCopy& copy, uint32_t threads) {
  const uint64_t units = uint64_t{copy.units} + (copy.tail_bytes > 0 ? 1 : 0);
  return (units + threads - 1) / threads;
}

// The function of a plain copy.
struct KeepBits {};

template <typename Element, typename Function, typename Unit>
__device__ Unit MapUnit(Unit unit, Function f) {
  if constexpr (std::is_same_v<Function, KeepBits>) {
    return unit;
  } else {
    struct alignas(Unit) {
      Element elements[sizeof(Unit) / sizeof(Element)];
    } all;
    memcpy(&all, &unit, sizeof(Unit));
#pragma unroll
    for (Element& element : all.elements) element = f(element);
    memcpy(&unit, &all, sizeof(Unit));
    return unit;
  }
}

// Input and output may be the same memory.
template <typename Element, typename Unit, typename Function>
__device__ void MapUnitNumber(const DeviceCopy& copy, const std::byte* from, std::byte* to, uint64_t number,
                              Function f) {
  if (number >= copy.units) return;
  uint64_t offsets[2] = {number, number};
  if (!copy.contiguous) copy.nest.OffsetsOf(static_cast<uint32_t>(number), offsets);
  // Not read again: leaves the cache first.
  const Unit unit = __ldcs(reinterpret_cast<const Unit*>(from) + offsets[DeviceCopy::kFrom]);
  reinterpret_cast<Unit*>(to)[offsets[DeviceCopy::kTo]] = MapUnit<Element>(unit, f);
}

// What block number `block` of CopyBlocks does: f for every element.
template <typename Element, typename Function>
__device__ void MapBlock(const DeviceCopy& copy, const std::byte* from, std::byte* to, uint64_t block,
                         Function f) {
  DispatchByUnit(copy.unit_bytes, [&]<typename Unit>() {
    if constexpr (sizeof(Unit) >= sizeof(Element)) {
      MapUnitNumber<Element, Unit>(copy, from, to, block * blockDim.x + threadIdx.x, f);
    }
  });
  if (block == 0 && threadIdx.x < copy.tail_bytes / sizeof(Element)) {
    const uint64_t units_end = uint64_t{copy.units} * copy.unit_bytes;
    const auto* source = reinterpret_cast<const Element*>(from + units_end);
    auto* target = reinterpret_cast<Element*>(to + units_end);
    target[threadIdx.x] = MapUnit<Element>(source[threadIdx.x], f);
  }
}

template <typename Element, typename Function>
__device__ void MapBlock(const DeviceCopy& copy, uint64_t block, Function f) {
  MapBlock<Element>(copy, copy.from, copy.to, block, f);
}

__device__ inline void CopyBlock(const DeviceCopy& copy, uint64_t block) {
  MapBlock<uint8_t>(copy, block, KeepBits{});
}

}  // namespace anydml
