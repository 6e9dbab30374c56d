// The K best of each of several adjacent sequences, a lane per sequence: element i of sequence c is data[i *
// stride + c].
#pragma once

#include "ops/top_k/cpu/row_select.h"

namespace anydml {

// Sequences per call of SelectColumns: this many, or a quarter.
template <typename T>
uint32_t ColumnBlock();
inline constexpr uint32_t kMaxColumnBlock = 256;

// What a block needs besides the RowScratch: hits of every sequence, and maxima of groups.
inline uint32_t ColumnHits(const RowQuery& query) { return 2 * query.k + 64; }
template <typename T>
uint64_t ColumnScratchBytes(const RowQuery& query);

// order[c * K + j]: the indices of the K best of sequence c, best first. `query` must suit kMaxima. False,
// with nothing written, if a bound lets too many elements pass (ties, NaNs).
template <typename T>
bool SelectColumns(const UnsignedOf<sizeof(T)>* data, uint64_t stride, uint32_t columns,
                   const RowQuery& query, std::byte* scratch, uint32_t* order);

}  // namespace anydml
