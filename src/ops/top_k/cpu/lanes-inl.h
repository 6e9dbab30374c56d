// Compares vectors of elements with a limit, in the elements' own lanes: one or two instructions for most
// types. Included once per SIMD target.
#if defined(ANYDML_TOP_K_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYDML_TOP_K_LANES_INL_H_
#undef ANYDML_TOP_K_LANES_INL_H_
#else
#define ANYDML_TOP_K_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#include "ops/top_k/cpu/key.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The lanes in which T is compared: halves as signed integers, see Comparable.
template <typename T>
using LaneOf = std::conditional_t<std::is_same_v<T, Half>, int16_t, T>;

// At most as many lanes as a word has bits.
template <typename T>
using TagOf = hn::CappedTag<LaneOf<T>, 64>;

template <typename T>
const LaneOf<T>* LanesOf(const UnsignedOf<sizeof(T)>* row) {
  return reinterpret_cast<const LaneOf<T>*>(row);
}

// Vectors of elements in a form whose lanes are ordered as numbers.
template <typename T, class D, class V>
HWY_INLINE V Comparable(D d, V x) {
  if constexpr (std::is_same_v<T, Half>) {
    // Sign and magnitude to two's complement; -0 becomes -1.
    return hn::Xor(x, hn::And(hn::ShiftRight<15>(x), hn::Set(d, int16_t{0x7FFF})));
  } else {
    return x;
  }
}

template <class D, class V>
HWY_INLINE hn::Mask<D> HalfIsNan(D d, V x) {
  return hn::Gt(hn::And(x, hn::Set(d, int16_t{0x7FFF})), hn::Set(d, int16_t{0x7C00}));
}

// What reaches a limit: elements that compare with it (and NaNs if they rank above it), NaNs only, or
// everything. kOutward is kCompare for halves of the requested sign (a positive limit for the largest, a
// negative one for the smallest), as most limits are: the bits of such halves can be compared directly.
enum class Pass { kCompare, kOutward, kNanOnly, kEverything };

template <typename T>
struct Limit {
  Pass pass;
  LaneOf<T> lane;  // kCompare
};

template <typename T>
LaneOf<T> LimitLane(UnsignedOf<sizeof(T)> bits, bool largest) {
  if constexpr (std::is_same_v<T, Half>) {
    // Both zeros reach it: -1 and 0 as integers.
    if ((bits & 0x7FFFu) == 0) return largest ? -1 : 0;
    const auto x = static_cast<int16_t>(bits);
    return static_cast<int16_t>(x ^ ((x >> 15) & 0x7FFF));
  } else {
    return std::bit_cast<T>(bits);
  }
}

// The limit that exactly the elements with `key` or a better one reach. Some keys belong to no element
// (between NaN and infinity, and that of -0): then the nearest element that lets no more pass.
template <typename T, bool kLargest>
Limit<T> LimitOfKey(KeyOf<T> key) {
  using Bits = UnsignedOf<sizeof(T)>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  if (key == kWorstKey<T>) return {Pass::kEverything, {}};
  Bits ordered = static_cast<Bits>(key ^ kWorstKey<T>);
  if (!kLargest) ordered = static_cast<Bits>(~ordered);
  if constexpr (kIsFloat<T>) {
    constexpr int kMantissa = sizeof(T) == 2 ? 10 : sizeof(T) == 4 ? 23 : 52;
    constexpr Bits kInfinity = static_cast<Bits>(kSign | ((kSign - 1) >> kMantissa << kMantissa));
    if (ordered > kInfinity) {
      if (kLargest) return {Pass::kNanOnly, {}};
      ordered = kInfinity;
    }
    if (ordered == kSign - 1) ordered = static_cast<Bits>(kLargest ? kSign : kSign - 2);
    const Bits bits = static_cast<Bits>(ordered & kSign ? ordered ^ kSign : ~ordered);
    if constexpr (std::is_same_v<T, Half>) {
      const bool outward = kLargest ? bits != 0 && bits < 0x8000 : bits > 0x8000 && bits <= 0xFC00;
      if (outward) return {Pass::kOutward, static_cast<int16_t>(bits)};
    }
    return {Pass::kCompare, LimitLane<T>(bits, kLargest)};
  } else if constexpr (std::is_signed_v<T>) {
    return {Pass::kCompare, LimitLane<T>(ordered ^ kSign, kLargest)};
  } else {
    return {Pass::kCompare, LimitLane<T>(ordered, kLargest)};
  }
}

// As integers, the bits of halves are ordered: -0, ..., -infinity (-1024), negative NaNs (to -1), +0, ...,
// infinity, positive NaNs. A range test is one comparison of a difference whose sign bit is flipped.
template <bool kLargest, class D, class V>
HWY_INLINE hn::Mask<D> HalfReachesOutward(D d, V x, V limit) {
  // Differences wrap; as signed numbers that would be undefined.
  const hn::RebindToUnsigned<D> du;
  const auto bits = [&](V v) HWY_ATTR { return hn::BitCast(du, v); };
  const auto flipped = [&](auto v)
                           HWY_ATTR { return hn::BitCast(d, hn::Xor(v, hn::Set(du, uint16_t{0x8000}))); };
  if constexpr (kLargest) {
    // Up to 1023 beyond -1024.
    const V from_nan = flipped(hn::Add(bits(x), hn::Set(du, uint16_t{1023})));
    const V nans = hn::Set(d, static_cast<int16_t>(1023 - 32768));
    return hn::Or(hn::Not(hn::Lt(x, limit)), hn::Lt(from_nan, nans));
  } else {
    const V range = flipped(hn::Sub(hn::Set(du, uint16_t{0xFC00}), bits(limit)));
    return hn::Not(hn::Gt(flipped(hn::Sub(bits(x), bits(limit))), range));
  }
}

template <typename T, bool kLargest, Pass kPass, class D, class V>
HWY_INLINE hn::Mask<D> Reaches(D d, V x, V limit) {
  if constexpr (kPass == Pass::kEverything) {
    return hn::Eq(hn::Zero(d), hn::Zero(d));
  } else if constexpr (std::is_same_v<T, Half>) {
    if constexpr (kPass == Pass::kNanOnly) return HalfIsNan(d, x);
    if constexpr (kPass == Pass::kOutward) return HalfReachesOutward<kLargest>(d, x, limit);
    const V y = Comparable<T>(d, x);
    if constexpr (kLargest) return hn::Or(hn::Not(hn::Lt(y, limit)), HalfIsNan(d, x));
    return hn::Not(hn::Or(HalfIsNan(d, x), hn::Gt(y, limit)));
  } else if constexpr (kIsFloat<T>) {
    if constexpr (kPass == Pass::kNanOnly) return hn::IsNaN(x);
    if constexpr (kLargest) return hn::Not(hn::Lt(x, limit));  // true for NaN
    return hn::Le(x, limit);                                   // false for NaN
  } else {
    return hn::Not(kLargest ? hn::Lt(x, limit) : hn::Gt(x, limit));
  }
}

// False for the elements that reach the limit: for cases where that takes fewer instructions.
template <typename T, bool kLargest, Pass kPass>
inline constexpr bool kMissesAreNative =
    kPass == Pass::kCompare && !std::is_same_v<T, Half> && (kLargest || !kIsFloat<T>);

template <bool kLargest, class V>
HWY_INLINE auto Misses(V x, V limit) {
  if constexpr (kLargest) {
    return hn::Lt(x, limit);
  } else {
    return hn::Gt(x, limit);
  }
}

// Lanes that Max and Min order, and the key of such a lane.
template <typename T, class D, class V>
HWY_INLINE V Ordered(D d, V x) {
  if constexpr (std::is_same_v<T, Half>) {
    return hn::IfThenElse(HalfIsNan(d, x), hn::Set(d, int16_t{0x7FFF}), Comparable<T>(d, x));
  } else {
    return x;
  }
}

template <typename T, bool kLargest>
HWY_INLINE KeyOf<T> KeyOfOrdered(LaneOf<T> lane) {
  auto bits = std::bit_cast<UnsignedOf<sizeof(T)>>(lane);
  if constexpr (std::is_same_v<T, Half>) bits = static_cast<uint16_t>(lane < 0 ? bits ^ 0x7FFF : bits);
  return KeyOfBits<T, kLargest>(bits);
}

// The better of ordered lanes. Whatever Max and Min do with NaNs: an accumulator that starts with an element,
// and is always passed as `acc`, holds an element that no number among them surpasses (or NaN).
template <bool kLargest, class V>
HWY_INLINE V BetterOf(V x, V acc) {
  if constexpr (kLargest) {
    return hn::Max(x, acc);
  } else {
    return hn::Min(x, acc);
  }
}

template <class D>
HWY_INLINE uint64_t MaskBits(D d, hn::Mask<D> mask) {
  uint64_t bits = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

// Writes, for each of several groups of elements (`want` to twice that), the key of an element that no other
// element of the group surpasses (for NaN: that no number surpasses). Returns the number of keys. The row has
// at least 4 elements per group; the keys need room for want + 64.
template <typename T, bool kLargest>
uint32_t GroupMaxima(const UnsignedOf<sizeof(T)>* HWY_RESTRICT row, uint32_t n, uint32_t want,
                     KeyOf<T>* HWY_RESTRICT keys) {
  const TagOf<T> d;
  using V = hn::Vec<decltype(d)>;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const LaneOf<T>* const data = LanesOf<T>(row);
  const auto load = [&](uint32_t vector) HWY_ATTR {
    // The order of half NaNs does not matter: every maximum is an element.
    return Comparable<T>(d, hn::LoadU(d, data + vector * lanes));
  };
  const auto better = [](V x, V acc) HWY_ATTR { return BetterOf<kLargest>(x, acc); };
  const uint32_t vectors = n / lanes;
  const uint32_t segments = (want + lanes - 1) / lanes;
  HWY_ALIGN LaneOf<T> maxima[HWY_MAX_BYTES / sizeof(LaneOf<T>)];
  for (uint32_t s = 0; s < segments; ++s) {
    uint32_t v = vectors * s / segments;
    const uint32_t end = vectors * (s + 1) / segments;
    V a = load(v++);
    if (end - v >= 7) {
      V b = load(v), c = load(v + 1), e = load(v + 2);
      for (v += 3; end - v >= 4; v += 4) {
        a = better(load(v), a);
        b = better(load(v + 1), b);
        c = better(load(v + 2), c);
        e = better(load(v + 3), e);
      }
      a = better(better(a, b), better(c, e));
    }
    for (; v < end; ++v) a = better(load(v), a);
    hn::Store(a, d, maxima);
    for (uint32_t g = 0; g < lanes; ++g) keys[s * lanes + g] = KeyOfOrdered<T, kLargest>(maxima[g]);
  }
  uint32_t groups = segments * lanes;
  for (; groups / 2 >= want; groups /= 2) {
    for (uint32_t g = 0; g < groups / 2; ++g) keys[g] = std::max<KeyOf<T>>(keys[g], keys[g + groups / 2]);
  }
  return groups;
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#endif  // ANYDML_TOP_K_LANES_INL_H_
