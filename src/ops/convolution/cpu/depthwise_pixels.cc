#include "ops/convolution/cpu/depthwise_pixels.h"

#include <cmath>
#include <limits>

#include "base/half.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/convolution/cpu/depthwise_pixels.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using PixelTag = hn::ScalableTag<float>;
using PixelVector = hn::Vec<PixelTag>;

#include "ops/numbers/clip_vectors-inl.h"
#include "ops/numbers/half_vectors-inl.h"

HWY_INLINE PixelVector LoadInput(PixelTag d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE PixelVector LoadInput(PixelTag d, const uint16_t* from) { return LoadHalves(d, from); }

HWY_INLINE PixelVector ClipPixel(PixelTag d, PixelVector sum, const DepthwisePixels& p) {
  return p.clips ? ClipVector(d, sum, hn::Set(d, p.low), hn::Set(d, p.high)) : sum;
}

// Channels [c, c + kVectors vectors) of one pixel.
template <uint32_t kVectors, typename T>
HWY_INLINE void OnePixel(const DepthwisePixels& p, uint64_t c) {
  static_assert(kVectors == 1 || kVectors == 4);
  constexpr bool kFour = kVectors == 4;
  const PixelTag d;
  const size_t lanes = hn::Lanes(d);
  const T* const input = static_cast<const T*>(p.input) + c;
  const float* const start = p.start + c;
  auto s0 = hn::LoadU(d, start);
  auto s1 = kFour ? hn::LoadU(d, start + lanes) : s0;
  auto s2 = kFour ? hn::LoadU(d, start + 2 * lanes) : s0;
  auto s3 = kFour ? hn::LoadU(d, start + 3 * lanes) : s0;
  for (uint32_t t = 0; t < p.tap_count; ++t) {
    const T* const x = input + static_cast<ptrdiff_t>(p.taps[t].offset);
    const float* const w = p.taps[t].weights + c;
    s0 = hn::MulAdd(LoadInput(d, x), hn::LoadU(d, w), s0);
    if constexpr (kFour) {
      s1 = hn::MulAdd(LoadInput(d, x + lanes), hn::LoadU(d, w + lanes), s1);
      s2 = hn::MulAdd(LoadInput(d, x + 2 * lanes), hn::LoadU(d, w + 2 * lanes), s2);
      s3 = hn::MulAdd(LoadInput(d, x + 3 * lanes), hn::LoadU(d, w + 3 * lanes), s3);
    }
  }
  float* const to = p.sums + c;
  hn::StoreU(ClipPixel(d, s0, p), d, to);
  if constexpr (kFour) {
    hn::StoreU(ClipPixel(d, s1, p), d, to + lanes);
    hn::StoreU(ClipPixel(d, s2, p), d, to + 2 * lanes);
    hn::StoreU(ClipPixel(d, s3, p), d, to + 3 * lanes);
  }
}

// Channels [c, c + kVectors vectors) of kDepthwisePixels pixels: weights are loaded once for all of them and,
// with taps in threes, inputs once for all pixels that use them.
template <uint32_t kVectors, bool kThrees, typename T>
HWY_INLINE void FourPixels(const DepthwisePixels& p, uint64_t c) {
  static_assert(kDepthwisePixels == 4 && (kVectors == 1 || kVectors == 2));
  constexpr bool kTwo = kVectors == 2;
  const PixelTag d;
  const size_t lanes = hn::Lanes(d);
  const T* const input = static_cast<const T*>(p.input) + c;
  const uint64_t stride = p.input_stride;
  const auto start = hn::LoadU(d, p.start + c), start1 = kTwo ? hn::LoadU(d, p.start + c + lanes) : start;
  auto a0 = start, a1 = start, a2 = start, a3 = start;
  auto b0 = start1, b1 = start1, b2 = start1, b3 = start1;
#define ANYDML_FOUR_SUMS(s, w, x0, x1, x2, x3) \
  s##0 = hn::MulAdd(x0, w, s##0);              \
  s##1 = hn::MulAdd(x1, w, s##1);              \
  s##2 = hn::MulAdd(x2, w, s##2);              \
  s##3 = hn::MulAdd(x3, w, s##3);
#define ANYDML_THREE_TAPS(s, at)                                                                           \
  {                                                                                                        \
    const auto x0 = LoadInput(d, x + (at)), x1 = LoadInput(d, x + stride + (at)),                          \
               x2 = LoadInput(d, x + 2 * stride + (at)), x3 = LoadInput(d, x + 3 * stride + (at)),         \
               x4 = LoadInput(d, x + 4 * stride + (at)), x5 = LoadInput(d, x + 5 * stride + (at));         \
    const auto w0 = hn::LoadU(d, tap[0].weights + c + (at)), w1 = hn::LoadU(d, tap[1].weights + c + (at)), \
               w2 = hn::LoadU(d, tap[2].weights + c + (at));                                               \
    ANYDML_FOUR_SUMS(s, w0, x0, x1, x2, x3)                                                                \
    ANYDML_FOUR_SUMS(s, w1, x1, x2, x3, x4)                                                                \
    ANYDML_FOUR_SUMS(s, w2, x2, x3, x4, x5)                                                                \
  }
#define ANYDML_ONE_TAP(s, at)                                                                  \
  {                                                                                            \
    const auto w = hn::LoadU(d, tap->weights + c + (at));                                      \
    ANYDML_FOUR_SUMS(s, w, LoadInput(d, x + (at)), LoadInput(d, x + stride + (at)),            \
                     LoadInput(d, x + 2 * stride + (at)), LoadInput(d, x + 3 * stride + (at))) \
  }
  for (const DepthwiseTap* tap = p.taps; tap != p.taps + p.tap_count; tap += kThrees ? 3 : 1) {
    const T* const x = input + static_cast<ptrdiff_t>(tap->offset);
    if constexpr (kThrees) {
      ANYDML_THREE_TAPS(a, 0)
      if constexpr (kTwo) ANYDML_THREE_TAPS(b, lanes)
    } else {
      ANYDML_ONE_TAP(a, 0)
      if constexpr (kTwo) ANYDML_ONE_TAP(b, lanes)
    }
  }
#undef ANYDML_FOUR_SUMS
#undef ANYDML_THREE_TAPS
#undef ANYDML_ONE_TAP
  float *const to0 = p.sums + c, *const to1 = to0 + p.sums_stride, *const to2 = to1 + p.sums_stride,
               *const to3 = to2 + p.sums_stride;
  hn::StoreU(ClipPixel(d, a0, p), d, to0);
  hn::StoreU(ClipPixel(d, a1, p), d, to1);
  hn::StoreU(ClipPixel(d, a2, p), d, to2);
  hn::StoreU(ClipPixel(d, a3, p), d, to3);
  if constexpr (kTwo) {
    hn::StoreU(ClipPixel(d, b0, p), d, to0 + lanes);
    hn::StoreU(ClipPixel(d, b1, p), d, to1 + lanes);
    hn::StoreU(ClipPixel(d, b2, p), d, to2 + lanes);
    hn::StoreU(ClipPixel(d, b3, p), d, to3 + lanes);
  }
}

// False if there are fewer channels than lanes. The last vector may overlap the one before.
template <typename T>
bool ChannelsOfPixel(const DepthwisePixels& p) {
  const uint64_t lanes = hn::Lanes(PixelTag());
  if (p.channels < lanes) return false;
  uint64_t c = 0;
  for (; c + 4 * lanes <= p.channels; c += 4 * lanes) OnePixel<4, T>(p, c);
  for (; c + lanes <= p.channels; c += lanes) OnePixel<1, T>(p, c);
  if (c < p.channels) OnePixel<1, T>(p, p.channels - lanes);
  return true;
}

template <bool kThrees, typename T>
bool ChannelsOfPixels(const DepthwisePixels& p) {
  const uint64_t lanes = hn::Lanes(PixelTag());
  if (p.channels < lanes) return false;
  uint64_t c = 0;
  for (; c + 2 * lanes <= p.channels; c += 2 * lanes) FourPixels<2, kThrees, T>(p, c);
  for (; c + lanes <= p.channels; c += lanes) FourPixels<1, kThrees, T>(p, c);
  if (c < p.channels) FourPixels<1, kThrees, T>(p, p.channels - lanes);
  return true;
}

bool VectorsOfPixel(const DepthwisePixels& p) {
  return p.halves ? ChannelsOfPixel<uint16_t>(p) : ChannelsOfPixel<float>(p);
}
bool VectorsOfPixels(const DepthwisePixels& p) {
  if (p.threes) return p.halves ? ChannelsOfPixels<true, uint16_t>(p) : ChannelsOfPixels<true, float>(p);
  return p.halves ? ChannelsOfPixels<false, uint16_t>(p) : ChannelsOfPixels<false, float>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {
namespace {

#if ANYDML_HAVE_HIGHWAY
HWY_EXPORT(VectorsOfPixel);
HWY_EXPORT(VectorsOfPixels);
#endif

// One channel after the other.
void NumbersOfPixel(const DepthwisePixels& p) {
  const auto input_of = [&](uint64_t offset) {
    const auto at = static_cast<ptrdiff_t>(offset);
    return p.halves ? ToFloat(static_cast<const Half*>(p.input)[at]) : static_cast<const float*>(p.input)[at];
  };
  for (uint64_t c = 0; c < p.channels; ++c) {
    float sum = p.start[c];
    for (uint32_t t = 0; t < p.tap_count; ++t) sum += input_of(p.taps[t].offset + c) * p.taps[t].weights[c];
    if (p.clips) {
      sum = sum <= p.low ? p.low : sum;
      sum = sum >= p.high ? p.high : sum;
      if (std::isnan(sum)) sum = std::numeric_limits<float>::quiet_NaN();
    }
    p.sums[c] = sum;
  }
}

}  // namespace

void AddDepthwisePixel(const DepthwisePixels& pixels) {
#if ANYDML_HAVE_HIGHWAY
  if (HWY_DYNAMIC_DISPATCH(VectorsOfPixel)(pixels)) return;
#endif
  NumbersOfPixel(pixels);
}

void AddDepthwisePixels(const DepthwisePixels& pixels) {
#if ANYDML_HAVE_HIGHWAY
  if (HWY_DYNAMIC_DISPATCH(VectorsOfPixels)(pixels)) return;
#endif
  DepthwisePixels one = pixels;
  for (uint32_t i = 0; i < kDepthwisePixels; ++i) {
    NumbersOfPixel(one);
    const auto step = one.input_stride * (one.halves ? sizeof(Half) : sizeof(float));
    one.input = static_cast<const std::byte*>(one.input) + step;
    one.sums += one.sums_stride;
  }
}

}  // namespace anydml
#endif
