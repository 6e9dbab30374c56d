// Finds few elements that contain the K best (at the speed of memory), then sorts those.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/cpu/row_select.cc"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/top_k/cpu/keys-inl.h"
#include "ops/top_k/cpu/lanes-inl.h"
#include "ops/top_k/cpu/row_select.h"
#include "ops/top_k/cpu/row_types.h"
#include "ops/top_k/cpu/select-inl.h"

#ifndef ANYDML_ROW_SELECT_ONCE  // this file is included once per target
#define ANYDML_ROW_SELECT_ONCE
namespace anydml {

inline uint32_t SampleSize(uint32_t n) {
  return std::min(static_cast<uint32_t>(4 * std::sqrt(static_cast<double>(n))), kMaxSample);
}

}  // namespace anydml
#endif

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Appends the elements of row[begin, end) that reach the limit until there are `enough` or the row ends.
// Returns where it stopped. The row has at least a vector's elements. Prefetches what is `ahead` elements
// further, the next row, unless that is 0.
template <typename T, bool kLargest, Pass kPass>
uint32_t Scan(const UnsignedOf<sizeof(T)>* HWY_RESTRICT row, uint32_t begin, uint32_t end, LaneOf<T> lane,
              uint32_t enough, uint32_t ahead, HitsOf<T>* hits) {
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
    // Always processes two, whether there are two, one or none, since a branch would be unpredictable.
    const uint32_t total = count + static_cast<uint32_t>(std::popcount(bits));
    do {
      for (uint32_t j = 0; j < 2; ++j) {
        const uint32_t at = first + static_cast<uint32_t>(std::countr_zero(bits) & 63);
        keys[count + j] = KeyOfBits<T, kLargest>(row[at]);
        indices[count + j] = at;
        bits &= bits - 1;
      }
      count += 2;
    } while (bits != 0);
    count = total;
  };
  for (; end - i >= 4 * lanes; i += 4 * lanes) {
    if (ahead != 0) {
      for (uint32_t at = 0; at < 4 * lanes; at += 64 / sizeof(T)) hwy::Prefetch(data + i + ahead + at);
    }
    if constexpr (kMissesAreNative<T, kLargest, kPass>) {
      const auto misses = [&](uint32_t at)
                              HWY_ATTR { return Misses<kLargest>(hn::LoadU(d, data + at), limit); };
      const auto n0 = hn::And(misses(i), misses(i + lanes));
      const auto n1 = hn::And(misses(i + 2 * lanes), misses(i + 3 * lanes));
      if (HWY_LIKELY(hn::AllTrue(d, hn::And(n0, n1)))) continue;
    }
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
  // The remainder, vector by vector; the last one overlaps elements before i.
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
                  uint32_t enough, uint32_t ahead, HitsOf<T>* hits) {
  const Limit<T> limit = LimitOfKey<T, kLargest>(threshold);
  switch (limit.pass) {
    case Pass::kCompare:
      return Scan<T, kLargest, Pass::kCompare>(row, begin, end, limit.lane, enough, ahead, hits);
    case Pass::kOutward:
      if constexpr (std::is_same_v<T, Half>) {
        return Scan<T, kLargest, Pass::kOutward>(row, begin, end, limit.lane, enough, ahead, hits);
      }
      [[fallthrough]];
    case Pass::kNanOnly:
      if constexpr (kIsFloat<T> && kLargest) {
        return Scan<T, kLargest, Pass::kNanOnly>(row, begin, end, limit.lane, enough, ahead, hits);
      }
      [[fallthrough]];
    default:
      return Scan<T, kLargest, Pass::kEverything>(row, begin, end, limit.lane, enough, ahead, hits);
  }
}

// Appends to the (empty) hits the elements of row[begin, end) that reach the threshold, except some that are
// certainly not among the K best.
template <typename T, bool kLargest>
void Collect(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, const RowQuery& query,
             KeyOf<T> threshold, HitsOf<T>* hits) {
  const uint32_t full = MostHits(query);
  uint32_t enough = query.k;
  const uint32_t ahead = query.method == RowMethod::kMaxima ? query.n : 0;
  uint32_t at = begin;
  while (true) {
    at = ScanFrom<T, kLargest>(row, at, end, threshold, enough, ahead, hits);
    if (at == end) return;
    // There are K hits: from now on an equal key loses.
    if (hits->count >= full) threshold = Reduce(query.k, hits);
    if (threshold == kBestKey<T>) return;
    ++threshold;
    enough = full;
  }
}

// A key that K elements certainly reach, and about 1.6 K are expected to.
template <typename T, bool kLargest>
KeyOf<T> MaximaBound(const UnsignedOf<sizeof(T)>* row, const RowQuery& query) {
  KeyOf<T> maxima[2 * kMaxMaximaPlaces + 64 + kKeyPadding];
  const uint32_t groups = GroupMaxima<T, kLargest>(row, query.n, GroupsFor(query.k), maxima);
  return groups <= 64 ? KthOfFew(maxima, groups, query.k) : BoundOf(maxima, groups, query.k, 0);
}

// A key that slightly more than K elements are expected to reach, from a sample all over the row: several
// adjacent elements each (they share a cache line), at irregular distances (the row may be periodic).
template <typename T, bool kLargest>
KeyOf<T> SampleBound(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, KeyOf<T>* sample) {
  const uint32_t places = SampleSize(query.n) / kSampleNeighbours;
  const uint32_t size = places * kSampleNeighbours;
  const uint32_t step = query.n / places;
  KeyOf<T>* const maxima = sample + size;  // of the adjacent elements at each place
  for (uint32_t i = 0; i < places; ++i) {
    const uint64_t jitter = uint64_t{i * 0x9E3779B1u} * (step - kSampleNeighbours) >> 32;
    const UnsignedOf<sizeof(T)>* const at = row + (uint64_t{i} * step + jitter);
    KeyOf<T>* const keys = sample + i * kSampleNeighbours;
    for (uint32_t j = 0; j < kSampleNeighbours; ++j) keys[j] = KeyOfBits<T, kLargest>(at[j]);
    KeyOf<T> best = keys[0];  // std::max_element would not be vectorised
    for (uint32_t j = 1; j < kSampleNeighbours; ++j) best = std::max(best, keys[j]);
    maxima[i] = best;
  }
  // So far beyond the expected rank that about one row in 50 has too few hits, which costs a second scan.
  const double expected = static_cast<double>(query.k) * size / query.n;
  const auto rank = static_cast<uint32_t>(expected + 2.5 * std::sqrt(expected) + 2);
  if (rank >= size) return kWorstKey<T>;
  // The sample's own K best are elements, so as a bound they are certain. In a sorted row the best may all be
  // adjacent, which says little about the rest, so only one element of each place counts.
  if (rank <= places / 4) return BoundOf(maxima, places, std::min(query.k, rank), 0);
  return BoundOf(sample, size, std::min(query.k, rank), rank / 8);
}

// K = 1. A bound from the beginning of the row, which every hit raises: the number of hits is about the
// logarithm of the row's length.
template <typename T, bool kLargest>
uint32_t SelectBest(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, RowScratch<T>* scratch) {
  constexpr uint32_t kBeginning = 512;
  // From here on a sample is cheap, and avoids the many hits of an ascending row.
  constexpr uint32_t kLongRow = 65536;
  const bool sampled = query.method == RowMethod::kSample && query.n >= kLongRow;
  RowQuery beginning = query;
  beginning.n = std::min(query.n, kBeginning);
  KeyOf<T> bound = sampled ? SampleBound<T, kLargest>(row, query, scratch->keys)
                           : MaximaBound<T, kLargest>(row, beginning);
  // The only pass: prefetches not so far ahead that the data leaves L1 again, and beyond the beginning of the
  // next row, where hardware prefetch starts anew.
  constexpr uint32_t kAhead = 4096 / sizeof(T);
  const uint32_t ahead = sampled ? 0 : std::min(query.n, kAhead);
  HitsOf<T>& hits = scratch->hits;
  uint32_t best = 0;
  for (uint32_t at = 0; at < query.n;) {
    hits.count = 0;
    at = ScanFrom<T, kLargest>(row, at, query.n, bound, 1, ahead, &hits);
    if (hits.count == 0) break;
    const KeyOf<T>* const key = std::max_element(hits.keys, hits.keys + hits.count);
    best = hits.indices[key - hits.keys];
    if (*key == kBestKey<T>) break;
    bound = static_cast<KeyOf<T>>(*key + 1);
  }
  return best;
}

// Computes all keys, then selects those that reach a bound.
template <typename T, bool kLargest>
void CollectKeys(const UnsignedOf<sizeof(T)>* HWY_RESTRICT row, const RowQuery& query,
                 RowScratch<T>* scratch) {
  using Key = KeyOf<T>;
  Key* HWY_RESTRICT keys = scratch->keys;
  const uint32_t n = query.n;
  for (uint32_t i = 0; i < n; ++i) keys[i] = KeyOfBits<T, kLargest>(row[i]);
  const Key bound = BoundOf(keys, n, query.k, query.k / 8 + 8);
  Hits<Key>& hits = scratch->hits;
  hits.count = CopyRange<Key>(keys, nullptr, n, bound, kBestKey<T>, hits.keys, hits.indices);
}

// The steps of a selection, for one type and direction.
template <typename T, bool kLargest>
struct Steps {
  using Bits = UnsignedOf<sizeof(T)>;

  static KeyOf<T> Bound(const Bits* row, const RowQuery& query, KeyOf<T>* sample) {
    return query.method == RowMethod::kMaxima ? MaximaBound<T, kLargest>(row, query)
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
    if (query.k == 1 && query.method != RowMethod::kKeys) {
      order[0] = SelectBest<T, kLargest>(row, query, &scratch);
      return;
    }
    if (query.method == RowMethod::kKeys) {
      CollectKeys<T, kLargest>(row, query, &scratch);
    } else {
      Collect<T, kLargest>(row, 0, query.n, query, Bound(row, query, scratch.keys), &scratch.hits);
      if (scratch.hits.count < query.k) {  // the sample was misleading
        scratch.hits.count = 0;
        Collect<T, kLargest>(row, 0, query.n, query, kWorstKey<T>, &scratch.hits);
      }
    }
    Order(query.k, &scratch, order);
  }
};

#define ANYDML_ROW_STEPS(name, T)                                                                           \
  void Select##name(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, std::byte* scratch,            \
                    uint32_t* order) {                                                                      \
    query.largest ? Steps<T, true>::Select(row, query, scratch, order)                                      \
                  : Steps<T, false>::Select(row, query, scratch, order);                                    \
  }                                                                                                         \
  KeyOf<T> Bound##name(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, KeyOf<T>* sample) {         \
    return query.largest ? Steps<T, true>::Bound(row, query, sample)                                        \
                         : Steps<T, false>::Bound(row, query, sample);                                      \
  }                                                                                                         \
  void Collect##name(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, const RowQuery& query, \
                     KeyOf<T> threshold, HitsOf<T>* hits) {                                                 \
    query.largest ? Collect<T, true>(row, begin, end, query, threshold, hits)                               \
                  : Collect<T, false>(row, begin, end, query, threshold, hits);                             \
  }                                                                                                         \
  void Order##name(uint32_t k, RowScratch<T>* scratch, uint32_t* order) { Order(k, scratch, order); }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_ROW_STEPS)
#undef ANYDML_ROW_STEPS

uint32_t Count32(const int32_t* keys, uint32_t count, int32_t bound) {
  return CountReaching(keys, count, bound);
}
uint32_t Count64(const int64_t* keys, uint32_t count, int64_t bound) {
  return CountReaching(keys, count, bound);
}
void Append32(const Hits<int32_t>& from, int32_t worst, int32_t best, Hits<int32_t>* to) {
  to->count += CopyRange(from.keys, from.indices, from.count, worst, best, to->keys + to->count,
                         to->indices + to->count);
}
void Append64(const Hits<int64_t>& from, int64_t worst, int64_t best, Hits<int64_t>* to) {
  to->count += CopyRange(from.keys, from.indices, from.count, worst, best, to->keys + to->count,
                         to->indices + to->count);
}
int32_t Reduce32(uint32_t k, Hits<int32_t>* hits) { return Reduce(k, hits); }
int64_t Reduce64(uint32_t k, Hits<int64_t>* hits) { return Reduce(k, hits); }

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

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
                      KeyOf<T> threshold, HitsOf<T>* hits) {                                                 \
    HWY_DYNAMIC_DISPATCH(Collect##name)(row, begin, end, query, threshold, hits);                            \
  }                                                                                                          \
  template <>                                                                                                \
  void OrderHits<T>(uint32_t k, RowScratch<T> * scratch, uint32_t * order) {                                 \
    HWY_DYNAMIC_DISPATCH(Order##name)(k, scratch, order);                                                    \
  }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_ROW_STEPS)
#undef ANYDML_ROW_STEPS

HWY_EXPORT(Count32);
HWY_EXPORT(Count64);
HWY_EXPORT(Append32);
HWY_EXPORT(Append64);
HWY_EXPORT(Reduce32);
HWY_EXPORT(Reduce64);
uint32_t CountReachingKeys(const int32_t* keys, uint32_t count, int32_t bound) {
  return HWY_DYNAMIC_DISPATCH(Count32)(keys, count, bound);
}
uint32_t CountReachingKeys(const int64_t* keys, uint32_t count, int64_t bound) {
  return HWY_DYNAMIC_DISPATCH(Count64)(keys, count, bound);
}
void AppendRange(const Hits<int32_t>& from, int32_t worst, int32_t best, Hits<int32_t>* to) {
  HWY_DYNAMIC_DISPATCH(Append32)(from, worst, best, to);
}
void AppendRange(const Hits<int64_t>& from, int64_t worst, int64_t best, Hits<int64_t>* to) {
  HWY_DYNAMIC_DISPATCH(Append64)(from, worst, best, to);
}
void ReduceHits(uint32_t k, Hits<int32_t>* hits) { HWY_DYNAMIC_DISPATCH(Reduce32)(k, hits); }
void ReduceHits(uint32_t k, Hits<int64_t>* hits) { HWY_DYNAMIC_DISPATCH(Reduce64)(k, hits); }

}  // namespace anydml
#endif
