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

#include "ops/element/cpu/clip_vectors-inl.h"
#include "ops/element/cpu/half_vectors-inl.h"

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

// Channels [c, c + kVectors vectors) of kDepthwisePixels pixels: weights are loaded once for all of them.
template <uint32_t kVectors, typename T>
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
  for (uint32_t t = 0; t < p.tap_count; ++t) {
    const T* const x0 = input + static_cast<ptrdiff_t>(p.taps[t].offset);
    const T *const x1 = x0 + stride, *const x2 = x1 + stride, *const x3 = x2 + stride;
    const auto w = hn::LoadU(d, p.taps[t].weights + c);
    a0 = hn::MulAdd(LoadInput(d, x0), w, a0);
    a1 = hn::MulAdd(LoadInput(d, x1), w, a1);
    a2 = hn::MulAdd(LoadInput(d, x2), w, a2);
    a3 = hn::MulAdd(LoadInput(d, x3), w, a3);
    if constexpr (kTwo) {
      const auto v = hn::LoadU(d, p.taps[t].weights + c + lanes);
      b0 = hn::MulAdd(LoadInput(d, x0 + lanes), v, b0);
      b1 = hn::MulAdd(LoadInput(d, x1 + lanes), v, b1);
      b2 = hn::MulAdd(LoadInput(d, x2 + lanes), v, b2);
      b3 = hn::MulAdd(LoadInput(d, x3 + lanes), v, b3);
    }
  }
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

// False: there are fewer channels than a vector has lanes. The last vector may begin among what is done.
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

template <typename T>
bool ChannelsOfPixels(const DepthwisePixels& p) {
  const uint64_t lanes = hn::Lanes(PixelTag());
  if (p.channels < lanes) return false;
  uint64_t c = 0;
  for (; c + 2 * lanes <= p.channels; c += 2 * lanes) FourPixels<2, T>(p, c);
  for (; c + lanes <= p.channels; c += lanes) FourPixels<1, T>(p, c);
  if (c < p.channels) FourPixels<1, T>(p, p.channels - lanes);
  return true;
}

bool VectorsOfPixel(const DepthwisePixels& p) {
  return p.halves ? ChannelsOfPixel<uint16_t>(p) : ChannelsOfPixel<float>(p);
}
bool VectorsOfPixels(const DepthwisePixels& p) {
  return p.halves ? ChannelsOfPixels<uint16_t>(p) : ChannelsOfPixels<float>(p);
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
