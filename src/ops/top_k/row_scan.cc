// Bandwidth decides here: four vectors are loaded and compared with the threshold
// for one branch, which is rarely taken; what passes is picked from the mask bit by bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/row_scan.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/top_k/row_scan.h"

#ifndef ANYDML_FOR_EACH_ROW_TYPE  // this file is included once per target
#define ANYDML_FOR_EACH_ROW_TYPE(X)                                                               \
  X(F32, float) X(F16, Half) X(U32, uint32_t) X(U16, uint16_t) X(U8, uint8_t) X(I32, int32_t) \
  X(I16, int16_t) X(I8, int8_t)
#endif

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The lanes that T is compared in: halves as signed integers, see Comparable.
template <typename T>
using LaneOf = std::conditional_t<std::is_same_v<T, Half>, int16_t, T>;

// What passes: elements that compare with the threshold, all NaNs as well or not,
// NaNs only, or everything.
enum class Pass { kCompare, kNanOnly, kEverything };

// Vectors of elements in a form whose lane order is the order of numbers.
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

template <typename T, bool kLargest, Pass kPass, class D, class V>
HWY_INLINE hn::Mask<D> Passes(D d, V x, V threshold) {
  if constexpr (kPass == Pass::kEverything) {
    return hn::Eq(hn::Zero(d), hn::Zero(d));
  } else if constexpr (std::is_same_v<T, Half>) {
    if constexpr (kPass == Pass::kNanOnly) return HalfIsNan(d, x);
    const V y = Comparable<T>(d, x);
    if constexpr (kLargest) return hn::Or(hn::Not(hn::Lt(y, threshold)), HalfIsNan(d, x));
    return hn::Not(hn::Or(HalfIsNan(d, x), hn::Gt(y, threshold)));
  } else if constexpr (std::is_same_v<T, float>) {
    if constexpr (kPass == Pass::kNanOnly) return hn::IsNaN(x);
    if constexpr (kLargest) return hn::Not(hn::Lt(x, threshold));  // true for NaN
    return hn::Le(x, threshold);                                   // false for NaN
  } else {
    return hn::Not(kLargest ? hn::Lt(x, threshold) : hn::Gt(x, threshold));
  }
}

template <typename T>
HWY_INLINE NarrowCandidate CandidateOf(UnsignedOf<sizeof(T)> bits, uint32_t index, uint32_t flip) {
  return NarrowCandidate(static_cast<uint32_t>(OrderedBits<T>(bits)) ^ flip, index);
}

template <typename T, bool kLargest, Pass kPass>
ScanEnd Scan(const UnsignedOf<sizeof(T)>* HWY_RESTRICT row, uint32_t begin, uint32_t n, LaneOf<T> threshold,
             NarrowCandidate* HWY_RESTRICT out, NarrowCandidate* end) {
  const hn::ScalableTag<LaneOf<T>> d;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto* data = reinterpret_cast<const LaneOf<T>*>(row);
  const auto limit = hn::Set(d, threshold);
  constexpr uint32_t kFlip = kLargest ? 0 : ~0u;
  uint32_t i = begin;
  const auto take = [&](hn::Mask<decltype(d)> mask, uint32_t first) HWY_ATTR {
    uint64_t words[(HWY_MAX_BYTES + 63) / 64] = {};
    hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(words));
    for (uint32_t w = 0; w < (lanes + 63) / 64; ++w) {
      for (uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
        const uint32_t at = first + 64 * w + static_cast<uint32_t>(std::countr_zero(bits));
        if (at >= i) *out++ = CandidateOf<T>(row[at], at, kFlip);
      }
    }
  };
  for (; n - i >= 4 * lanes; i += 4 * lanes) {
    const auto m0 = Passes<T, kLargest, kPass>(d, hn::LoadU(d, data + i), limit);
    const auto m1 = Passes<T, kLargest, kPass>(d, hn::LoadU(d, data + i + lanes), limit);
    const auto m2 = Passes<T, kLargest, kPass>(d, hn::LoadU(d, data + i + 2 * lanes), limit);
    const auto m3 = Passes<T, kLargest, kPass>(d, hn::LoadU(d, data + i + 3 * lanes), limit);
    if (HWY_LIKELY(hn::AllFalse(d, hn::Or(hn::Or(m0, m1), hn::Or(m2, m3))))) continue;
    if (static_cast<uint64_t>(end - out) < kScanSlack) return {i, out};
    take(m0, i);
    take(m1, i + lanes);
    take(m2, i + 2 * lanes);
    take(m3, i + 3 * lanes);
  }
  // What is left, vector by vector, the last one overlapping elements before i.
  while (i < n) {
    const uint32_t first = std::min(i, n - lanes);
    const auto mask = Passes<T, kLargest, kPass>(d, hn::LoadU(d, data + first), limit);
    if (!hn::AllFalse(d, mask)) {
      if (static_cast<uint64_t>(end - out) < kScanSlack) return {i, out};
      take(mask, first);
    }
    i = first + lanes;
  }
  return {i, out};
}

// From a key back to an element. Some keys belong to no element (between the NaNs'
// and infinity's, and that of -0): the nearest one that lets no more pass.
template <typename T, bool kLargest>
UnsignedOf<sizeof(T)> ElementOfKey(uint32_t key) {
  using Bits = UnsignedOf<sizeof(T)>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  Bits ordered = static_cast<Bits>(kLargest ? key : ~key);
  if constexpr (kIsFloat<T>) {
    constexpr Bits kInfinity = static_cast<Bits>(kSign | (sizeof(T) == 2 ? 0x7C00u : 0x7F800000u));
    if (ordered > kInfinity) {
      // For the smallest only the NaNs' own key lets NaNs pass.
      if (kLargest || ordered == static_cast<Bits>(~Bits{0})) return static_cast<Bits>(~Bits{0});
      ordered = kInfinity;
    }
    if (ordered == kSign - 1) ordered = static_cast<Bits>(kLargest ? kSign : kSign - 2);
    return static_cast<Bits>(ordered & kSign ? ordered ^ kSign : ~ordered);
  } else if constexpr (std::is_signed_v<T>) {
    return ordered ^ kSign;
  } else {
    return ordered;
  }
}

template <typename T>
LaneOf<T> ThresholdLane(UnsignedOf<sizeof(T)> bits, bool largest) {
  if constexpr (std::is_same_v<T, Half>) {
    // Both zeros pass: -1 and 0 as integers.
    if ((bits & 0x7FFFu) == 0) return largest ? -1 : 0;
    const auto x = static_cast<int16_t>(bits);
    return static_cast<int16_t>(x ^ ((x >> 15) & 0x7FFF));
  } else {
    return std::bit_cast<T>(bits);
  }
}

template <typename T, bool kLargest>
ScanEnd ScanDirected(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t n, uint32_t threshold,
                     NarrowCandidate* out, NarrowCandidate* end) {
  constexpr uint32_t kWorstKey = kLargest ? 0 : ~static_cast<uint32_t>(static_cast<UnsignedOf<sizeof(T)>>(~0u));
  if (threshold <= kWorstKey) return Scan<T, kLargest, Pass::kEverything>(row, begin, n, {}, out, end);
  const auto bits = ElementOfKey<T, kLargest>(threshold);
  if constexpr (kIsFloat<T>) {
    if (OrderedBits<T>(bits) == static_cast<UnsignedOf<sizeof(T)>>(~0u)) {
      constexpr Pass kPass = kLargest ? Pass::kNanOnly : Pass::kEverything;
      return Scan<T, kLargest, kPass>(row, begin, n, {}, out, end);
    }
  }
  return Scan<T, kLargest, Pass::kCompare>(row, begin, n, ThresholdLane<T>(bits, kLargest), out, end);
}

template <typename T>
ScanEnd ScanTyped(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t n, uint32_t threshold,
                  bool largest, NarrowCandidate* out, NarrowCandidate* end) {
  return largest ? ScanDirected<T, true>(row, begin, n, threshold, out, end)
                 : ScanDirected<T, false>(row, begin, n, threshold, out, end);
}

template <typename T, bool kLargest>
uint32_t GroupBestsDirected(const UnsignedOf<sizeof(T)>* HWY_RESTRICT row, uint32_t n, uint32_t* keys) {
  const hn::ScalableTag<LaneOf<T>> d;
  using V = hn::Vec<decltype(d)>;
  using Bits = UnsignedOf<sizeof(T)>;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  if (n < 8 * 4 * lanes) return 0;
  const auto* data = reinterpret_cast<const LaneOf<T>*>(row);
  const auto load = [&](uint32_t at) HWY_ATTR {
    const V x = hn::LoadU(d, data + at);
    if constexpr (std::is_same_v<T, Half>) {
      return hn::IfThenElse(HalfIsNan(d, x), hn::Set(d, int16_t{0x7FFF}), Comparable<T>(d, x));
    } else {
      return x;
    }
  };
  // Whatever Max and Min make of NaN: begun with elements, an accumulator holds one,
  // and no number of its group surpasses it (or it is NaN).
  const auto better = [&](V x, V y) HWY_ATTR { return kLargest ? hn::Max(x, y) : hn::Min(x, y); };
  V a = load(0), b = load(lanes), c = load(2 * lanes), e = load(3 * lanes);
  for (uint32_t i = 4 * lanes; n - i >= 4 * lanes; i += 4 * lanes) {
    a = better(load(i), a);
    b = better(load(i + lanes), b);
    c = better(load(i + 2 * lanes), c);
    e = better(load(i + 3 * lanes), e);
  }
  const uint32_t groups = 4 * lanes <= kMaxGroups ? 4 * lanes : lanes;
  HWY_ALIGN LaneOf<T> bests[4 * HWY_MAX_BYTES / sizeof(LaneOf<T>)];
  if (groups == lanes) a = better(better(a, b), better(c, e));
  hn::Store(a, d, bests);
  if (groups != lanes) {
    hn::Store(b, d, bests + lanes);
    hn::Store(c, d, bests + 2 * lanes);
    hn::Store(e, d, bests + 3 * lanes);
  }
  for (uint32_t g = 0; g < groups; ++g) {
    Bits bits = std::bit_cast<Bits>(bests[g]);
    if constexpr (std::is_same_v<T, Half>) {
      bits = static_cast<Bits>(bests[g] < 0 ? bits ^ 0x7FFF : bits);
    }
    keys[g] = static_cast<uint32_t>(OrderedBits<T>(bits)) ^ (kLargest ? 0 : ~0u);
  }
  return groups;
}

template <typename T>
uint32_t GroupBestsTyped(const UnsignedOf<sizeof(T)>* row, uint32_t n, bool largest, uint32_t* keys) {
  return largest ? GroupBestsDirected<T, true>(row, n, keys) : GroupBestsDirected<T, false>(row, n, keys);
}

#define ANYDML_ROW_SCAN(name, T)                                                                           \
  ScanEnd Scan##name(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t n, uint32_t threshold,     \
                     bool largest, NarrowCandidate* out, NarrowCandidate* end) {                                 \
    return ScanTyped<T>(row, begin, n, threshold, largest, out, end);                                      \
  }                                                                                                        \
  uint32_t Bests##name(const UnsignedOf<sizeof(T)>* row, uint32_t n, bool largest, uint32_t* keys) {       \
    return GroupBestsTyped<T>(row, n, largest, keys);                                                      \
  }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_ROW_SCAN)
#undef ANYDML_ROW_SCAN

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

#define ANYDML_ROW_SCAN(name, T)                                                                             \
  HWY_EXPORT(Scan##name);                                                                                    \
  HWY_EXPORT(Bests##name);                                                                                   \
  template <>                                                                                                \
  ScanEnd ScanRow<T>(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t n, uint32_t threshold,       \
                     bool largest, NarrowCandidate* out, NarrowCandidate* end) {                                   \
    return HWY_DYNAMIC_DISPATCH(Scan##name)(row, begin, n, threshold, largest, out, end);                    \
  }                                                                                                          \
  template <>                                                                                                \
  uint32_t GroupBests<T>(const UnsignedOf<sizeof(T)>* row, uint32_t n, bool largest, uint32_t* keys) {       \
    return HWY_DYNAMIC_DISPATCH(Bests##name)(row, n, largest, keys);                                         \
  }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_ROW_SCAN)
#undef ANYDML_ROW_SCAN

}  // namespace anydml
#endif
