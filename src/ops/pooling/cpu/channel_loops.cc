#include "ops/pooling/cpu/channel_loops.h"

#include <limits>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pooling/cpu/channel_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml::pooling {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#include "ops/numbers/half_vectors-inl.h"

using Floats = hn::ScalableTag<float>;
using Keys = hn::ScalableTag<int16_t>;

// FLOAT16: converts sign and magnitude to a comparable integer, and back.
HWY_INLINE hn::Vec<Keys> Flip(hn::Vec<Keys> x) {
  return hn::Xor(x, hn::And(hn::ShiftRight<15>(x), hn::Set(Keys(), 0x7FFF)));
}

// Comparable keys. `seen` later tells whether there was a NaN: the sum is NaN if an element is, or if there
// are infinities of both signs, which is rare; for FLOAT16 it is the largest magnitude.
HWY_INLINE hn::Vec<Floats> KeyOf(hn::Vec<Floats> x, hn::Vec<Floats>& seen) {
  seen = hn::Add(seen, x);
  return x;
}
HWY_INLINE hn::Vec<Keys> KeyOf(hn::Vec<Keys> bits, hn::Vec<Keys>& seen) {
  seen = hn::Max(seen, hn::And(bits, hn::Set(Keys(), 0x7FFF)));
  return Flip(bits);
}
HWY_INLINE hn::Vec<Floats> SeenInBoth(hn::Vec<Floats> a, hn::Vec<Floats> b) { return hn::Add(a, b); }
HWY_INLINE hn::Vec<Keys> SeenInBoth(hn::Vec<Keys> a, hn::Vec<Keys> b) { return hn::Max(a, b); }
HWY_INLINE bool HasNan(hn::Vec<Floats> seen) { return !hn::AllFalse(Floats(), hn::IsNaN(seen)); }
HWY_INLINE bool HasNan(hn::Vec<Keys> seen) {
  return !hn::AllFalse(Keys(), hn::Gt(seen, hn::Set(Keys(), 0x7C00)));
}

// Stores the elements. `lowest` later tells whether -0 was among them: as an integer it is the lowest.
// FLOAT16 keys distinguish zeros.
using Bits = hn::ScalableTag<int32_t>;
HWY_INLINE void Put(hn::Vec<Floats> key, hn::Vec<Bits>& lowest, float* to) {
  lowest = hn::Min(lowest, hn::BitCast(Bits(), key));
  hn::StoreU(key, Floats(), to);
}
HWY_INLINE void Put(hn::Vec<Keys> key, hn::Vec<Bits>&, int16_t* to) { hn::StoreU(Flip(key), Keys(), to); }

// Channels [c, c + kVectors vectors) of one window, `offset` from the first window's.
template <uint32_t kVectors, class D, typename T = hn::TFromD<D>>
HWY_INLINE void MaxOfSome(D d, const ChannelTaps& p, uint64_t offset, hn::Vec<D>& seen, hn::Vec<Bits>& lowest,
                          T* to) {
  static_assert(kVectors == 1 || kVectors == 4);
  constexpr bool kFour = kVectors == 4;
  const size_t lanes = hn::Lanes(d);
  const uint32_t count = p.columns * p.rows;
  const T* x = static_cast<const T*>(p.taps[0]) + offset;
  auto seen1 = hn::Zero(d), seen2 = seen1, seen3 = seen1;
  auto best0 = KeyOf(hn::LoadU(d, x), seen), best1 = best0, best2 = best0, best3 = best0;
  if constexpr (kFour) {
    best1 = KeyOf(hn::LoadU(d, x + lanes), seen1);
    best2 = KeyOf(hn::LoadU(d, x + 2 * lanes), seen2);
    best3 = KeyOf(hn::LoadU(d, x + 3 * lanes), seen3);
  }
  for (uint32_t t = 1; t < count; ++t) {
    x = static_cast<const T*>(p.taps[t]) + offset;
    best0 = hn::Max(best0, KeyOf(hn::LoadU(d, x), seen));
    if constexpr (kFour) {
      best1 = hn::Max(best1, KeyOf(hn::LoadU(d, x + lanes), seen1));
      best2 = hn::Max(best2, KeyOf(hn::LoadU(d, x + 2 * lanes), seen2));
      best3 = hn::Max(best3, KeyOf(hn::LoadU(d, x + 3 * lanes), seen3));
    }
  }
  Put(best0, lowest, to);
  if constexpr (kFour) {
    Put(best1, lowest, to + lanes);
    Put(best2, lowest, to + 2 * lanes);
    Put(best3, lowest, to + 3 * lanes);
    seen = SeenInBoth(SeenInBoth(seen, seen1), SeenInBoth(seen2, seen3));
  }
}

// The last vector may overlap the one before.
template <typename T>
bool Max(const ChannelTaps& p, void* output) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  auto seen = hn::Zero(d);
  auto lowest = hn::Zero(Bits());
  for (uint64_t w = 0; w < p.windows; ++w) {
    T* const to = static_cast<T*>(output) + w * p.output_step;
    const uint64_t from = w * p.input_step;
    uint64_t c = 0;
    for (; c + 4 * lanes <= p.channels; c += 4 * lanes) MaxOfSome<4>(d, p, from + c, seen, lowest, to + c);
    for (; c + lanes <= p.channels; c += lanes) MaxOfSome<1>(d, p, from + c, seen, lowest, to + c);
    const uint64_t last = p.channels - lanes;
    if (c < p.channels) MaxOfSome<1>(d, p, from + last, seen, lowest, to + last);
  }
  const auto zeros = hn::Eq(lowest, hn::Set(Bits(), std::numeric_limits<int32_t>::min()));
  return HasNan(seen) || !hn::AllFalse(Bits(), zeros);
}

HWY_INLINE void PutMean(Floats d, hn::Vec<Floats> sum, hn::Vec<Floats> divisor, float* to) {
  const auto mean = hn::Div(sum, divisor), nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  hn::StoreU(hn::IfThenElse(hn::IsNaN(mean), nan, mean), d, to);
}

// As MaxOfSome.
template <uint32_t kVectors, typename T>
HWY_INLINE void AverageOfSome(const ChannelTaps& p, uint64_t offset, float divisor, float* to) {
  static_assert(kVectors == 1 || kVectors == 4);
  constexpr bool kFour = kVectors == 4;
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const void* const* tap = p.taps;
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (uint32_t k = 0; k < p.columns; ++k) {
    auto column0 = hn::Zero(d), column1 = column0, column2 = column0, column3 = column0;
    for (uint32_t j = 0; j < p.rows; ++j, ++tap) {
      const T* const x = static_cast<const T*>(*tap) + offset;
      column0 = hn::Add(column0, LoadNumbers(d, x));
      if constexpr (kFour) {
        column1 = hn::Add(column1, LoadNumbers(d, x + lanes));
        column2 = hn::Add(column2, LoadNumbers(d, x + 2 * lanes));
        column3 = hn::Add(column3, LoadNumbers(d, x + 3 * lanes));
      }
    }
    sum0 = hn::Add(sum0, column0);
    if constexpr (kFour) {
      sum1 = hn::Add(sum1, column1);
      sum2 = hn::Add(sum2, column2);
      sum3 = hn::Add(sum3, column3);
    }
  }
  const auto by = hn::Set(d, divisor);
  PutMean(d, sum0, by, to);
  if constexpr (kFour) {
    PutMean(d, sum1, by, to + lanes);
    PutMean(d, sum2, by, to + 2 * lanes);
    PutMean(d, sum3, by, to + 3 * lanes);
  }
}

template <typename T>
void Average(const ChannelTaps& p, float divisor, float* output) {
  const size_t lanes = hn::Lanes(Floats());
  for (uint64_t w = 0; w < p.windows; ++w) {
    float* const to = output + w * p.output_step;
    const uint64_t from = w * p.input_step;
    uint64_t c = 0;
    for (; c + 4 * lanes <= p.channels; c += 4 * lanes) AverageOfSome<4, T>(p, from + c, divisor, to + c);
    for (; c + lanes <= p.channels; c += lanes) AverageOfSome<1, T>(p, from + c, divisor, to + c);
    const uint64_t last = p.channels - lanes;
    if (c < p.channels) AverageOfSome<1, T>(p, from + last, divisor, to + last);
  }
}

ChannelLoops ChannelLoopsFor(DataType type) {
  const auto lanes = static_cast<uint32_t>(hn::Lanes(Floats()));
  if (type == DataType::kFloat32) return {lanes, &Max<float>, &Average<float>};
  if (type == DataType::kFloat16) return {2 * lanes, &Max<int16_t>, &Average<uint16_t>};
  return {};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml::pooling {
namespace {
HWY_EXPORT(ChannelLoopsFor);
}  // namespace

ChannelLoops FindChannelLoops(DataType type) { return HWY_DYNAMIC_DISPATCH(ChannelLoopsFor)(type); }
}  // namespace anydml::pooling
#endif

#else  // without Highway

namespace anydml::pooling {
ChannelLoops FindChannelLoops(DataType) { return {}; }
}  // namespace anydml::pooling
#endif
