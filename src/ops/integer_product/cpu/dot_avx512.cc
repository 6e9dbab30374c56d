// This file is compiled for AVX-512 with VNNI: it must not contain anything that the linker could share with
// other files. Highway has no operation for these instructions, and its matching target requires more than
// they need.
#include "ops/integer_product/cpu/dot_kernel.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "ops/integer_product/cpu/dot_tile.h"

namespace anydml {
namespace {

struct Words512 : WholeWords {
  using Vector = __m512i;
  static constexpr uint32_t kLanes = 16;
  static ANYDML_DOT_BODY Vector Zero() { return _mm512_setzero_si512(); }
  static ANYDML_DOT_BODY Vector Load(const void* from) { return _mm512_loadu_si512(from); }
  static ANYDML_DOT_BODY Vector Repeat(const int8_t* word, uint32_t) {
    int32_t bytes;
    __builtin_memcpy(&bytes, word, sizeof(bytes));
    return _mm512_set1_epi32(bytes);
  }
  static ANYDML_DOT_BODY Vector Dot(Vector sums, Vector columns, Vector row) {
    return _mm512_dpbusd_epi32(sums, columns, row);
  }
  static ANYDML_DOT_BODY Vector Flip(Vector bytes, uint8_t flip) {
    return _mm512_xor_si512(bytes, _mm512_set1_epi8(static_cast<char>(flip)));
  }
  static ANYDML_DOT_BODY Vector LowBytes(Vector a, Vector b) { return _mm512_unpacklo_epi8(a, b); }
  static ANYDML_DOT_BODY Vector HighBytes(Vector a, Vector b) { return _mm512_unpackhi_epi8(a, b); }
  static ANYDML_DOT_BODY Vector LowPairs(Vector a, Vector b) { return _mm512_unpacklo_epi16(a, b); }
  static ANYDML_DOT_BODY Vector HighPairs(Vector a, Vector b) { return _mm512_unpackhi_epi16(a, b); }
  static ANYDML_DOT_BODY void Put(Vector sums, int32_t* to, bool accumulate) {
    if (accumulate) sums = _mm512_add_epi32(Load(to), sums);
    _mm512_storeu_si512(to, sums);
  }
};

constexpr DotKernels kKernels = DotKernelsOf<Words512, 8, 3>();

}  // namespace

const DotKernels* FindAvx512Dot() {
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vnni")) return nullptr;
  return &kKernels;
}

}  // namespace anydml

#else

namespace anydml {
const DotKernels* FindAvx512Dot() { return nullptr; }
}  // namespace anydml
#endif
