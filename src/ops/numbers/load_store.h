// Moves elements between tensors and registers, converting between data types and classes.
#pragma once

#include <cstdint>

#include "base/data_type.h"
#include "ops/element/function.h"

namespace anydml {

// A block of rows x columns elements. In a register it is packed, row by row, or has loaded rows
// `register_stride` apart; in a tensor it has strides, in elements, and begins at element `offset`.
struct Block {
  uint64_t rows = 1;
  uint64_t columns = 1;
  uint64_t row_stride = 0;
  uint64_t column_stride = 1;
  uint64_t offset = 0;
  uint64_t register_stride = 0;  // 0: packed
  bool goes_on = false;          // the next block has the next columns of the same memory
};

// The largest block that reads a transposed tensor efficiently, in elements.
inline constexpr uint64_t kMaxAcross = 32768;

using LoadBlock = void (*)(const void* tensor, const Block& block, void* to);
using StoreBlock = void (*)(const void* from, const Block& block, void* tensor);

// Null if no program needs this conversion.
LoadBlock FindLoad(DataType from, Class to);
StoreBlock FindStore(Class from, DataType to);

// Converts `count` numbers between registers, which may be the same; `range` as kConvert's.
void ConvertRegister(Class from, Class to, DataType range, const void* source, void* target, uint64_t count);

// Whether a register holds the same bytes as the elements, so that no conversion is needed.
bool SameBytes(DataType type, Class c);

}  // namespace anydml
