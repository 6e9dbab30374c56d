#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scatter/choose_packed.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/scatter/choose_packed.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ScatterOwner's hash in the low 32 bits of every lane, before `first` is subtracted.
template <class D, class V>
HWY_INLINE V Hash(D d, V key) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::Mul(key, hn::Set(d, ScatterOwner::kMultiplier));
  } else if constexpr (HWY_TARGET == HWY_SCALAR) {
    return hn::Set(d, hn::GetLane(key) * ScatterOwner::kMultiplier);
  } else {
    const hn::Repartition<uint32_t, D> d32;
    return hn::MulEven(hn::BitCast(d32, key), hn::Set(d32, ScatterOwner::kMultiplier));
  }
}

template <class D>
HWY_INLINE uint64_t Bits(D d, hn::Mask<D> mask) {
  uint64_t bits = 0;  // at most 64 lanes
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

template <typename T>
bool Choose(const T* HWY_RESTRICT indices, uint32_t words, const ScatterPlan::Component& component,
            const ScatterOwner& owner, T* HWY_RESTRICT wrapped, uint64_t* HWY_RESTRICT chosen) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto size = hn::Set(d, static_cast<T>(component.size));
  const auto wrap = hn::Set(d, static_cast<T>(component.wrap));
  const auto first = hn::Set(d, static_cast<T>(owner.first));
  const auto last = hn::Set(d, static_cast<T>(owner.last));
  const auto low = hn::Set(d, static_cast<T>(0xFFFFFFFFu));
  const int shift = static_cast<int>(owner.key_shift);
  auto all_in_range = hn::Eq(size, size);
  for (uint32_t w = 0; w < words; ++w) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 64; i += lanes) {
      auto index = hn::LoadU(d, indices + 64 * w + i);
      const auto negative = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, index)));
      index = hn::Add(index, hn::And(negative, wrap));
      hn::StoreU(index, d, wrapped + 64 * w + i);
      const auto in_range = hn::Lt(index, size);
      const auto hash = hn::Sub(Hash(d, hn::ShiftRightSame(index, shift)), first);
      bits |= Bits(d, hn::AndNot(hn::Gt(hn::And(hash, low), last), in_range)) << i;
      all_in_range = hn::And(all_in_range, in_range);
    }
    chosen[w] = bits;
  }
  return hn::AllTrue(d, all_in_range);
}

bool Choose32(const uint32_t* indices, uint32_t words, const ScatterPlan::Component& component,
              const ScatterOwner& owner, uint32_t* wrapped, uint64_t* chosen) {
  return Choose(indices, words, component, owner, wrapped, chosen);
}
bool Choose64(const uint64_t* indices, uint32_t words, const ScatterPlan::Component& component,
              const ScatterOwner& owner, uint64_t* wrapped, uint64_t* chosen) {
  return Choose(indices, words, component, owner, wrapped, chosen);
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

HWY_EXPORT(Choose32);
HWY_EXPORT(Choose64);

bool ChoosePackedBits(const uint32_t* indices, uint32_t words, const ScatterPlan::Component& component,
                      const ScatterOwner& owner, uint32_t* wrapped, uint64_t* chosen) {
  return HWY_DYNAMIC_DISPATCH(Choose32)(indices, words, component, owner, wrapped, chosen);
}
bool ChoosePackedBits(const uint64_t* indices, uint32_t words, const ScatterPlan::Component& component,
                      const ScatterOwner& owner, uint64_t* wrapped, uint64_t* chosen) {
  return HWY_DYNAMIC_DISPATCH(Choose64)(indices, words, component, owner, wrapped, chosen);
}

}  // namespace anydml
#endif
