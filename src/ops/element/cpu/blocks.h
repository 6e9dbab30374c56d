// Moving elements between tensors and registers, with the conversions between data types and classes.
#pragma once

#include <cstdint>

#include "base/data_type.h"
#include "ops/element/function.h"

namespace anydml {

// rows x columns elements. In a register they are packed, row by row, or rows that are loaded are
// `register_stride` apart; in a tensor they are strides apart, in elements, from element `offset` on.
struct Block {
  uint64_t rows = 1;
  uint64_t columns = 1;
  uint64_t row_stride = 0;
  uint64_t column_stride = 1;
  uint64_t offset = 0;
  uint64_t register_stride = 0;  // 0: packed
  bool goes_on = false;          // the next block, from memory too, has the next columns
};

// Elements of the largest block across a tensor that is read well.
inline constexpr uint64_t kMaxAcross = 32768;

using LoadBlock = void (*)(const void* tensor, const Block& block, void* to);
using StoreBlock = void (*)(const void* from, const Block& block, void* tensor);

// Null where no program needs the pair.
LoadBlock FindLoad(DataType from, Class to);
StoreBlock FindStore(Class from, DataType to);

// Conversion of `count` numbers between registers, which may be the same; `range` as kConvert's.
void ConvertRegister(Class from, Class to, DataType range, const void* source, void* target, uint64_t count);

// Whether a register's bytes are those of an element, so that no conversion is needed.
bool SameBytes(DataType type, Class c);

}  // namespace anydml
