#include "ops/numbers/convert_rows.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "ops/numbers/math/saturate.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/numbers/convert_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "ops/numbers/clip_vectors-inl.h"
#include "ops/numbers/half_vectors-inl.h"

// Calls body(i) for whole vectors from i on, four at a time if possible; returns the number of elements
// processed.
template <class Body>
HWY_INLINE uint64_t ForVectors(uint64_t lanes, uint64_t count, Body&& body) {
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    body(i);
    body(i + lanes);
    body(i + 2 * lanes);
    body(i + 3 * lanes);
  }
  for (; i + lanes <= count; i += lanes) body(i);
  return i;
}

uint64_t WholeHalvesToFloats(const uint16_t* HWY_RESTRICT from, float* HWY_RESTRICT to, uint64_t count) {
  const hn::ScalableTag<float> d;
  return ForVectors(hn::Lanes(d), count,
                    [&](uint64_t i) HWY_ATTR { hn::StoreU(LoadHalves(d, from + i), d, to + i); });
}

template <typename T>
HWY_INLINE uint64_t WholeSplit([[maybe_unused]] const T* HWY_RESTRICT from,
                               [[maybe_unused]] float* HWY_RESTRICT to, [[maybe_unused]] uint64_t count,
                               [[maybe_unused]] float* HWY_RESTRICT odd) {
#if HWY_TARGET == HWY_SCALAR
  return 0;
#else
  const hn::ScalableTag<float> d;
  const uint64_t lanes = hn::Lanes(d);
  return ForVectors(2 * lanes, count, [&](uint64_t i) HWY_ATTR {
    const auto low = LoadNumbers(d, from + i), high = LoadNumbers(d, from + i + lanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, to + i / 2);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, odd + i / 2);
  });
#endif
}
uint64_t WholeSplitHalves(const uint16_t* from, float* to, uint64_t count, float* odd) {
  return WholeSplit(from, to, count, odd);
}
uint64_t WholeSplitFloats(const float* from, float* to, uint64_t count, float* odd) {
  return WholeSplit(from, to, count, odd);
}

uint64_t WholeFloatsToHalves(const float* from, uint16_t* to, uint64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> dh;
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    hn::StoreU(ToHalves(d, hn::LoadU(d, from + i)), dh, to + i);
  });
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
uint64_t WholeStreamedHalves(const float* from, uint16_t* to, uint64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> dh;
  const hn::Twice<decltype(dh)> both;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto first = ToHalves(d, hn::LoadU(d, from + i)),
               second = ToHalves(d, hn::LoadU(d, from + i + lanes));
    hn::Stream(hn::Combine(both, second, first), both, to + i);
  }
  return i;
}
#else
uint64_t WholeStreamedHalves(const float* from, uint16_t* to, uint64_t count) {
  return WholeFloatsToHalves(from, to, count);
}
#endif

template <class D>
HWY_INLINE hn::Vec<D> AddedAndClipped(D d, const float* from, float bias, float low, float high) {
  const auto x = hn::Add(hn::LoadU(d, from), hn::Set(d, bias));
  return ClipVector(d, x, hn::Set(d, low), hn::Set(d, high));
}

uint64_t WholeAddAndClip(const float* from, float* to, uint64_t count, float bias, float low, float high) {
  const hn::ScalableTag<float> d;
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    hn::StoreU(AddedAndClipped(d, from + i, bias, low, high), d, to + i);
  });
}

uint64_t WholeAddAndClipToHalves(const float* from, uint16_t* to, uint64_t count, float bias, float low,
                                 float high) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> dh;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (low == -kInfinity && high == kInfinity) {
    return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
      const auto x = hn::Add(hn::LoadU(d, from + i), hn::Set(d, bias));
      hn::StoreU(ToHalves(d, WithUsualNaNs(d, x)), dh, to + i);
    });
  }
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    hn::StoreU(ToHalves(d, AddedAndClipped(d, from + i, bias, low, high)), dh, to + i);
  });
}

template <typename T>
HWY_INLINE uint64_t WholeToWords(const T* from, uint32_t* to, uint64_t count) {
  using Word = hwy::MakeWide<hwy::MakeWide<T>>;
  using To = std::conditional_t<sizeof(T) == 1, Word, hwy::MakeWide<T>>;
  const hn::ScalableTag<To> d;
  const hn::Rebind<T, decltype(d)> dn;
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dn, from + i)), d, reinterpret_cast<To*>(to + i));
  });
}

template <typename T>
HWY_INLINE uint64_t WholeFromWords(const uint32_t* from, T* to, uint64_t count) {
  const hn::ScalableTag<uint32_t> d;
  const hn::Rebind<T, decltype(d)> dn;
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    hn::StoreU(hn::TruncateTo(dn, hn::LoadU(d, from + i)), dn, to + i);
  });
}

uint64_t WholeU8ToWords(const uint8_t* from, uint32_t* to, uint64_t count) {
  return WholeToWords(from, to, count);
}
uint64_t WholeI8ToWords(const int8_t* from, uint32_t* to, uint64_t count) {
  return WholeToWords(from, to, count);
}
uint64_t WholeU16ToWords(const uint16_t* from, uint32_t* to, uint64_t count) {
  return WholeToWords(from, to, count);
}
uint64_t WholeI16ToWords(const int16_t* from, uint32_t* to, uint64_t count) {
  return WholeToWords(from, to, count);
}
uint64_t WholeWordsToU8(const uint32_t* from, uint8_t* to, uint64_t count) {
  return WholeFromWords(from, to, count);
}
uint64_t WholeWordsToU16(const uint32_t* from, uint16_t* to, uint64_t count) {
  return WholeFromWords(from, to, count);
}

template <typename T>
HWY_INLINE uint64_t WholeFloatsTo(const float* from, T* to, uint64_t count, float low, float high) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> db;
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, from + i);
    const auto number = hn::IfThenElseZero(hn::Eq(x, x), x);
    const auto clamped = hn::Min(hn::Max(number, hn::Set(d, low)), hn::Set(d, high));
    hn::StoreU(hn::DemoteTo(db, hn::ConvertTo(di, clamped)), db, to + i);
  });
}

uint64_t WholeFloatsToU8(const float* from, uint8_t* to, uint64_t count) {
  return WholeFloatsTo(from, to, count, 0, 255);
}
uint64_t WholeFloatsToI8(const float* from, int8_t* to, uint64_t count) {
  return WholeFloatsTo(from, to, count, -128, 127);
}
uint64_t WholeFloatsToU16(const float* from, uint16_t* to, uint64_t count) {
  return WholeFloatsTo(from, to, count, 0, 65535);
}
uint64_t WholeFloatsToI16(const float* from, int16_t* to, uint64_t count) {
  return WholeFloatsTo(from, to, count, -32768, 32767);
}
uint64_t WholeFloatsToI32(const float* from, int32_t* to, uint64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  return ForVectors(hn::Lanes(d), count, [&](uint64_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, from + i);
    const auto above = hn::RebindMask(di, hn::Ge(x, hn::Set(d, 0x1p31f)));
    // The lower bound is a float, so the maximum is exact.
    const auto number = hn::IfThenElseZero(hn::Eq(x, x), hn::Max(x, hn::Set(d, -0x1p31f)));
    hn::StoreU(hn::IfThenElse(above, hn::Set(di, INT32_MAX), hn::ConvertTo(di, number)), di, to + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {

#if ANYDML_HAVE_HIGHWAY
namespace {
HWY_EXPORT(WholeHalvesToFloats);
HWY_EXPORT(WholeSplitHalves);
HWY_EXPORT(WholeSplitFloats);
HWY_EXPORT(WholeFloatsToHalves);
HWY_EXPORT(WholeStreamedHalves);
HWY_EXPORT(WholeAddAndClip);
HWY_EXPORT(WholeAddAndClipToHalves);
HWY_EXPORT(WholeU8ToWords);
HWY_EXPORT(WholeI8ToWords);
HWY_EXPORT(WholeU16ToWords);
HWY_EXPORT(WholeI16ToWords);
HWY_EXPORT(WholeWordsToU8);
HWY_EXPORT(WholeWordsToU16);
HWY_EXPORT(WholeFloatsToU8);
HWY_EXPORT(WholeFloatsToI8);
HWY_EXPORT(WholeFloatsToU16);
HWY_EXPORT(WholeFloatsToI16);
HWY_EXPORT(WholeFloatsToI32);
}  // namespace
// Processes as many elements as fill whole vectors; returns their number.
#define ANYDML_WHOLE(function, ...) HWY_DYNAMIC_DISPATCH(function)(from, to, count __VA_OPT__(, ) __VA_ARGS__)
#else
#define ANYDML_WHOLE(function, ...) 0
#endif

void HalvesToFloats(const uint16_t* from, float* to, uint64_t count) {
  for (uint64_t i = ANYDML_WHOLE(WholeHalvesToFloats); i < count; ++i) to[i] = ToFloat(Half{from[i]});
}

void SplitNumbers(const uint16_t* from, uint64_t count, float* to, float* odd) {
  for (uint64_t i = ANYDML_WHOLE(WholeSplitHalves, odd); i < count; ++i)
    (i % 2 == 0 ? to : odd)[i / 2] = ToFloat(Half{from[i]});
}
void SplitNumbers(const float* from, uint64_t count, float* to, float* odd) {
  for (uint64_t i = ANYDML_WHOLE(WholeSplitFloats, odd); i < count; ++i)
    (i % 2 == 0 ? to : odd)[i / 2] = from[i];
}

void FloatsToHalves(const float* from, uint16_t* to, uint64_t count) {
  for (uint64_t i = ANYDML_WHOLE(WholeFloatsToHalves); i < count; ++i) to[i] = ToHalf(from[i]).bits;
}

void StreamFloatsToHalves(const float* from, uint16_t* to, uint64_t count) {
  for (uint64_t i = ANYDML_WHOLE(WholeStreamedHalves); i < count; ++i) to[i] = ToHalf(from[i]).bits;
}

static float AddedAndClipped(float number, float bias, float low, float high) {
  const float x = number + bias, y = x <= low ? low : x;
  if (std::isnan(y)) return std::numeric_limits<float>::quiet_NaN();
  return y >= high ? high : y;
}

void AddAndClip(const float* from, float* to, uint64_t count, float bias, float low, float high) {
  for (uint64_t i = ANYDML_WHOLE(WholeAddAndClip, bias, low, high); i < count; ++i)
    to[i] = AddedAndClipped(from[i], bias, low, high);
}

void AddAndClipToHalves(const float* from, uint16_t* to, uint64_t count, float bias, float low, float high) {
  for (uint64_t i = ANYDML_WHOLE(WholeAddAndClipToHalves, bias, low, high); i < count; ++i)
    to[i] = ToHalf(AddedAndClipped(from[i], bias, low, high)).bits;
}

// The remainder is converted one by one. NOLINTBEGIN(bugprone-macro-parentheses): some are types
#define ANYDML_CONVERT(function, whole, From, To, converted)                  \
  void function(const From* from, To* to, uint64_t count) {                   \
    for (uint64_t i = ANYDML_WHOLE(whole); i < count; ++i) to[i] = converted; \
  }
// NOLINTEND(bugprone-macro-parentheses)

ANYDML_CONVERT(ToWords, WholeU8ToWords, uint8_t, uint32_t, static_cast<uint32_t>(from[i]))
ANYDML_CONVERT(ToWords, WholeI8ToWords, int8_t, uint32_t, static_cast<uint32_t>(from[i]))
ANYDML_CONVERT(ToWords, WholeU16ToWords, uint16_t, uint32_t, static_cast<uint32_t>(from[i]))
ANYDML_CONVERT(ToWords, WholeI16ToWords, int16_t, uint32_t, static_cast<uint32_t>(from[i]))
ANYDML_CONVERT(FromWords, WholeWordsToU8, uint32_t, uint8_t, static_cast<uint8_t>(from[i]))
ANYDML_CONVERT(FromWords, WholeWordsToU16, uint32_t, uint16_t, static_cast<uint16_t>(from[i]))
ANYDML_CONVERT(FloatsToIntegers, WholeFloatsToU8, float, uint8_t, Saturate<uint8_t>(from[i]))
ANYDML_CONVERT(FloatsToIntegers, WholeFloatsToI8, float, int8_t, Saturate<int8_t>(from[i]))
ANYDML_CONVERT(FloatsToIntegers, WholeFloatsToU16, float, uint16_t, Saturate<uint16_t>(from[i]))
ANYDML_CONVERT(FloatsToIntegers, WholeFloatsToI16, float, int16_t, Saturate<int16_t>(from[i]))
ANYDML_CONVERT(FloatsToIntegers, WholeFloatsToI32, float, int32_t, Saturate<int32_t>(from[i]))
#undef ANYDML_CONVERT

}  // namespace anydml
#endif
