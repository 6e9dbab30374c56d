// Moving a block of a tensor in which the columns' elements are neighbours.
#pragma once

#include <cstdint>

namespace anydml {

// to[r * columns + c] = from[c * column_stride + r], for elements of 32 and of 16 bits.
void TransposeBlock(const uint32_t* from, uint64_t column_stride, uint64_t rows, uint64_t columns,
                    uint32_t* to);
void TransposeBlock(const uint16_t* from, uint64_t column_stride, uint64_t rows, uint64_t columns,
                    uint16_t* to);

}  // namespace anydml
