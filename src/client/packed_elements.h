// Contiguous elements of a tensor. 4-bit elements are two to a byte, the first in its lower half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/data_type.h"

namespace anydml::client {

constexpr bool IsFourBits(DataType type) { return BitSize(type) == 4; }

// The type of elements that take a byte each, before packing and after unpacking: UINT8 for UINT4, INT8 for
// INT4, and every other type for itself.
constexpr DataType Unpacked(DataType type) {
  return type == DataType::kUInt4 ? DataType::kUInt8 : type == DataType::kInt4 ? DataType::kInt8 : type;
}

// The size of `count` elements.
constexpr uint64_t PackedBytes(DataType type, uint64_t count) {
  return IsFourBits(type) ? count / 2 + count % 2 : count * (BitSize(type) / 8);
}

// A 4-bit element as a number.
int32_t FourBits(DataType type, const std::byte* data, uint64_t index);

// Converts elements of type Unpacked(type) to `type`; changes only 4-bit ones.
void Pack(DataType type, std::vector<std::byte>* elements);
// The reverse. `type` has four bits.
std::vector<std::byte> Unpack(DataType type, std::span<const std::byte> data, uint64_t count);

}  // namespace anydml::client
