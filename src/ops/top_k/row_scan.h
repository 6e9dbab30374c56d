// The vectorised passes over a packed row of elements of up to 32 bits (Highway, with
// run-time dispatch).
#pragma once

#include <cstdint>

#include "ops/top_k/candidate.h"

namespace anydml {

// ScanRow stops while at least this many places are free.
inline constexpr uint64_t kScanSlack = 4096;

// Longer than any vector.
inline constexpr uint32_t kShortestRow = 512;

struct ScanEnd {
  uint32_t position;   // elements before it have been looked at
  NarrowCandidate* last;  // end of the candidates
};

// Appends the elements of row[begin, n) whose key is at least `threshold`, in
// order, until the row ends or fewer than kScanSlack places are left before `end`.
// Keys are OrderedBits<T> (`largest`) or their complement; n is at least kShortestRow.
template <typename T>
ScanEnd ScanRow(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t n, uint32_t threshold,
                bool largest, NarrowCandidate* out, NarrowCandidate* end);

// Deals the row out to some groups and writes the key of an element of each that no
// element of the group surpasses (for NaN: that no number surpasses). Returns the
// number of groups, at most kMaxGroups; 0 when the row is too short for this
// machine's vectors to make groups of 8 or more.
inline constexpr uint32_t kMaxGroups = 256;
template <typename T>
uint32_t GroupBests(const UnsignedOf<sizeof(T)>* row, uint32_t n, bool largest, uint32_t* keys);

}  // namespace anydml
