// Does what ops/device/copy.h says, bit for bit or through a function.
#pragma once

#include <cstring>
#include <type_traits>

#include "ops/device/copy.h"
#include "ops/device/cuda/units.cuh"

namespace anydml {

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
  // Not read again: evicted first.
  const Unit unit = __ldcs(reinterpret_cast<const Unit*>(from) + offsets[DeviceCopy::kFrom]);
  reinterpret_cast<Unit*>(to)[offsets[DeviceCopy::kTo]] = MapUnit<Element>(unit, f);
}

// The work of block `block` of CopyBlocks: applies f to every element.
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
