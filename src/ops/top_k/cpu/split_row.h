// One long row that several threads share: each collects from its part of the row, then each sorts a range of
// the values.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>

#include "ops/common/parallel.h"
#include "ops/top_k/cpu/row_select.h"

namespace anydml {

template <typename T>
class SplitRow {
 public:
  using Bits = UnsignedOf<sizeof(T)>;
  using Key = KeyOf<T>;
  static constexpr uint32_t kMaxParts = 64;

  // Two per part: its hits, and a range of the values.
  static uint64_t ScratchBytes(const RowQuery& query, uint32_t parts) {
    return 2 * parts * RowScratch<T>(query).bytes;
  }

  // `query.method` is kSample. Parts have at least 64 elements.
  SplitRow(const Bits* row, const RowQuery& query, uint32_t parts, std::byte* scratch)
      : row_(row), query_(query), parts_(parts), scratch_(scratch) {}

  // Writes the indices of the K best to `order`. Calls store(first, count), from several threads, when the
  // places [first, first + count) are written.
  template <typename Store>
  void Run(Executor* executor, uint32_t* order, const Store& store) {
    Collect(executor);
    if (total_ >= kSharedOrder) {
      ChoosePivots();
      std::atomic<bool> fits = true;
      std::atomic<uint32_t> next = 0;
      ParallelFor(executor, parts_, [&](uint32_t worker) {
        for (uint32_t range; (range = next.fetch_add(1, std::memory_order_relaxed)) < Ranges();) {
          if (!OrderRange(range, worker, order, store)) fits.store(false, std::memory_order_relaxed);
        }
      });
      if (fits.load(std::memory_order_relaxed)) return;
    }
    MergeParts(order);
    store(0u, query_.k);
  }

 private:
  // Fewer hits are sorted by one thread.
  static constexpr uint32_t kSharedOrder = 512;
  // If parts are this many times longer than K, each finds its own K best; otherwise collecting twice as many
  // hits costs more than waiting for a common sample.
  static constexpr uint32_t kOwnMaxima = 512;
  // More than threads, because ranges differ in work.
  uint32_t Ranges() const { return 3 * parts_; }
  // Samples per range, from which its limits are chosen.
  static constexpr uint32_t kPivotSample = 8;

  RowScratch<T> Scratch(uint64_t number) const {
    return RowScratch<T>(query_, scratch_ + number * RowScratch<T>(query_).bytes);
  }
  Hits<Key> Found(uint32_t part) const {
    Hits<Key> hits = Scratch(part).hits;
    hits.count = found_[part];
    return hits;
  }

  // With a small K, nobody waits for a sample of the whole row.
  void Collect(Executor* executor) {
    if (uint64_t{query_.k} * parts_ <= query_.n / kOwnMaxima) {
      ParallelFor(executor, parts_, [&](uint32_t part) { CollectMaximaOf(part); });
    } else {
      CollectAll(executor, BoundRow<T>(row_, query_, Scratch(0).keys));
      if (Total() < query_.k) CollectAll(executor, kWorstKey<T>);  // the sample was misleading
    }
    total_ = Total();
  }

  void CollectAll(Executor* executor, Key threshold) {
    ParallelFor(executor, parts_, [&](uint32_t part) { found_[part] = CollectFrom(part, threshold).count; });
  }

  // Collects the K best of a part, and others if that leaves few enough hits for one thread.
  void CollectMaximaOf(uint32_t part) {
    RowQuery query = query_;
    query.n = Begin(part + 1) - Begin(part);
    Hits<Key> hits = CollectFrom(part, BoundRow<T>(row_ + Begin(part), query, Scratch(part).keys));
    if (hits.count < query_.k) hits = CollectFrom(part, kWorstKey<T>);  // the sample was misleading
    if (hits.count >= kSharedOrder / parts_) ReduceHits(query_.k, &hits);
    found_[part] = hits.count;
  }

  Hits<Key> CollectFrom(uint32_t part, Key threshold) const {
    Hits<Key> hits = Scratch(part).hits;
    CollectPart<T>(row_, Begin(part), Begin(part + 1), query_, threshold, &hits);
    return hits;
  }

  uint32_t Begin(uint32_t part) const { return static_cast<uint32_t>(PartBegin(query_.n, part, parts_)); }
  uint64_t Total() const { return std::accumulate(found_.begin(), found_.begin() + parts_, uint64_t{0}); }

  // Range r has the keys from pivots_[r] on that are in no earlier range.
  void ChoosePivots() {
    std::array<Key, 3 * kMaxParts * kPivotSample> sample;
    const uint64_t step = std::max<uint64_t>(1, total_ / (Ranges() * kPivotSample));
    uint32_t size = 0;
    uint64_t next = 0;  // of the present part
    for (uint32_t part = 0; part < parts_; ++part) {
      const Hits<Key> hits = Found(part);
      for (; next < hits.count && size < Ranges() * kPivotSample; next += step)
        sample[size++] = hits.keys[next];
      next -= std::min<uint64_t>(next, hits.count);
    }
    std::sort(sample.begin(), sample.begin() + size, std::greater<>());
    for (uint32_t range = 0; range + 1 < Ranges(); ++range) {
      pivots_[range] = sample[uint64_t{size} * (range + 1) / Ranges()];
    }
    pivots_[Ranges() - 1] = kWorstKey<T>;
  }

  // False if the range has more hits than there are places.
  template <typename Store>
  bool OrderRange(uint32_t range, uint32_t worker, uint32_t* order, const Store& store) {
    // The best key of the range; a repeated pivot gives an empty range.
    if (range > 0 && pivots_[range - 1] == pivots_[range]) return true;
    const Key best = range == 0 ? kBestKey<T> : static_cast<Key>(pivots_[range - 1] - 1);
    const uint64_t first = range == 0 ? 0 : CountReachingAll(pivots_[range - 1]);
    if (first >= query_.k) return true;
    const uint64_t count = CountReachingAll(pivots_[range]) - first;
    if (count == 0) return true;
    if (count > MostHits(query_)) return false;
    RowScratch<T> scratch = Scratch(parts_ + worker);
    for (uint32_t part = 0; part < parts_; ++part)
      AppendRange(Found(part), pivots_[range], best, &scratch.hits);
    const auto places = static_cast<uint32_t>(std::min<uint64_t>(count, query_.k - first));
    OrderHits<T>(places, &scratch, order + first);
    store(static_cast<uint32_t>(first), places);
    return true;
  }

  uint64_t CountReachingAll(Key bound) const {
    uint64_t count = 0;
    for (uint32_t part = 0; part < parts_; ++part) {
      const Hits<Key> hits = Found(part);
      count += CountReachingKeys(hits.keys, hits.count, bound);
    }
    return count;
  }

  // One thread merges the hits of all parts one after the other, with at most as many at a time as there are
  // places.
  void MergeParts(uint32_t* order) {
    RowScratch<T> scratch = Scratch(parts_);
    Hits<Key>& all = scratch.hits;
    for (uint32_t part = 0; part < parts_; ++part) {
      const Hits<Key> hits = Found(part);
      for (uint32_t from = 0; from < hits.count;) {
        if (all.count == MostHits(query_)) ReduceHits(query_.k, &all);
        const uint32_t count = std::min(hits.count - from, MostHits(query_) - all.count);
        std::copy_n(hits.keys + from, count, all.keys + all.count);
        std::copy_n(hits.indices + from, count, all.indices + all.count);
        all.count += count;
        from += count;
      }
    }
    OrderHits<T>(query_.k, &scratch, order);
  }

  const Bits* const row_;
  const RowQuery query_;
  const uint32_t parts_;
  std::byte* const scratch_;
  std::array<uint32_t, kMaxParts> found_{};
  std::array<Key, 3 * kMaxParts> pivots_{};
  uint64_t total_ = 0;
};

}  // namespace anydml
