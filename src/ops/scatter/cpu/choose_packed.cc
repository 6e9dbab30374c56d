#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/cpu/choose_packed.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/scatter/cpu/choose_packed.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The low 32 bits of every lane times `factor`, in as many bits as the lane has.
template <class D, class V>
HWY_INLINE V Times(D d, V v, uint32_t factor) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::Mul(v, hn::Set(d, factor));
  } else if constexpr (HWY_TARGET == HWY_SCALAR) {
    return hn::Set(d, (hn::GetLane(v) & 0xFFFFFFFFu) * factor);
  } else {
    const hn::Repartition<uint32_t, D> d32;
    return hn::MulEven(hn::BitCast(d32, v), hn::Set(d32, factor));
  }
}

template <class D>
HWY_INLINE uint64_t Bits(D d, hn::Mask<D> mask) {
  uint64_t bits = 0;  // at most 64 lanes
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

// One component of a vector of tuples, wrapped; clears the lanes of `in_range` where it is out of range.
template <class D, class V>
HWY_INLINE V Wrapped(D d, V index, const ScatterLoops::Component& component, hn::Mask<D>* in_range) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  const auto negative = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, index)));
  index = hn::Add(index, hn::And(negative, hn::Set(d, static_cast<T>(component.wrap))));
  *in_range = hn::And(*in_range, hn::Lt(index, hn::Set(d, static_cast<T>(component.size))));
  return index;
}

template <uint32_t kTuple, typename T>
bool Choose(const T* HWY_RESTRICT indices, uint32_t words, const ScatterLoops& loops,
            const ScatterOwner& owner, T* HWY_RESTRICT keys, uint64_t* HWY_RESTRICT chosen) {
  const hn::ScalableTag<T> d;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const ScatterLoops::Component outer = loops.tuple[0], inner = loops.tuple[1];
  const auto outer_stride = static_cast<uint32_t>(outer.output_stride);
  const auto inner_stride = static_cast<uint32_t>(inner.output_stride);
  const auto first = hn::Set(d, static_cast<T>(owner.first));
  const auto last = hn::Set(d, static_cast<T>(owner.last));
  const auto low = hn::Set(d, static_cast<T>(0xFFFFFFFFu));
  const int shift = static_cast<int>(owner.key_shift);
  const auto all = hn::Eq(first, first);
  auto all_in_range = all;
  for (uint32_t w = 0; w < words; ++w) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 64; i += lanes) {
      const T* const tuples = indices + kTuple * (64 * w + i);
      auto in_range = all;
      auto key = hn::Undefined(d);
      if constexpr (kTuple == 1) {
        key = Wrapped(d, hn::LoadU(d, tuples), outer, &in_range);
      } else {
        auto other = key;
        hn::LoadInterleaved2(d, tuples, key, other);
        key = Times(d, Wrapped(d, key, outer, &in_range), outer_stride);
        key = hn::Add(key, Times(d, Wrapped(d, other, inner, &in_range), inner_stride));
      }
      hn::StoreU(key, d, keys + 64 * w + i);
      const auto hash = hn::Sub(Times(d, hn::ShiftRightSame(key, shift), ScatterOwner::kMultiplier), first);
      bits |= Bits(d, hn::AndNot(hn::Gt(hn::And(hash, low), last), in_range)) << i;
      all_in_range = hn::And(all_in_range, in_range);
    }
    chosen[w] = bits;
  }
  return hn::AllTrue(d, all_in_range);
}

template <typename T>
bool Choose(const T* indices, uint32_t words, const ScatterLoops& loops, const ScatterOwner& owner, T* keys,
            uint64_t* chosen) {
  return loops.tuple_size == 1 ? Choose<1>(indices, words, loops, owner, keys, chosen)
                               : Choose<2>(indices, words, loops, owner, keys, chosen);
}

bool Choose32(const uint32_t* indices, uint32_t words, const ScatterLoops& loops, const ScatterOwner& owner,
              uint32_t* keys, uint64_t* chosen) {
  return Choose(indices, words, loops, owner, keys, chosen);
}
bool Choose64(const uint64_t* indices, uint32_t words, const ScatterLoops& loops, const ScatterOwner& owner,
              uint64_t* keys, uint64_t* chosen) {
  return Choose(indices, words, loops, owner, keys, chosen);
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

HWY_EXPORT(Choose32);
HWY_EXPORT(Choose64);

bool ChoosePackedBits(const uint32_t* indices, uint32_t words, const ScatterLoops& loops,
                      const ScatterOwner& owner, uint32_t* keys, uint64_t* chosen) {
  return HWY_DYNAMIC_DISPATCH(Choose32)(indices, words, loops, owner, keys, chosen);
}
bool ChoosePackedBits(const uint64_t* indices, uint32_t words, const ScatterLoops& loops,
                      const ScatterOwner& owner, uint64_t* keys, uint64_t* chosen) {
  return HWY_DYNAMIC_DISPATCH(Choose64)(indices, words, loops, owner, keys, chosen);
}

}  // namespace anydml
#endif
