// Operations on words that all kernels share.
#pragma once

#include "ops/top_k/cuda/key.cuh"

namespace anydml {

template <typename Word>
__device__ Word ShuffleXor(Word word, int lanes) {
  if constexpr (sizeof(Word) <= 8) {
    return __shfl_xor_sync(~0u, word, lanes);
  } else {
    const uint64_t low = __shfl_xor_sync(~0u, static_cast<uint64_t>(word), lanes);
    const uint64_t high = __shfl_xor_sync(~0u, static_cast<uint64_t>(word >> 64), lanes);
    return Word{high} << 64 | low;
  }
}

template <typename Word>
__device__ int BitWidth(Word word) {
  if constexpr (sizeof(Word) <= 8) {
    return 64 - __clzll(word);
  } else {
    const auto high = static_cast<uint64_t>(word >> 64);
    return high != 0 ? 128 - __clzll(high) : 64 - __clzll(static_cast<uint64_t>(word));
  }
}

template <typename Word>
__device__ Word Worse(Word a, Word b) {
  return a < b ? a : b;
}
template <typename Word>
__device__ Word Better(Word a, Word b) {
  return a < b ? b : a;
}

template <typename Word>
struct WordRange {
  Word worst;
  Word best;
};

}  // namespace anydml
