// Sorts candidates that are one word each (NarrowCandidate): larger is better.
#pragma once

#include <cstdint>

#include "ops/top_k/candidate.h"

namespace anydml {

// SortBlocks expects sorted blocks of this many; the last block has the remainder.
inline constexpr uint32_t kSortedBlock = 32;

// Sorts `count` words that are sorted in blocks of kSortedBlock. Returns the place of the result: `words` or
// `other`, which both have `count` places.
uint64_t* MergeBlocks(uint64_t* words, uint32_t count, uint64_t* other);

// Sorts by the upper half of the words; equal ones keep their order. Returns the place of the result. For
// many words.
uint64_t* RadixSortWords(uint64_t* words, uint32_t count, uint64_t* other);

}  // namespace anydml
