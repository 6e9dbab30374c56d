// Elements of a tensor one after the other, as they lie in memory. Of those of four bits there are two in a
// byte, the first in its lower half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/data_type.h"

namespace anydml::tools {

constexpr bool IsFourBits(DataType type) { return BitSize(type) == 4; }

// The type of elements that have a byte each, before they are packed and after they are unpacked: UINT8 for
// UINT4, INT8 for INT4, and every other type for itself.
constexpr DataType Unpacked(DataType type) {
  return type == DataType::kUInt4 ? DataType::kUInt8 : type == DataType::kInt4 ? DataType::kInt8 : type;
}

// Of so many elements.
constexpr uint64_t PackedBytes(DataType type, uint64_t count) {
  return IsFourBits(type) ? count / 2 + count % 2 : count * (BitSize(type) / 8);
}

// One of four bits, as a number.
int32_t FourBits(DataType type, const std::byte* data, uint64_t index);

// Elements of the type Unpacked(type) become elements of `type`; nothing happens unless those have four bits.
void Pack(DataType type, std::vector<std::byte>* elements);
// And back. `type` has four bits.
std::vector<std::byte> Unpack(DataType type, std::span<const std::byte> data, uint64_t count);

}  // namespace anydml::tools
