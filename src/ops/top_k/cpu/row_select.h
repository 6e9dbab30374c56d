// The K best of one packed row, vectorised (Highway, with run-time dispatch): finds few elements that contain
// them, then sorts those.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/top_k/cpu/key.h"

namespace anydml {

// Ways to find few elements that certainly (or probably) contain the K best. Maxima are of keys, which are
// larger for the better element in either direction.
enum class RowMethod {
  kAll,     // a short row: all elements
  kMaxima,  // those that reach the K-th largest of the maxima of groups of the row
  kSample,  // those that reach a rank of a sorted sample; verified afterwards
  kKeys,    // those that reach a bound found by counting in a copy of keys
};

struct RowQuery {
  uint32_t n = 0;
  uint32_t k = 0;
  bool largest = true;
  RowMethod method = RowMethod::kAll;
};

inline constexpr uint32_t kMaxAllElements = 64;     // kAll
inline constexpr uint32_t kMaxMaximaPlaces = 80;    // kMaxima: the largest K
inline constexpr uint32_t kMinMaximaElements = 65;  // kMaxima: longer than any vector
inline constexpr uint32_t kMaximaGroup = 6;         // kMaxima: the fewest elements per K
inline constexpr uint32_t kMinSampleElements = 512;
inline constexpr uint32_t kMaxSample = 16384;
inline constexpr uint32_t kSampleNeighbours = 16;

// kMaxima: the number of groups. With G groups, of which K reach the bound, about G ln(G / (G - K)) elements
// reach it: 1.6 K.
inline uint32_t GroupsFor(uint32_t k) { return std::max(k + k / 2 + k / 8, 16u); }

// The elements found: keys and indices, by ascending index.
template <typename Key>
struct Hits {
  Key* keys;
  uint32_t* indices;
  uint32_t count;
};

template <typename T>
using HitsOf = Hits<KeyOf<T>>;

// The most hits that are kept at a time: more than K, or the whole row. When they are full they are reduced
// to K, which should be worth the work.
inline uint32_t MostHits(const RowQuery& query) {
  if (query.method == RowMethod::kKeys) return query.n;
  const uint64_t most = query.k + std::max<uint64_t>(query.k, 128);
  return static_cast<uint32_t>(std::min<uint64_t>(most, query.n));
}

// A step examines 4 vectors of up to 64 lanes before it counts its hits.
inline constexpr uint32_t kScanStep = 256;

// Places for hits, including those that a step may write beyond what it keeps.
inline uint64_t HitPlaces(const RowQuery& query) { return uint64_t{MostHits(query)} + 2 * kScanStep; }

// The scratch for a selection from one row, laid out in `memory` (aligned to 16 bytes): O(K), except for
// kKeys, which needs O(N).
template <typename T>
struct RowScratch {
  using Key = KeyOf<T>;
  using Cand = Candidate<sizeof(T)>;

  explicit RowScratch(const RowQuery& query, std::byte* memory = nullptr) {
    if (query.method == RowMethod::kAll) return;
    const uint64_t places = HitPlaces(query);
    uint64_t keys_count = 0;
    if (query.method == RowMethod::kKeys) keys_count = query.n;
    if (query.method == RowMethod::kSample) keys_count = kMaxSample + kMaxSample / kSampleNeighbours;
    hits = {Take<Key>(memory, places), Take<uint32_t>(memory, places), 0};
    words = Take<Cand>(memory, places);
    other = sizeof(T) == 8 ? nullptr : Take<Cand>(memory, places);
    keys = Take<Key>(memory, keys_count);
  }

  Hits<Key> hits{};
  Cand* words = nullptr;  // for sorting
  Cand* other = nullptr;
  Key* keys = nullptr;  // of all elements, or of a sample
  uint64_t bytes = 0;

 private:
  template <typename U>
  U* Take(std::byte* memory, uint64_t count) {
    auto* const taken = memory == nullptr ? nullptr : reinterpret_cast<U*>(memory + bytes);
    bytes += (count * sizeof(U) + 63) / 64 * 64;
    return taken;
  }
};

// The indices of the K best, best first. `scratch` has RowScratch<T>(query).bytes.
template <typename T>
void SelectRow(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, std::byte* scratch, uint32_t* order);

// The steps of it, for a row that several threads share.

// A key that K elements reach: certainly (kMaxima) or probably (kSample).
template <typename T>
KeyOf<T> BoundRow(const UnsignedOf<sizeof(T)>* row, const RowQuery& query, KeyOf<T>* sample);

// Appends to the (empty) hits the elements of row[begin, end) that reach the threshold, except some that are
// certainly not among the K best. For parts of 64 or more elements.
template <typename T>
void CollectPart(const UnsignedOf<sizeof(T)>* row, uint32_t begin, uint32_t end, const RowQuery& query,
                 KeyOf<T> threshold, HitsOf<T>* hits);

// The number of keys that are `bound` or better.
uint32_t CountReachingKeys(const int32_t* keys, uint32_t count, int32_t bound);
uint32_t CountReachingKeys(const int64_t* keys, uint32_t count, int64_t bound);

// Appends the hits of `from` whose keys are from `worst` to `best`.
void AppendRange(const Hits<int32_t>& from, int32_t worst, int32_t best, Hits<int32_t>* to);
void AppendRange(const Hits<int64_t>& from, int64_t worst, int64_t best, Hits<int64_t>* to);

// Keeps the K best hits (of equal ones the first), in order.
void ReduceHits(uint32_t k, Hits<int32_t>* hits);
void ReduceHits(uint32_t k, Hits<int64_t>* hits);

// The indices of the K best of scratch->hits, best first.
template <typename T>
void OrderHits(uint32_t k, RowScratch<T>* scratch, uint32_t* order);

}  // namespace anydml
