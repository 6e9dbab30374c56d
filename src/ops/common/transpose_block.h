// Moving a block of a tensor in which the columns' elements are neighbours.
#pragma once

#include <cstdint>

namespace anydml {

// to[r * to_stride + c] = from[c * from_stride + r], for elements of 32 and of 16 bits. Strides may be
// negative. `streams`: past the caches (see StreamCopy); rows of `to` begin at lines of 64 bytes.
void TransposeBlock(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, bool streams);
void TransposeBlock(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint16_t* to,
                    int64_t to_stride, bool streams);

}  // namespace anydml
