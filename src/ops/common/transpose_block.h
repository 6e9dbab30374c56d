// Transposes a block of a tensor: the source is contiguous along its columns.
#pragma once

#include <cstdint>

namespace anydml {

// The target of a block: a tile in a cache; consecutive tiles, of consecutive columns; a tensor; or a tensor
// by streaming (see StreamCopy), whose rows begin at cache lines.
enum class TransposeTo : uint8_t { kTile, kTiles, kTensor, kStream };

// to[r * to_stride + c] = from[c * from_stride + r], for elements of 32 and of 16 bits. Strides may be
// negative.
void TransposeBlock(const uint32_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint32_t* to,
                    int64_t to_stride, TransposeTo where);
void TransposeBlock(const uint16_t* from, int64_t from_stride, uint64_t rows, uint64_t columns, uint16_t* to,
                    int64_t to_stride, TransposeTo where);

}  // namespace anydml
