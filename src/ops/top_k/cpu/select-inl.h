// From hits to the sorted K best of them. Included once per SIMD target.
#if defined(ANYDML_TOP_K_SELECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYDML_TOP_K_SELECT_INL_H_
#undef ANYDML_TOP_K_SELECT_INL_H_
#else
#define ANYDML_TOP_K_SELECT_INL_H_
#endif

#include <algorithm>

#include "ops/top_k/cpu/keys-inl.h"
#include "ops/top_k/cpu/row_select.h"
#include "ops/top_k/cpu/sort_words.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {

// Up to this number, hits are sorted by counting, for each, how many are better.
inline constexpr uint32_t kRankMost = 64;

// From this number on, hits are radix-sorted. On a Xeon that takes as long as merging at about 750, and half
// as long at 4000.
inline constexpr uint32_t kRadixLeast = 768;

// Sorts a block of up to kRankMost hits.
template <typename Key>
HWY_INLINE void OrderFew(const Key* keys, const uint32_t* indices, uint32_t count, uint32_t k,
                         uint32_t* order) {
  Key ranks[kRankMost + kKeyPadding];
  uint32_t sorted[kRankMost];
  Rank(keys, count, ranks);
  for (uint32_t i = 0; i < count; ++i) sorted[ranks[i]] = indices[i];
  std::copy_n(sorted, k, order);
}

inline NarrowCandidate* SortMany(const Hits<int32_t>& hits, NarrowCandidate* words, NarrowCandidate* other) {
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

inline WideCandidate* SortMany(const Hits<int64_t>& hits, WideCandidate* words, WideCandidate*) {
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
  HitsOf<T>& hits = scratch->hits;
  if (k == 1) {
    order[0] = hits.indices[std::max_element(hits.keys, hits.keys + hits.count) - hits.keys];
    return;
  }
  // As few as one ranking takes, or not many more than K.
  const uint32_t most = k <= kRankMost ? kRankMost : k + k / 4;
  if (hits.count > most) Tighten(k, most - k, &hits);
  if (hits.count > most) Reduce(k, &hits);
  if (hits.count <= kRankMost) return OrderFew(hits.keys, hits.indices, hits.count, k, order);
  const auto* const sorted = SortMany(hits, scratch->words, scratch->other);
  for (uint32_t i = 0; i < k; ++i) order[i] = sorted[i].index();
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#endif  // ANYDML_TOP_K_SELECT_INL_H_
