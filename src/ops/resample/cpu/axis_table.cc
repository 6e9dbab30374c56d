#include "ops/resample/cpu/axis_table.h"

#include <algorithm>

#include "ops/numbers/row_arithmetic.h"

namespace anydml {

AxisTable::AxisTable(const ResampleAxis& axis, bool gradient) {
  if (!gradient) {
    begins_.reserve(axis.to + uint64_t{1});
    for (uint32_t number = 0; number < axis.to; ++number) {
      const Taps taps = TapsOf(axis, number);
      for (uint32_t k = 0; k < taps.count; ++k) taps_.push_back({taps.first + k, WeightOf(axis, taps, k)});
      begins_.push_back(taps_.size());
    }
    return;
  }
  // Counts, then places them in ascending order.
  const auto for_each = [&](auto&& body) {
    for (uint32_t number = 0; number < axis.to; ++number) {
      const Taps taps = TapsOf(axis, number);
      for (uint32_t k = 0; k < taps.count; ++k) body(number, taps, k);
    }
  };
  begins_.assign(axis.from + uint64_t{1}, 0);
  for_each([&](uint32_t, const Taps& taps, uint32_t k) { ++begins_[taps.first + k + 1]; });
  for (uint32_t i = 0; i < axis.from; ++i) begins_[i + 1] += begins_[i];
  taps_.resize(begins_.back());
  std::vector<uint64_t> next(begins_.begin(), begins_.end() - 1);
  for_each([&](uint32_t number, const Taps& taps, uint32_t k) {
    taps_[next[taps.first + k]++] = {number, WeightOf(axis, taps, k)};
  });
}

RowSum::RowSum(const AxisTable& table, uint32_t width) : table_(table), width_(width) {
  std::vector<Pair> pairs(table.size());
  for (uint32_t t = 0; t < table.size(); ++t) {
    const auto taps = table[t];
    if (taps.size() == 1 && taps[0].weight == 1) {
      singles_.push_back(t);
    } else if (taps.size() == 2 && taps[1].index == taps[0].index + 1) {
      pairs[t] = {taps[0].index, {taps[0].weight, taps[1].weight}};
    } else {
      singles_.clear();
      return;
    }
  }
  // If all are single, a pair might read beyond the last element.
  if (width > 1 || singles_.size() == pairs.size()) return;
  pairs_ = std::move(pairs);
  FindPattern(2, 1);
  FindPattern(1, 2);
}

void RowSum::FindPattern(uint32_t repeats, uint32_t step) {
  const auto same_weights = [](const Pair& a, const Pair& b) {
    return a.weights[0] == b.weights[0] && a.weights[1] == b.weights[1];
  };
  for (uint32_t begin = 0; begin < 2 && begin < pairs_.size(); ++begin) {
    uint32_t end = begin;
    while (end < pairs_.size()) {
      const uint32_t first = pairs_[begin].first + (end - begin) / repeats * step;
      const Pair& model = pairs_[begin + (end - begin) % repeats];
      if (table_[end].size() != 2 || pairs_[end].first != first || !same_weights(pairs_[end], model)) break;
      ++end;
    }
    const uint32_t count = (end - begin) / repeats;
    if (count * repeats <= pattern_count_ * repeats_) continue;
    repeats_ = repeats;
    step_ = step;
    pattern_begin_ = begin;
    pattern_count_ = count;
  }
}

void RowSum::ApplyPairs(const float* source, float* target, uint32_t begin, uint32_t end) const {
  const Pair* const pairs = pairs_.data();
  for (uint32_t t = begin; t < end; ++t) {
    const float* const at = source + pairs[t].first;
    target[t] = at[0] * pairs[t].weights[0] + at[1] * pairs[t].weights[1];
  }
}

void RowSum::ApplyWide(const float* source, float* target) const {
  for (uint32_t t = 0; t < table_.size(); ++t) {
    const auto taps = table_[t];
    float* const to = target + uint64_t{t} * width_;
    const auto from = [&](size_t k) { return source + uint64_t{taps[k].index} * width_; };
    if (taps.empty()) {
      std::fill_n(to, width_, 0.0f);
    } else if (taps.size() == 2) {
      MixRows(from(0), taps[0].weight, from(1), taps[1].weight, to, width_);
    } else {
      ScaleRow(from(0), taps[0].weight, to, width_);
      for (size_t k = 1; k < taps.size(); ++k) AddScaledRow(from(k), taps[k].weight, to, width_);
    }
  }
}

void RowSum::Apply(const float* source, float* target) const {
  if (width_ > 1) return ApplyWide(source, target);
  if (pairs_.empty()) {
    for (uint32_t t = 0; t < table_.size(); ++t) {
      const auto taps = table_[t];
      float sum = taps.empty() ? 0 : source[taps[0].index] * taps[0].weight;
      for (size_t k = 1; k < taps.size(); ++k) sum += source[taps[k].index] * taps[k].weight;
      target[t] = sum;
    }
    return;
  }
  const uint32_t pattern_end = pattern_begin_ + pattern_count_ * repeats_;
  ApplyPairs(source, target, 0, pattern_begin_);
  if (pattern_count_ > 0) {
    const Pair& pair = pairs_[pattern_begin_];
    if (repeats_ == 2) {
      DoubleRow(source + pair.first, pattern_count_, pair.weights, pairs_[pattern_begin_ + 1].weights,
                target + pattern_begin_);
    } else {
      HalveRow(source + pair.first, pattern_count_, pair.weights, target + pattern_begin_);
    }
  }
  ApplyPairs(source, target, pattern_end, static_cast<uint32_t>(pairs_.size()));
  for (const uint32_t t : singles_) target[t] = source[table_[t][0].index];
}

}  // namespace anydml
