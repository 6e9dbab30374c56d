#include "ops/convolution/cpu/depthwise_loops.h"

#include <cstring>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/convolution/cpu/depthwise_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Four vectors of sums, since an addition waits for the one before it.
#define ANYDML_TAPS_OF_FOUR(weight, offset)                      \
  {                                                              \
    const float* const from = numbers + (offset) + x;            \
    s0 = hn::MulAdd(weight, hn::LoadU(d, from), s0);             \
    s1 = hn::MulAdd(weight, hn::LoadU(d, from + lanes), s1);     \
    s2 = hn::MulAdd(weight, hn::LoadU(d, from + 2 * lanes), s2); \
    s3 = hn::MulAdd(weight, hn::LoadU(d, from + 3 * lanes), s3); \
  }
#define ANYDML_TAPS_OF_ONE(weight, offset) s0 = hn::MulAdd(weight, hn::LoadU(d, numbers + (offset) + x), s0);

// Rows by vectors; the last vector of a row may begin among what is done already. `all_taps` calls what it is
// given for each tap.
#define ANYDML_ADD_ROWS(all_taps)                                                  \
  for (uint64_t y = 0; y < rows; ++y, numbers += band.pitch, sums += sums_pitch) { \
    uint64_t x = 0;                                                                \
    for (; x + 4 * lanes <= columns; x += 4 * lanes) {                             \
      auto s0 = first, s1 = first, s2 = first, s3 = first;                         \
      all_taps(ANYDML_TAPS_OF_FOUR);                                               \
      hn::StoreU(s0, d, sums + x);                                                 \
      hn::StoreU(s1, d, sums + x + lanes);                                         \
      hn::StoreU(s2, d, sums + x + 2 * lanes);                                     \
      hn::StoreU(s3, d, sums + x + 3 * lanes);                                     \
    }                                                                              \
    while (x < columns) {                                                          \
      if (x + lanes > columns && columns >= lanes) x = columns - lanes;            \
      auto s0 = first;                                                             \
      all_taps(ANYDML_TAPS_OF_ONE);                                                \
      if (columns >= lanes) {                                                      \
        hn::StoreU(s0, d, sums + x);                                               \
      } else {                                                                     \
        alignas(64) float some[hn::MaxLanes(D())];                                 \
        hn::StoreU(s0, d, some);                                                   \
        std::memcpy(sums, some, columns * sizeof(float));                          \
      }                                                                            \
      x += lanes;                                                                  \
    }                                                                              \
  }

void AddAnyTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* HWY_RESTRICT sums,
                uint64_t sums_pitch) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const auto first = hn::Set(d, band.start);
  const float* HWY_RESTRICT numbers = band.numbers;
  const uint64_t* const o = band.offsets;
  const float* const w = band.weights;
  if (band.taps == 9) {  // 3x3: weights stay in registers
    const auto w0 = hn::Set(d, w[0]), w1 = hn::Set(d, w[1]), w2 = hn::Set(d, w[2]), w3 = hn::Set(d, w[3]),
               w4 = hn::Set(d, w[4]), w5 = hn::Set(d, w[5]), w6 = hn::Set(d, w[6]), w7 = hn::Set(d, w[7]),
               w8 = hn::Set(d, w[8]);
    const uint64_t o0 = o[0], o1 = o[1], o2 = o[2], o3 = o[3], o4 = o[4], o5 = o[5], o6 = o[6], o7 = o[7],
                   o8 = o[8];
#define ANYDML_NINE_TAPS(V) \
  V(w0, o0) V(w1, o1) V(w2, o2) V(w3, o3) V(w4, o4) V(w5, o5) V(w6, o6) V(w7, o7) V(w8, o8)
    ANYDML_ADD_ROWS(ANYDML_NINE_TAPS)
    return;
  }
#define ANYDML_ALL_TAPS(V)                   \
  for (uint32_t t = 0; t < band.taps; ++t) { \
    const auto weight = hn::Set(d, w[t]);    \
    V(weight, o[t])                          \
  }
  ANYDML_ADD_ROWS(ANYDML_ALL_TAPS)
}

#undef ANYDML_ADD_ROWS
#undef ANYDML_ALL_TAPS
#undef ANYDML_NINE_TAPS
#undef ANYDML_TAPS_OF_FOUR
#undef ANYDML_TAPS_OF_ONE

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(AddAnyTaps);
}  // namespace

void AddTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums, uint64_t sums_pitch) {
  HWY_DYNAMIC_DISPATCH(AddAnyTaps)(band, rows, columns, sums, sums_pitch);
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {

void AddTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums, uint64_t sums_pitch) {
  for (uint64_t y = 0; y < rows; ++y) {
    float* const row = sums + y * sums_pitch;
    for (uint64_t x = 0; x < columns; ++x) row[x] = band.start;
    for (uint32_t t = 0; t < band.taps; ++t) {
      const float* const from = band.numbers + y * band.pitch + band.offsets[t];
      for (uint64_t x = 0; x < columns; ++x) row[x] += band.weights[t] * from[x];
    }
  }
}

}  // namespace anydml
#endif
