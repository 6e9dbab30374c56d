// This file is compiled for AVX2 with VNNI, which processors without AVX-512 have: it must not contain
// anything that the linker could share with other files.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__AVXVNNI__)
#include <cpuid.h>
#include <immintrin.h>

#include "ops/integer_product/cpu/dot_tile.h"

namespace anydml {
namespace {

struct Words256 : WholeWords {
  using Vector = __m256i;
  static constexpr uint32_t kLanes = 8;
  static ANYDML_DOT_BODY Vector Zero() { return _mm256_setzero_si256(); }
  static ANYDML_DOT_BODY Vector Load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static ANYDML_DOT_BODY Vector Repeat(const int8_t* word, uint32_t) {
    int32_t bytes;
    __builtin_memcpy(&bytes, word, sizeof(bytes));
    return _mm256_set1_epi32(bytes);
  }
  static ANYDML_DOT_BODY Vector Dot(Vector sums, Vector columns, Vector row) {
    return _mm256_dpbusd_avx_epi32(sums, columns, row);
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

constexpr DotKernels kKernels = DotKernelsOf<Words256, 6, 2>();

// Not all compilers that know the instructions have a name for the feature.
bool HasAvxVnni() {
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

}  // namespace

const DotKernels* FindAvxVnniDot() { return HasAvxVnni() ? &kKernels : nullptr; }

}  // namespace anydml

#else

namespace anydml {
const DotKernels* FindAvxVnniDot() { return nullptr; }
}  // namespace anydml
#endif
