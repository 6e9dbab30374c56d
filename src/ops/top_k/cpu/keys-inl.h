// Vectorised work on arrays of signed keys in the cache. Included once per SIMD target.
#if defined(ANYDML_TOP_K_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYDML_TOP_K_KEYS_INL_H_
#undef ANYDML_TOP_K_KEYS_INL_H_
#else
#define ANYDML_TOP_K_KEYS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "ops/top_k/cpu/row_select.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most as many lanes as Rank's block, on any machine.
template <typename Key>
using KeyTag = hn::CappedTag<Key, 16>;

// Arrays of keys are read in whole vectors, so this many keys after the last one must be readable.
inline constexpr uint32_t kKeyPadding = 16;

// ranks[i] = the place of keys[i], best first, equal keys in their order. Branch-free and quadratic: for up
// to about 64 keys. Up to kKeyPadding ranks after the last are written.
template <typename Key>
HWY_INLINE void Rank(const Key* HWY_RESTRICT keys, uint32_t count, Key* HWY_RESTRICT ranks) {
  const KeyTag<Key> d;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto lane_numbers = hn::Iota(d, 0);
  for (uint32_t block = 0; block < count; block += lanes) {
    const auto x = hn::LoadU(d, keys + block);
    const uint32_t end = std::min(block + lanes, count);
    auto rank = hn::Zero(d);
    const auto count_if = [&](auto mask) HWY_ATTR { rank = hn::Sub(rank, hn::VecFromMask(d, mask)); };
    for (uint32_t j = 0; j < block; ++j) count_if(hn::Not(hn::Gt(x, hn::Set(d, keys[j]))));
    for (uint32_t j = block; j < end; ++j) {
      const auto y = hn::Set(d, keys[j]);
      const auto later = hn::Gt(lane_numbers, hn::Set(d, static_cast<Key>(j - block)));
      count_if(hn::Or(hn::Gt(y, x), hn::And(hn::Eq(y, x), later)));
    }
    for (uint32_t j = end; j < count; ++j) count_if(hn::Gt(hn::Set(d, keys[j]), x));
    hn::StoreU(rank, d, ranks + block);
  }
}

// The number of keys that are `bound` or better.
template <typename Key>
uint32_t CountReaching(const Key* HWY_RESTRICT keys, uint32_t count, Key bound) {
  const hn::ScalableTag<Key> d;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, bound);
  auto a = hn::Zero(d), b = hn::Zero(d);
  uint32_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    a = hn::Add(a, hn::VecFromMask(d, hn::Gt(limit, hn::LoadU(d, keys + i))));
    b = hn::Add(b, hn::VecFromMask(d, hn::Gt(limit, hn::LoadU(d, keys + i + lanes))));
  }
  uint32_t reaching = i;
  for (; i < count; ++i) reaching += keys[i] >= bound;
  return reaching + static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))));
}

// A key that at least k keys reach, but, unless ties prevent it, at most k + slack.
template <typename Key>
Key BoundOf(const Key* HWY_RESTRICT keys, uint32_t count, uint32_t k, uint32_t slack) {
  using Unsigned = std::make_unsigned_t<Key>;
  Key low = keys[0], high = keys[0];
  for (uint32_t i = 1; i < count; ++i) {
    low = std::min(low, keys[i]);
    high = std::max(high, keys[i]);
  }
  if (count <= k + slack) return low;
  // At least k keys reach `low`; fewer reach anything above `high`.
  while (low < high) {
    const Unsigned half = (static_cast<Unsigned>(high) - static_cast<Unsigned>(low) + 1) / 2;
    const Key middle = static_cast<Key>(static_cast<Unsigned>(low) + (half == 0 ? 1 : half));
    const uint32_t reaching = CountReaching(keys, count, middle);
    if (reaching < k) {
      high = static_cast<Key>(middle - 1);
      continue;
    }
    low = middle;
    if (reaching <= k + slack) break;
  }
  return low;
}

// The k-th best of a few keys: the best one that k keys reach. Quadratic. Up to a vector of keys after the
// last are overwritten.
template <typename Key>
HWY_INLINE Key KthOfFew(Key* HWY_RESTRICT keys, uint32_t count, uint32_t k) {
  const KeyTag<Key> d;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto worst = hn::Set(d, std::numeric_limits<Key>::min());
  hn::StoreU(worst, d, keys + count);
  auto best = worst;
  for (uint32_t block = 0; block < count; block += lanes) {
    const auto x = hn::LoadU(d, keys + block);
    if (k > 1) {
      auto surpassed = hn::Zero(d);  // minus how many
      for (uint32_t j = 0; j < count; ++j) {
        surpassed = hn::Add(surpassed, hn::VecFromMask(d, hn::Gt(x, hn::Set(d, keys[j]))));
      }
      // Those that x does not surpass reach it, including x itself.
      const auto reached = hn::Add(surpassed, hn::Set(d, static_cast<Key>(count)));
      best = hn::Max(best, hn::IfThenElse(hn::Lt(reached, hn::Set(d, static_cast<Key>(k))), worst, x));
    } else {
      best = hn::Max(best, x);
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

// Copies the keys from `worst` to `best`, and the index of each: `indices[i]`, or i if that is null. The
// targets need room for one more vector; they may be the sources. Returns the number of keys.
template <typename Key>
HWY_INLINE uint32_t CopyRange(const Key* keys, const uint32_t* indices, uint32_t count, Key worst, Key best,
                              Key* to_keys, uint32_t* to_indices) {
  uint32_t copied = 0;
  uint32_t i = 0;
  if constexpr (sizeof(Key) == sizeof(uint32_t)) {
    const KeyTag<Key> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
    const auto low = hn::Set(d, worst);
    const auto high = hn::Set(d, best);
    auto iota = hn::Iota(du, 0);
    for (; i + lanes <= count; i += lanes) {
      const auto x = hn::LoadU(d, keys + i);
      const auto index = indices != nullptr ? hn::LoadU(du, indices + i) : iota;
      const auto mask = hn::Not(hn::Or(hn::Lt(x, low), hn::Gt(x, high)));
      hn::StoreU(hn::Compress(x, mask), d, to_keys + copied);
      hn::StoreU(hn::Compress(index, hn::RebindMask(du, mask)), du, to_indices + copied);
      copied += static_cast<uint32_t>(hn::CountTrue(d, mask));
      iota = hn::Add(iota, hn::Set(du, lanes));
    }
  }
  for (; i < count; ++i) {
    const bool within = keys[i] >= worst && keys[i] <= best;
    to_indices[copied] = indices != nullptr ? indices[i] : i;
    to_keys[copied] = keys[i];
    copied += within;
  }
  return copied;
}

// Keeps the k best and, unless ties prevent it, at most `slack` others.
template <typename Key>
void Tighten(uint32_t k, uint32_t slack, Hits<Key>* hits) {
  const Key bound = BoundOf(hits->keys, hits->count, k, slack);
  hits->count = CopyRange(hits->keys, hits->indices, hits->count, bound, std::numeric_limits<Key>::max(),
                          hits->keys, hits->indices);
}

// Keeps the k best (of equal ones the first), in order. Returns the worst key kept.
template <typename Key>
Key Reduce(uint32_t k, Hits<Key>* hits) {
  const Key bound = BoundOf(hits->keys, hits->count, k, 0);
  uint32_t ties = k - (bound == std::numeric_limits<Key>::max()
                           ? 0
                           : CountReaching(hits->keys, hits->count, static_cast<Key>(bound + 1)));
  uint32_t kept = 0;
  for (uint32_t i = 0; i < hits->count; ++i) {
    const Key key = hits->keys[i];
    const bool tie = key == bound && ties > 0;
    ties -= tie;
    hits->keys[kept] = key;
    hits->indices[kept] = hits->indices[i];
    kept += tie || key > bound;
  }
  hits->count = kept;
  return bound;
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#endif  // ANYDML_TOP_K_KEYS_INL_H_
