// Units: up to 16 bytes of neighbouring elements that a GPU thread moves at one time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/common/loop_nest.h"

namespace anydml {

inline constexpr uint32_t kMaxUnitBytes = 16;

// The largest unit that divides all of `bytes` (addresses, strides and lengths, or-ed together).
inline uint32_t LargestUnit(uint64_t bytes) {
  const uint64_t lowest_bit = bytes & (~bytes + 1);
  return lowest_bit == 0 || lowest_bit > kMaxUnitBytes ? kMaxUnitBytes : static_cast<uint32_t>(lowest_bit);
}

inline uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Whether the innermost loop is contiguous for every operand.
template <size_t kOperands>
bool InnermostIsContiguous(const LoopNest<kOperands>& nest) {
  if (nest.rank == 0) return true;
  for (uint64_t stride : nest.loops[nest.rank - 1].strides) {
    if (stride != 1) return false;
  }
  return true;
}

// The strides and the length of the innermost loop in bytes, or-ed together. A unit that divides them can
// walk `nest`.
template <size_t kOperands>
uint64_t UnitConstraints(const LoopNest<kOperands>& nest, uint32_t element_bytes) {
  if (nest.rank == 0 || !InnermostIsContiguous(nest)) return element_bytes;
  uint64_t bytes = nest.loops[nest.rank - 1].size * element_bytes;
  for (uint32_t d = 0; d + 1 < nest.rank; ++d) {
    for (uint64_t stride : nest.loops[d].strides) bytes |= stride * element_bytes;
  }
  return bytes;
}

// The same nest with `elements` contiguous elements merged into one; UnitConstraints must allow it. Strides
// may be negative, as two's complement.
template <size_t kOperands>
LoopNest<kOperands> InUnits(LoopNest<kOperands> nest, uint32_t elements) {
  if (elements == 1) return nest;
  nest.loops[nest.rank - 1].size /= elements;
  for (uint32_t d = 0; d + 1 < nest.rank; ++d) {
    for (uint64_t& stride : nest.loops[d].strides) {
      stride = static_cast<uint64_t>(static_cast<int64_t>(stride) / static_cast<int64_t>(elements));
    }
  }
  return nest;
}

// Whether operand `written` of `nest` can be written kMaxUnitBytes at a time if it begins at a multiple of
// kMaxUnitBytes.
template <size_t kOperands>
bool HasWholeUnits(const LoopNest<kOperands>& nest, size_t written, uint32_t element_bytes) {
  if (nest.rank == 0 || nest.loops[nest.rank - 1].strides[written] != 1) return false;
  uint64_t bytes = nest.loops[nest.rank - 1].size * element_bytes;
  for (uint32_t d = 0; d + 1 < nest.rank; ++d) bytes |= nest.loops[d].strides[written] * element_bytes;
  return bytes % kMaxUnitBytes == 0;
}

// Makes `nest` loop over units of that many neighbours in the innermost loop; returns the strides between
// neighbours.
template <size_t kOperands>
typename LoopNest<kOperands>::Offsets TakeUnits(LoopNest<kOperands>* nest, uint32_t elements) {
  auto& inner = nest->loops[nest->rank - 1];
  const auto step = inner.strides;
  inner.size /= elements;
  for (uint64_t& stride : inner.strides) stride *= elements;
  return step;
}

}  // namespace anydml
