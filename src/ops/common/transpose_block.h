// Moving a block of a tensor in which the columns' elements are neighbours.
#pragma once

#include <cstdint>

namespace anydml {

// Where a block goes: to a tile in a cache; to one after the other, each from the columns behind the last
// one's; to a tensor; or past the caches (see StreamCopy), to rows that begin at lines of 64 bytes.
enum class TransposeTo : uint8_t { kTile, kTiles, kTensor, kStream };

// to[r * to_stride + c] = from[c * from_stride + r], for elements of 32 and of 16 bits. Strides may be
// negative.
void TransposeBlock(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, TransposeTo where);
void TransposeBlock(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint16_t* to,
                    int64_t to_stride, TransposeTo where);

}  // namespace anydml
