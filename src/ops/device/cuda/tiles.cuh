// Tiles in a block's memory (ops/device/tiles.h), 16 bytes at a time.
#pragma once

#include <cstring>
#include <type_traits>

#include "ops/device/tiles.h"

namespace anydml {

// Element `number` of each of several words, side by side: 16 bytes.
template <typename T, typename Word>
__device__ uint4 PackColumn(const Word (&words)[16 / sizeof(T)], uint32_t number) {
  if constexpr (sizeof(T) == 8) {
    return {static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[0] >> 32),
            static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[1] >> 32)};
  } else if constexpr (sizeof(T) == 4) {
    return {words[0], words[1], words[2], words[3]};
  } else if constexpr (sizeof(T) == 2) {
    const uint32_t halves = number == 0 ? 0x5410 : 0x7632;
    return {__byte_perm(words[0], words[1], halves), __byte_perm(words[2], words[3], halves),
            __byte_perm(words[4], words[5], halves), __byte_perm(words[6], words[7], halves)};
  } else {
    const uint32_t two = number | (4 + number) << 4;  // byte `number` of either word
    const auto four = [&](uint32_t i) {
      return __byte_perm(__byte_perm(words[i], words[i + 1], two),
                         __byte_perm(words[i + 2], words[i + 3], two), 0x5410);
    };
    return {four(0), four(4), four(8), four(12)};
  }
}

// Both sides are accessed by 16 bytes, four vectors per thread. The tile consists of words of at least 4
// bytes: a thread reads as many words, from as many columns, as make 16 contiguous bytes of the target.
template <typename T, uint32_t kColumns_ = TransposeTileOf(sizeof(T)).columns>
class VectorTile {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

 public:
  static constexpr uint32_t kRows = TransposeTileOf(sizeof(T)).rows, kColumns = kColumns_;
  static constexpr uint32_t kVector = 16 / sizeof(T);  // elements
  static constexpr uint32_t kLoads = 4;                // vectors per thread
  static constexpr uint32_t kThreads = kRows * kColumns / kVector / kLoads;
  static constexpr uint32_t kPerStore = sizeof(Word) / sizeof(T);  // vectors of the target from one set of
                                                                   // words
  static constexpr uint32_t kStores = kLoads / kPerStore;

  struct Place {
    uint32_t row, column;
  };

  // The place of the thread's vector `i` of the source, which lies along a column. A warp has 128 bytes of
  // each of four columns.
  __device__ static Place LoadPlace(uint32_t i) {
    const uint32_t lane = threadIdx.x % 32, slot = (i * kWarps + threadIdx.x / 32) * 4 + lane / 8;
    return {(slot / kColumns * 8 + lane % 8) * kVector, slot % kColumns};
  }
  __device__ void Put(uint32_t i, const uint4& vector) {
    const Place place = LoadPlace(i);
    Word parts[16 / sizeof(Word)];
    memcpy(parts, &vector, sizeof(parts));
#pragma unroll
    for (uint32_t w = 0; w < 16 / sizeof(Word); ++w)
      words_[At(place.column, place.row / kPerStore + w)] = parts[w];
  }

  // The place of the first of the target's vectors `i`; the others are in the rows below. A warp writes whole
  // lines of 128 bytes, in the rows of four words.
  __device__ static Place StorePlace(uint32_t i) {
    const uint32_t lane = threadIdx.x % 32, task = i * kWarps + threadIdx.x / 32;
    return {(task / kColumnGroups * 4 + lane / 8) * kPerStore,
            (task % kColumnGroups * 8 + lane % 8) * kVector};
  }
  __device__ void Get(uint32_t i, uint4 (&vectors)[kPerStore]) const {
    const Place place = StorePlace(i);
    Word words[kVector];
#pragma unroll
    for (uint32_t k = 0; k < kVector; ++k) words[k] = words_[At(place.column + k, place.row / kPerStore)];
#pragma unroll
    for (uint32_t e = 0; e < kPerStore; ++e) vectors[e] = PackColumn<T>(words, e);
  }

 private:
  static constexpr uint32_t kRowWords = kRows / kPerStore, kWarps = kThreads / 32;
  static constexpr uint32_t kColumnGroups = kColumns / (8 * kVector);  // of a line each
  static_assert(kRowWords % 32 == 0 && kColumns % 32 == 0 && kLoads % kPerStore == 0);
  static_assert(kStores * kWarps == kColumnGroups * (kRowWords / 4));

  // Neither side has bank conflicts: each column begins one bank after the previous one, plus four after 32
  // columns, since the eight columns that a warp reads at a time are up to 16 apart.
  __device__ static uint32_t At(uint32_t column, uint32_t word) {
    return column * (kRowWords + 1) + column / 32 * 4 + word;
  }

  Word words_[kColumns * (kRowWords + 1) + kColumns / 32 * 4];
};

}  // namespace anydml
