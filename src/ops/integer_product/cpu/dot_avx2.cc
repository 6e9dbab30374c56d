// This file is compiled for AVX2: it must not contain anything that the linker could share with other files.
// The instruction that multiplies bytes saturates sums of two products. So bytes are extended to 16 bits, and
// pairs are multiplied and added: first the bytes at even places of a word, then those at odd ones.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__AVX2__)
#include <immintrin.h>

#include "ops/integer_product/cpu/dot_tile.h"

namespace anydml {
namespace {

struct Pairs256 {
  using Vector = __m256i;
  static constexpr uint32_t kLanes = 8, kParts = 2;
  static constexpr uint64_t kWordsAtATime = 64;

  static ANYDML_DOT_BODY Vector Zero() { return _mm256_setzero_si256(); }
  static ANYDML_DOT_BODY Vector Load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static ANYDML_DOT_BODY Vector Part(Vector words, uint32_t part) {
    return part == 0 ? _mm256_and_si256(words, _mm256_set1_epi16(0xFF)) : _mm256_srli_epi16(words, 8);
  }

  // For each word, its even bytes as a word, then its odd ones.
  template <uint32_t kRows>
  struct Memory {
    alignas(32) int8_t bytes[(kWordsAtATime * kRows + kLanes) * kParts * kStepsOfWord];
  };
  template <class Memory>
  static ANYDML_DOT_BODY const int8_t* Rows(const int8_t* packed, uint64_t words, Memory& memory) {
    int8_t* to = memory.bytes;
    uint64_t i = 0;
    for (; i + kLanes <= words; i += kLanes, packed += sizeof(Vector), to += 2 * sizeof(Vector)) {
      Put2(Load(packed), to);
    }
    if (i < words) {
      alignas(32) int8_t rest[sizeof(Vector)] = {};
      __builtin_memcpy(rest, packed, (words - i) * kStepsOfWord);
      Put2(Load(rest), to);
    }
    return memory.bytes;
  }
  static ANYDML_DOT_BODY void Put2(Vector words, int8_t* to) {
    const Vector even = _mm256_srai_epi16(_mm256_slli_epi16(words, 8), 8), odd = _mm256_srai_epi16(words, 8);
    const Vector low = _mm256_unpacklo_epi32(even, odd), high = _mm256_unpackhi_epi32(even, odd);
    auto* const vectors = reinterpret_cast<__m256i*>(to);
    _mm256_store_si256(vectors, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_store_si256(vectors + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
  static ANYDML_DOT_BODY Vector Repeat(const int8_t* row, uint32_t part) {
    int32_t numbers;
    __builtin_memcpy(&numbers, row + part * kStepsOfWord, sizeof(numbers));
    return _mm256_set1_epi32(numbers);
  }

  static ANYDML_DOT_BODY Vector Dot(Vector sums, Vector columns, Vector row) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(columns, row));
    asm(""
        : "+x"(sums));  // keeps GCC from adding all products of a word first, for which there are not
                        // enough registers
    return sums;
  }
  static ANYDML_DOT_BODY Vector Flip(Vector bytes, uint8_t flip) {
    return _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(flip)));
  }
  static ANYDML_DOT_BODY Vector LowBytes(Vector a, Vector b) { return _mm256_unpacklo_epi8(a, b); }
  static ANYDML_DOT_BODY Vector HighBytes(Vector a, Vector b) { return _mm256_unpackhi_epi8(a, b); }
  static ANYDML_DOT_BODY Vector LowPairs(Vector a, Vector b) { return _mm256_unpacklo_epi16(a, b); }
  static ANYDML_DOT_BODY Vector HighPairs(Vector a, Vector b) { return _mm256_unpackhi_epi16(a, b); }
  static ANYDML_DOT_BODY void Put(Vector sums, int32_t* to, bool accumulate) {
    if (accumulate) sums = _mm256_add_epi32(Load(to), sums);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
  }
};

constexpr DotKernels kKernels = DotKernelsOf<Pairs256, 6, 2>();

}  // namespace

const DotKernels* FindAvx2Dot() { return __builtin_cpu_supports("avx2") ? &kKernels : nullptr; }

}  // namespace anydml

#else

namespace anydml {
const DotKernels* FindAvx2Dot() { return nullptr; }
}  // namespace anydml
#endif
