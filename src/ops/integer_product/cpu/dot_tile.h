// Tiles of sums of byte products on x86, and few-row versions for all processors, written once for all
// instruction sets. For files that are compiled for one of them: nothing here is shared with others.
//
// V, the vectors:
//   Vector, of kLanes sums or of as many words of four bytes
//   Zero(), Load(from), Put(sums, to, accumulate)
//   kParts: the number of instructions that multiply a word, each with a part of its bytes
//   Part(words, part): of words with unsigned bytes
//   Memory: kWordsAtATime words of each row in the form for Repeat, if packed words do not have it
//   Rows(packed, words, memory): the place of these words
//   Repeat(row, part): a word with signed bytes in all lanes; a row has kParts words
//   Dot(sums, part of words with unsigned bytes, result of Repeat)
//   Flip(bytes, flip): exclusive or
//   LowBytes, HighBytes, LowPairs, HighPairs: interleave bytes or pairs of two vectors, from the first or
//   second halves of every 16 bytes
#pragma once

#include <cstdint>

#include "ops/integer_product/cpu/dot_kernel.h"

#define ANYDML_DOT_BODY inline __attribute__((always_inline))

namespace anydml {
namespace {

// As MicroKernel::Run, with the first kUsed vectors of columns.
template <class V, uint32_t kRows, uint32_t kUsed>
void RunDotTile(const float* a_words, const float* b_words, uint64_t b_stride, uint64_t steps, float* to,
                uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& /*ahead*/) {
  const auto* a = reinterpret_cast<const int8_t*>(a_words);
  const auto* b = reinterpret_cast<const uint8_t*>(b_words);
  auto* const sums = reinterpret_cast<int32_t*>(to);
  // Prefetches the sums to add to, which come from a distant cache and are needed last.
  for (uint32_t i = 0; i < kRows; ++i) {
    __builtin_prefetch(sums + i * to_stride);
    __builtin_prefetch(sums + i * to_stride + kUsed * V::kLanes - 1);
  }
  typename V::Vector c[kRows][kUsed];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (uint32_t v = 0; v < kUsed; ++v) c[i][v] = V::Zero();
  }
  typename V::template Memory<kRows> memory;
  for (uint64_t done = 0; done < steps; done += V::kWordsAtATime) {
    const uint64_t some = steps - done < V::kWordsAtATime ? steps - done : V::kWordsAtATime;
    const int8_t* rows = V::Rows(a + done * kRows * kStepsOfWord, some * kRows, memory);
    for (uint64_t step = 0; step < some; ++step) {
#pragma GCC unroll 2
      for (uint32_t part = 0; part < V::kParts; ++part) {
        typename V::Vector columns[kUsed];
#pragma GCC unroll 3
        for (uint32_t v = 0; v < kUsed; ++v) {
          columns[v] = V::Part(V::Load(b + v * V::kLanes * kStepsOfWord), part);
        }
#pragma GCC unroll 8
        for (uint32_t i = 0; i < kRows; ++i) {
          const auto row = V::Repeat(rows + i * V::kParts * kStepsOfWord, part);
#pragma GCC unroll 3
          for (uint32_t v = 0; v < kUsed; ++v) c[i][v] = V::Dot(c[i][v], columns[v], row);
        }
      }
      rows += kRows * V::kParts * kStepsOfWord;
      b += b_stride * kStepsOfWord;
    }
  }
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (uint32_t v = 0; v < kUsed; ++v) V::Put(c[i][v], sums + i * to_stride + v * V::kLanes, accumulate);
  }
}

// Four rows of bytes as words: a vector has four of every 16 columns.
template <class V>
ANYDML_DOT_BODY void LoadFewWords(const uint8_t* const* rows, uint64_t column, uint8_t flip,
                                  typename V::Vector (&words)[4]) {
  typename V::Vector r[kStepsOfWord];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kStepsOfWord; ++i) r[i] = V::Flip(V::Load(rows[i] + column), flip);
  const auto low = V::LowBytes(r[0], r[1]), low2 = V::LowBytes(r[2], r[3]);
  const auto high = V::HighBytes(r[0], r[1]), high2 = V::HighBytes(r[2], r[3]);
  words[0] = V::LowPairs(low, low2);
  words[1] = V::HighPairs(low, low2);
  words[2] = V::LowPairs(high, high2);
  words[3] = V::HighPairs(high, high2);
}

// As FewDot::Add.
template <class V>
void AddFewRows(const int8_t (*a)[kFewSteps], uint32_t rows, const FewBytes& bytes, uint64_t count,
                int32_t* sums, uint64_t sums_stride) {
  constexpr uint32_t kWords = kFewSteps / kStepsOfWord;
  typename V::template Memory<kMaxFewRows> memory;
  const int8_t* const x = V::Rows(a[0], rows * kWords, memory);
  for (uint64_t column = 0; column < count; column += 4 * V::kLanes, sums += 4 * V::kLanes) {
    typename V::Vector words[kWords][4];
#pragma GCC unroll 2
    for (uint32_t w = 0; w < kWords; ++w)
      LoadFewWords<V>(bytes.b + w * kStepsOfWord, column, bytes.flip, words[w]);
    // Other rows are on other pages, to which hardware prefetch does not go.
    constexpr uint64_t kLine = 64;
    for (uint32_t i = 0; bytes.ahead != 0 && column % kLine == 0 && i < kFewSteps; ++i) {
      __builtin_prefetch(bytes.b[i] + bytes.ahead + column, 0, 2);
    }
    for (uint32_t row = 0; row < rows; ++row) {
      int32_t* const to = sums + row * sums_stride;
      typename V::Vector c[4];
#pragma GCC unroll 4
      for (uint32_t v = 0; v < 4; ++v) c[v] = V::Load(to + v * V::kLanes);
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kWords * V::kParts; ++p) {
        const auto repeated =
            V::Repeat(x + (row * kWords + p / V::kParts) * V::kParts * kStepsOfWord, p % V::kParts);
#pragma GCC unroll 4
        for (uint32_t v = 0; v < 4; ++v) {
          c[v] = V::Dot(c[v], V::Part(words[p / V::kParts][v], p % V::kParts), repeated);
        }
      }
#pragma GCC unroll 4
      for (uint32_t v = 0; v < 4; ++v) V::Put(c[v], to + v * V::kLanes, false);
    }
  }
}

// For kVectors vectors of columns, 2 or 3.
template <class V, uint32_t kRows, uint32_t kVectors>
constexpr MicroKernel DotTileOf() {
  MicroKernel kernel = {kRows, kVectors * V::kLanes, V::kLanes, &RunDotTile<V, kRows, kVectors>, {}};
  kernel.narrow[0] = &RunDotTile<V, kRows, 1>;
  if constexpr (kVectors > 2) kernel.narrow[1] = &RunDotTile<V, kRows, 2>;
  kernel.bytes = true;
  return kernel;
}
template <class V, uint32_t kRows, uint32_t kVectors>
constexpr DotKernels DotKernelsOf() {
  return {{DotTileOf<V, kRows, kVectors>()}, {DotTileOf<V, 1, kVectors>()}, {4 * V::kLanes, &AddFewRows<V>}};
}

// For vectors that multiply whole words of bytes as packed.
struct WholeWords {
  static constexpr uint32_t kParts = 1;
  static constexpr uint64_t kWordsAtATime = ~uint64_t{0};
  template <uint32_t>
  struct Memory {};
  template <class Vector>
  static ANYDML_DOT_BODY Vector Part(Vector words, uint32_t) {
    return words;
  }
  template <class Memory>
  static ANYDML_DOT_BODY const int8_t* Rows(const int8_t* packed, uint64_t, Memory&) {
    return packed;
  }
};

}  // namespace
}  // namespace anydml
