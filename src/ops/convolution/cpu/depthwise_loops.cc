#include "ops/convolution/cpu/depthwise_loops.h"

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
#define ANYDML_TAP(weight, offset)                               \
  {                                                              \
    const float* const from = numbers + (offset) + i;            \
    s0 = hn::MulAdd(weight, hn::LoadU(d, from), s0);             \
    s1 = hn::MulAdd(weight, hn::LoadU(d, from + lanes), s1);     \
    s2 = hn::MulAdd(weight, hn::LoadU(d, from + 2 * lanes), s2); \
    s3 = hn::MulAdd(weight, hn::LoadU(d, from + 3 * lanes), s3); \
  }

#define ANYDML_STORE_SUMS                  \
  hn::StoreU(s0, d, sums + i);             \
  hn::StoreU(s1, d, sums + i + lanes);     \
  hn::StoreU(s2, d, sums + i + 2 * lanes); \
  hn::StoreU(s3, d, sums + i + 3 * lanes);

// 3x3: weights stay in registers.
void AddNineTaps(const float* HWY_RESTRICT numbers, const uint64_t* HWY_RESTRICT offsets,
                 const float* HWY_RESTRICT weights, float start, float* HWY_RESTRICT sums, uint64_t count) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const auto w0 = hn::Set(d, weights[0]), w1 = hn::Set(d, weights[1]), w2 = hn::Set(d, weights[2]),
             w3 = hn::Set(d, weights[3]), w4 = hn::Set(d, weights[4]), w5 = hn::Set(d, weights[5]),
             w6 = hn::Set(d, weights[6]), w7 = hn::Set(d, weights[7]), w8 = hn::Set(d, weights[8]);
  const uint64_t o0 = offsets[0], o1 = offsets[1], o2 = offsets[2], o3 = offsets[3], o4 = offsets[4],
                 o5 = offsets[5], o6 = offsets[6], o7 = offsets[7], o8 = offsets[8];
  const auto first = hn::Set(d, start);
  for (uint64_t i = 0; i < count; i += 4 * lanes) {
    auto s0 = first, s1 = first, s2 = first, s3 = first;
    ANYDML_TAP(w0, o0)
    ANYDML_TAP(w1, o1)
    ANYDML_TAP(w2, o2)
    ANYDML_TAP(w3, o3)
    ANYDML_TAP(w4, o4)
    ANYDML_TAP(w5, o5)
    ANYDML_TAP(w6, o6)
    ANYDML_TAP(w7, o7)
    ANYDML_TAP(w8, o8)
    ANYDML_STORE_SUMS
  }
}

void AddAnyTaps(const float* HWY_RESTRICT numbers, const uint64_t* HWY_RESTRICT offsets,
                const float* HWY_RESTRICT weights, uint32_t taps, float start, float* HWY_RESTRICT sums,
                uint64_t count) {
  if (taps == 9) return AddNineTaps(numbers, offsets, weights, start, sums, count);
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  for (uint64_t i = 0; i < count; i += 4 * lanes) {
    auto s0 = hn::Set(d, start), s1 = s0, s2 = s0, s3 = s0;
    for (uint32_t t = 0; t < taps; ++t) {
      const auto weight = hn::Set(d, weights[t]);
      ANYDML_TAP(weight, offsets[t])
    }
    ANYDML_STORE_SUMS
  }
}

#undef ANYDML_TAP
#undef ANYDML_STORE_SUMS

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(AddAnyTaps);
}  // namespace

void AddTaps(const float* numbers, const uint64_t* offsets, const float* weights, uint32_t taps, float start,
             float* sums, uint64_t count) {
  HWY_DYNAMIC_DISPATCH(AddAnyTaps)(numbers, offsets, weights, taps, start, sums, count);
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {

void AddTaps(const float* numbers, const uint64_t* offsets, const float* weights, uint32_t taps, float start,
             float* sums, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) sums[i] = start;
  for (uint32_t t = 0; t < taps; ++t) {
    const float* const from = numbers + offsets[t];
    for (uint64_t i = 0; i < count; ++i) sums[i] += weights[t] * from[i];
  }
}

}  // namespace anydml
#endif
