#include "ops/product/depthwise_loops.h"

#include <cmath>
#include <cstring>
#include <limits>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/depthwise_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Four vectors of sums, because an addition waits for the previous one.
#define ANYDML_TAPS_OF_FOUR(weight, offset)                      \
  {                                                              \
    const float* const from = numbers + (offset) + x;            \
    s0 = hn::MulAdd(weight, hn::LoadU(d, from), s0);             \
    s1 = hn::MulAdd(weight, hn::LoadU(d, from + lanes), s1);     \
    s2 = hn::MulAdd(weight, hn::LoadU(d, from + 2 * lanes), s2); \
    s3 = hn::MulAdd(weight, hn::LoadU(d, from + 3 * lanes), s3); \
  }
#define ANYDML_TAPS_OF_ONE(weight, offset) s0 = hn::MulAdd(weight, hn::LoadU(d, numbers + (offset) + x), s0);

// How sums are clipped before they are stored.
enum Clip { kAsTheyAre, kNotBelow, kBetween };

// +0 is larger than -0, and NaNs are kept.
template <Clip kClip>
HWY_INLINE hn::Vec<D> Clipped(D d, hn::Vec<D> sum, hn::Vec<D> low, hn::Vec<D> high) {
  if (kClip == kAsTheyAre) return sum;
#if HWY_TARGET == HWY_NEON  // has instructions for this; Highway's Max and Min treat NaNs differently
  const hn::Vec<D> y{vmaxq_f32(sum.raw, low.raw)};
  return kClip == kBetween ? hn::Vec<D>{vminq_f32(y.raw, high.raw)} : y;
#else
  const auto y = hn::IfThenElse(hn::Le(sum, low), low, sum);
  return kClip == kBetween ? hn::IfThenElse(hn::Ge(y, high), high, y) : y;
#endif
}

// Rows by vectors; the last vector of a row may overlap the one before. `all_taps` calls its argument for
// each tap.
#define ANYDML_ADD_ROWS(all_taps)                                                   \
  for (uint64_t y = 0; y < rows; ++y, numbers += band.pitch, sums += sums_pitch) {  \
    uint64_t x = 0;                                                                 \
    for (; x + 4 * lanes <= columns; x += 4 * lanes) {                              \
      auto s0 = first, s1 = first, s2 = first, s3 = first;                          \
      all_taps(ANYDML_TAPS_OF_FOUR);                                                \
      s0 = Clipped<kClip>(d, s0, low, high);                                        \
      s1 = Clipped<kClip>(d, s1, low, high);                                        \
      s2 = Clipped<kClip>(d, s2, low, high);                                        \
      s3 = Clipped<kClip>(d, s3, low, high);                                        \
      if (kClip != kAsTheyAre) seen = hn::MulAdd(s2, s3, hn::MulAdd(s0, s1, seen)); \
      hn::StoreU(s0, d, sums + x);                                                  \
      hn::StoreU(s1, d, sums + x + lanes);                                          \
      hn::StoreU(s2, d, sums + x + 2 * lanes);                                      \
      hn::StoreU(s3, d, sums + x + 3 * lanes);                                      \
    }                                                                               \
    while (x < columns) {                                                           \
      if (x + lanes > columns && columns >= lanes) x = columns - lanes;             \
      auto s0 = first;                                                              \
      all_taps(ANYDML_TAPS_OF_ONE);                                                 \
      s0 = Clipped<kClip>(d, s0, low, high);                                        \
      if (kClip != kAsTheyAre) seen = hn::Add(seen, s0);                            \
      if (columns >= lanes) {                                                       \
        hn::StoreU(s0, d, sums + x);                                                \
      } else {                                                                      \
        alignas(64) float some[hn::MaxLanes(D())];                                  \
        hn::StoreU(s0, d, some);                                                    \
        std::memcpy(sums, some, columns * sizeof(float));                           \
      }                                                                             \
      x += lanes;                                                                   \
    }                                                                               \
  }

template <Clip kClip>
bool AddSomeTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* HWY_RESTRICT sums,
                 uint64_t sums_pitch) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const auto low = hn::Set(d, band.low), high = hn::Set(d, band.high);
  auto seen = hn::Zero(d);  // a sum of everything: NaN if any result is
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
    return kClip != kAsTheyAre && !hn::AllFalse(d, hn::IsNaN(seen));
  }
#define ANYDML_ALL_TAPS(V)                   \
  for (uint32_t t = 0; t < band.taps; ++t) { \
    const auto weight = hn::Set(d, w[t]);    \
    V(weight, o[t])                          \
  }
  ANYDML_ADD_ROWS(ANYDML_ALL_TAPS)
  return kClip != kAsTheyAre && !hn::AllFalse(d, hn::IsNaN(seen));
}

bool AddAnyTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums,
                uint64_t sums_pitch) {
  if (!band.clips) return AddSomeTaps<kAsTheyAre>(band, rows, columns, sums, sums_pitch);
  if (band.high == std::numeric_limits<float>::infinity())
    return AddSomeTaps<kNotBelow>(band, rows, columns, sums, sums_pitch);
  return AddSomeTaps<kBetween>(band, rows, columns, sums, sums_pitch);
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

bool AddTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums, uint64_t sums_pitch) {
  return HWY_DYNAMIC_DISPATCH(AddAnyTaps)(band, rows, columns, sums, sums_pitch);
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {

// Clips nothing, so there is nothing to report about NaNs.
bool AddTaps(const DepthwiseBand& band, uint64_t rows, uint64_t columns, float* sums, uint64_t sums_pitch) {
  for (uint64_t y = 0; y < rows; ++y) {
    float* const row = sums + y * sums_pitch;
    for (uint64_t x = 0; x < columns; ++x) row[x] = band.start;
    for (uint32_t t = 0; t < band.taps; ++t) {
      const float* const from = band.numbers + y * band.pitch + band.offsets[t];
      for (uint64_t x = 0; x < columns; ++x) row[x] += band.weights[t] * from[x];
    }
  }
  return band.clips;
}

}  // namespace anydml
#endif
