// Kernel parameters of a copy between tensors of the same sizes and type on a GPU, executed by blocks of
// threads. Bytes between the target's elements stay unchanged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/device/units.h"

namespace anydml {

// By default copies nothing.
struct DeviceCopy {
  enum Operand { kFrom, kTo };

  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint32_t unit_bytes = kMaxUnitBytes;
  uint32_t units = 0;
  uint32_t tail_bytes = 0;  // bytes after the units of a contiguous copy; less than a unit
  bool contiguous = true;
  DeviceNest<2> nest;  // in units
};

// The loops of a copy in elements, in the order of the target's addresses, because scattered reads cost less
// than scattered writes.
inline LoopNest<2> CopyNest(const TensorDesc& from, const TensorDesc& to) {
  LoopNest<2> nest;
  for (uint32_t d = 0; d < to.rank; ++d) nest.Append(to.sizes[d], {from.strides[d], to.strides[d]});
  return SortedByStride(nest, DeviceCopy::kTo);
}

// A copy without addresses; `addresses` is the bitwise or of those that it will get.
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

// One unit per thread: with more, or with blocks that loop, copies were slower on an H200.
inline uint64_t CopyBlocks(const DeviceCopy& copy, uint32_t threads) {
  const uint64_t units = uint64_t{copy.units} + (copy.tail_bytes > 0 ? 1 : 0);
  return CeilDivide(units, threads);
}

}  // namespace anydml
