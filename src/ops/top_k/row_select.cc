// Find few elements that contain the K best (at the speed of memory), then sort those.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/row_select.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/top_k/keys-inl.h"
#include "ops/top_k/lanes-inl.h"
#include "ops/top_k/row_select.h"
#include "ops/top_k/sort_words.h"

#ifndef ANYDML_FOR_EACH_ROW_TYPE  // this file is included once per target
#define ANYDML_FOR_EACH_ROW_TYPE(X)                                                              \
  X(F64, double) X(F32, float) X(F16, Half) X(U64, uint64_t) X(U32, uint32_t) X(U16, uint16_t) \
  X(U8, uint8_t) X(I64, int64_t) X(I32, int32_t) X(I16, int16_t) X(I8, int8_t)

namespace anydml {

// Up to here candidates are put in order by counting who is better than whom.
inline constexpr uint32_t kRankMost = 64;

// From here on they are sorted by radix.
inline constexpr uint32_t kRadixLeast = 6000;

// A step of Scan looks at 4 vectors of up to 64 lanes.
inline constexpr uint32_t kScanStep = 256;

inline uint32_t SampleSize(uint32_t n) {
  return std::min(static_cast<uint32_t>(2 * std::sqrt(static_cast<double>(n))), kMaxSample);
}

}  // namespace anydml
#endif

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Appends the elements of row[begin, end) that reach the limit until there are `enough`
// or the row ends. Returns where it stopped. The row has at least a vector's elements.
template <typename T, bool kLargest, Pass kPass>
uint32_t Scan(const UnsignedOf<sizeof(T)>* HWY_RESTRICT row, uint32_t begin, uint32_t end, LaneOf<T> lane,
              uint32_t enough, Hits<KeyOf<T>>* hits) {
  const TagOf<T> d;
  const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
  const LaneOf<T>* const data = LanesOf<T>(row);
  const auto limit = hn::Set(d, lane);
  KeyOf<T>* HWY_RESTRICT keys = hits->keys;
  uint32_t* HWY_RESTRICT indices = hits->indices;
  uint32_t count = hits->count;
  uint32_t i = begin;
  const auto reaches = [&](uint32_t at) HWY_ATTR {
    return Reaches<T, kLargest, kPass>(d, hn::LoadU(d, data + at), limit);
  };
  const auto take = [&](uint64_t bits, uint32_t first) HWY_ATTR {
    for (; bits != 0; bits &= bits - 1) {
      const uint32_t at = first + static_cast<uint32_t>(std::countr_zero(bits));
      keys[count] = KeyOfBits<T, kLargest>(row[at]);
      indices[count++] = at;
    }
  };
  for (; end - i >= 4 * lanes; i += 4 * lanes) {
    const auto m0 = reaches(i);
    const auto m1 = reaches(i + lanes);
    const auto m2 = reaches(i + 2 * lanes);
    const auto m3 = reaches(i + 3 * lanes);
    if (HWY_LIKELY(hn::AllFalse(d, hn::Or(hn::Or(m0, m1), hn::Or(m2, m3))))) continue;
    if (4 * lanes <= 64) {
      take(MaskBits(d, m0) | MaskBits(d, m1) << lanes % 64 | MaskBits(d, m2) << 2 * lanes % 64 |
               MaskBits(d, m3) << 3 * lanes % 64,
           i);
    } else {
      take(MaskBits(d, m0), i);
      take(MaskBits(d, m1), i + lanes);
      take(MaskBits(d, m2), i + 2 * lanes);
      take(MaskBits(d, m3), i + 3 * lanes);
    }
    if (count >= enough) {
      hits->count = count;
      return i + 4 * lanes;
    }
  }
  // What is left, vector by vector, the last one overlapping elements before i.
  while (i < end && count < enough) {
    const uint32_t first = std::min(i, end - lanes);
    take(MaskBits(d, reaches(first)) >> (i - first) << (i - first), first);
    i = first + lanes;
  }
  hits->count = count;
  return i;
}

template <typename T, bool kLargest>
uint32_t ScanFrom(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, KeyOf<T> threshold,
                  uint32_t enough, Hits<KeyOf<T>>* hits) {
  const Limit<T> limit = LimitOfKey<T, kLargest>(threshold);
  switch (limit.pass) {
    case Pass::kCompare:
      return Scan<T, kLargest, Pass::kCompare>(row, begin, end, limit.lane, enough, hits);
    case Pass::kNanOnly:
      return Scan<T, kLargest, Pass::kNanOnly>(row, begin, end, limit.lane, enough, hits);
    default:
      return Scan<T, kLargest, Pass::kEverything>(row, begin, end, limit.lane, enough, hits);
  }
}

// Appends to the (empty) hits the elements of row[begin, end) that reach the threshold,
// except some that are surely not among the K best.
template <typename T, bool kLargest>
void Collect(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, const RowQuery& query,
             KeyOf<T> threshold, Hits<KeyOf<T>>* hits) {
  const uint32_t full = MostHits(query);
  uint32_t enough = query.k;
  uint32_t at = begin;
  while (true) {
    at = ScanFrom<T, kLargest>(row, at, end, threshold, enough, hits);
    if (at == end) return;
    // K hits are there: from now on an equal key comes too late.
    if (hits->count >= full) threshold = Reduce(query.k, hits);
    if (threshold == kBestKey<T>) return;
    ++threshold;
    enough = full;
  }
}

// Puts a block of up to kRankMost hits in order.
template <typename Key>
HWY_INLINE void OrderFew(const Key* keys, const uint32_t* indices, uint32_t count, uint32_t k, uint32_t* order) {
  Key ranks[kRankMost + kKeyPadding];
  uint32_t sorted[kRankMost];
  Rank(keys, count, ranks);
  for (uint32_t i = 0; i < count; ++i) sorted[ranks[i]] = indices[i];
  std::copy_n(sorted, k, order);
}

NarrowCandidate* SortMany(const Hits<int32_t>& hits, NarrowCandidate* words, NarrowCandidate* other) {
  const auto word = [&](uint32_t i) {
    return NarrowCandidate(static_cast<uint32_t>(hits.keys[i]) ^ 0x80000000u, hits.indices[i]);
  };
  auto* const a = reinterpret_cast<uint64_t*>(words);
  auto* const b = reinterpret_cast<uint64_t*>(other);
  if (hits.count >= kRadixLeast) {
    for (uint32_t i = 0; i < hits.count; ++i) words[i] = word(i);
    return reinterpret_cast<NarrowCandidate*>(RadixSortWords(a, hits.count, b));
  }
  static_assert(kSortedBlock <= kRankMost);
  int32_t ranks[kSortedBlock + kKeyPadding];
  for (uint32_t block = 0; block < hits.count; block += kSortedBlock) {
    const uint32_t size = std::min(kSortedBlock, hits.count - block);
    Rank(hits.keys + block, size, ranks);
    for (uint32_t i = 0; i < size; ++i) words[block + static_cast<uint32_t>(ranks[i])] = word(block + i);
  }
  return reinterpret_cast<NarrowCandidate*>(MergeBlocks(a, hits.count, b));
}

WideCandidate* SortMany(const Hits<int64_t>& hits, WideCandidate* words, WideCandidate*) {
  for (uint32_t i = 0; i < hits.count; ++i) {
    words[i] = WideCandidate(static_cast<uint64_t>(hits.keys[i]) ^ uint64_t{1} << 63, hits.indices[i]);
  }
  std::sort(words, words + hits.count,
            [](const WideCandidate& x, const WideCandidate& y) { return x.BetterThan(y); });
  return words;
}

// The K best hits, best first.
template <typename T>
void Order(uint32_t k, RowScratch<T>* scratch, uint32_t* order) {
  Hits<KeyOf<T>>& hits = scratch->hits;
  if (hits.count <= kRankMost) return OrderFew(hits.keys, hits.indices, hits.count, k, order);
  if (hits.count - k > k / 4 + 16) {
    Reduce(k, &hits);
    if (hits.count <= kRankMost) return OrderFew(hits.keys, hits.indices, hits.count, k, order);
  }
  const auto* const sorted = SortMany(hits, scratch->words, scratch->other);
  for (uint32_t i = 0; i < k; ++i) order[i] = sorted[i].index();
}

// A key that K elements certainly reach, and hardly more than K log 2.
template <typename T, bool kLargest>
KeyOf<T> BestsBound(const UnsignedOf<sizeof(T)>* row, const RowQuery& query) {
  // G groups, of which K reach the bound, leave G ln(G / (G - K)) elements that do.
  KeyOf<T> bests[2 * kMaxBestsPlaces + 64];
  const uint32_t groups = GroupBests<T, kLargest>(row, query.n, query.k + query.k / 2 + query.k / 8, bests);
  return groups <= 64 ? KthOfFew(bests, groups, query.k) : BoundOf(bests, groups, query.k, 0);
}

// A key that slightly more than K elements are expected to reach, from elements all over
// the row, at irregular distances: it may be periodic.
template <typename T, bool kLargest>
KeyOf<T> SampleBound(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, KeyOf<T>* sample) {
  const uint32_t size = SampleSize(query.n);
  const uint32_t step = query.n / size;
  for (uint32_t i = 0; i < size; ++i) {
    const uint64_t jitter = uint64_t{i * 0x9E3779B1u} * step >> 32;
    sample[i] = KeyOfBits<T, kLargest>(row[i * step + static_cast<uint32_t>(jitter)]);
  }
  // Three standard deviations beyond the expected rank; too few hits cost a second scan.
  const double expected = static_cast<double>(query.k) * size / query.n;
  const auto rank = static_cast<uint32_t>(expected + 3 * std::sqrt(expected) + 3);
  if (rank >= size) return kWorstKey<T>;
  // The sample's own K best are elements: as a bound they are certain.
  return BoundOf(sample, size, std::min(query.k, rank), rank / 8);
}

// All keys, then those that reach a bound.
template <typename T, bool kLargest>
void CollectKeys(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, RowScratch<T>* scratch) {
  using Key = KeyOf<T>;
  Key* HWY_RESTRICT keys = scratch->keys;
  for (uint32_t i = 0; i < query.n; ++i) keys[i] = KeyOfBits<T, kLargest>(row[i]);
  const Key bound = BoundOf(keys, query.n, query.k, query.k / 8 + 8);
  Hits<Key>& hits = scratch->hits;
  uint32_t count = 0;
  uint32_t i = 0;
  if constexpr (sizeof(Key) == sizeof(uint32_t)) {
    const KeyTag<Key> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(d));
    const auto limit = hn::Set(d, bound);
    for (; i + lanes <= query.n; i += lanes) {
      const auto x = hn::LoadU(d, keys + i);
      const auto mask = hn::Not(hn::Lt(x, limit));
      hn::CompressStore(hn::Iota(du, i), hn::RebindMask(du, mask), du, hits.indices + count);
      count += static_cast<uint32_t>(hn::CompressStore(x, mask, d, hits.keys + count));
    }
  }
  for (; i < query.n; ++i) {
    hits.keys[count] = keys[i];
    hits.indices[count] = i;
    count += keys[i] >= bound;
  }
  hits.count = count;
}

// The steps of a selection, for one type and direction.
template <typename T, bool kLargest>
struct Steps {
  using Bits = UnsignedOf<sizeof(T)>;

  static KeyOf<T> Bound(const Bits* row, const RowQuery& query, KeyOf<T>* sample) {
    return query.method == RowMethod::kBests ? BestsBound<T, kLargest>(row, query)
                                             : SampleBound<T, kLargest>(row, query, sample);
  }

  static void All(const Bits* row, const RowQuery& query, uint32_t* order) {
    KeyOf<T> keys[kMaxAllElements + kKeyPadding];
    uint32_t indices[kMaxAllElements];
    for (uint32_t i = 0; i < query.n; ++i) {
      keys[i] = KeyOfBits<T, kLargest>(row[i]);
      indices[i] = i;
    }
    OrderFew(keys, indices, query.n, query.k, order);
  }

  static void Select(const Bits* row, const RowQuery& query, std::byte* memory, uint32_t* order) {
    if (query.method == RowMethod::kAll) return All(row, query, order);
    RowScratch<T> scratch(query, memory);
    if (query.method == RowMethod::kKeys) {
      CollectKeys<T, kLargest>(row, query, &scratch);
    } else {
      Collect<T, kLargest>(row, 0, query.n, query, Bound(row, query, scratch.keys), &scratch.hits);
      if (scratch.hits.count < query.k) {  // the sample misled
        scratch.hits.count = 0;
        Collect<T, kLargest>(row, 0, query.n, query, kWorstKey<T>, &scratch.hits);
      }
    }
    Order(query.k, &scratch, order);
  }
};

#define ANYDML_ROW_STEPS(name, T)                                                                          \
  void Select##name(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, std::byte* scratch,           \
                    uint32_t* order) {                                                                     \
    query.largest ? Steps<T, true>::Select(row, query, scratch, order)                                     \
                  : Steps<T, false>::Select(row, query, scratch, order);                                   \
  }                                                                                                        \
  KeyOf<T> Bound##name(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, KeyOf<T>* sample) {        \
    return query.largest ? Steps<T, true>::Bound(row, query, sample)                                       \
                         : Steps<T, false>::Bound(row, query, sample);                                     \
  }                                                                                                        \
  void Collect##name(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, const RowQuery& query, \
                     KeyOf<T> threshold, Hits<KeyOf<T>>* hits) {                                           \
    query.largest ? Collect<T, true>(row, begin, end, query, threshold, hits)                              \
                  : Collect<T, false>(row, begin, end, query, threshold, hits);                            \
  }                                                                                                        \
  void Order##name(uint32_t k, RowScratch<T>* scratch, uint32_t* order) { Order(k, scratch, order); }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_ROW_STEPS)
#undef ANYDML_ROW_STEPS

uint32_t Count32(const int32_t* keys, uint32_t count, int32_t bound) { return CountReaching(keys, count, bound); }
uint32_t Count64(const int64_t* keys, uint32_t count, int64_t bound) { return CountReaching(keys, count, bound); }
int32_t Reduce32(uint32_t k, Hits<int32_t>* hits) { return Reduce(k, hits); }
int64_t Reduce64(uint32_t k, Hits<int64_t>* hits) { return Reduce(k, hits); }

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

uint32_t MostHits(const RowQuery& query) {
  if (query.method == RowMethod::kKeys) return query.n;
  // When they are full they are reduced to K: that should be worth the work.
  const uint64_t most = std::max<uint64_t>(2 * uint64_t{query.k}, uint64_t{query.k} + 64);
  return static_cast<uint32_t>(std::min<uint64_t>(most, query.n));
}

uint64_t HitPlaces(const RowQuery& query) { return uint64_t{MostHits(query)} + 2 * kScanStep; }

#define ANYDML_ROW_STEPS(name, T)                                                                            \
  HWY_EXPORT(Select##name);                                                                                  \
  HWY_EXPORT(Bound##name);                                                                                   \
  HWY_EXPORT(Collect##name);                                                                                 \
  HWY_EXPORT(Order##name);                                                                                   \
  template <>                                                                                                \
  void SelectRow<T>(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, std::byte* scratch,             \
                    uint32_t* order) {                                                                       \
    HWY_DYNAMIC_DISPATCH(Select##name)(row, query, scratch, order);                                          \
  }                                                                                                          \
  template <>                                                                                                \
  KeyOf<T> BoundRow<T>(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, KeyOf<T>* sample) {          \
    return HWY_DYNAMIC_DISPATCH(Bound##name)(row, query, sample);                                            \
  }                                                                                                          \
  template <>                                                                                                \
  void CollectPart<T>(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, const RowQuery& query, \
                      KeyOf<T> threshold, Hits<KeyOf<T>>* hits) {                                            \
    HWY_DYNAMIC_DISPATCH(Collect##name)(row, begin, end, query, threshold, hits);                            \
  }                                                                                                          \
  template <>                                                                                                \
  void OrderHits<T>(uint32_t k, RowScratch<T>* scratch, uint32_t* order) {                                   \
    HWY_DYNAMIC_DISPATCH(Order##name)(k, scratch, order);                                                    \
  }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_ROW_STEPS)
#undef ANYDML_ROW_STEPS

HWY_EXPORT(Count32);
HWY_EXPORT(Count64);
HWY_EXPORT(Reduce32);
HWY_EXPORT(Reduce64);
uint32_t CountReachingKeys(const int32_t* keys, uint32_t count, int32_t bound) {
  return HWY_DYNAMIC_DISPATCH(Count32)(keys, count, bound);
}
uint32_t CountReachingKeys(const int64_t* keys, uint32_t count, int64_t bound) {
  return HWY_DYNAMIC_DISPATCH(Count64)(keys, count, bound);
}
void ReduceHits(uint32_t k, Hits<int32_t>* hits) { HWY_DYNAMIC_DISPATCH(Reduce32)(k, hits); }
void ReduceHits(uint32_t k, Hits<int64_t>* hits) { HWY_DYNAMIC_DISPATCH(Reduce64)(k, hits); }

}  // namespace anydml
#endif
