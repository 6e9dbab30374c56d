#include "ops/resample/cpu/axis_table.h"

#include <algorithm>
#include <cstring>

#include "ops/resample/cpu/row_arithmetic.h"

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
  // Counted, then put into place in ascending order.
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

RowSum::RowSum(const AxisTable& table) : table_(table) {
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
  // All single: what a pair would read behind the first may not be there.
  if (singles_.size() == pairs.size()) return;
  pairs_ = std::move(pairs);
  FindDoubling();
}

void RowSum::FindDoubling() {
  const auto same_weights = [](const Pair& a, const Pair& b) {
    return std::memcmp(a.weights, b.weights, sizeof(a.weights)) == 0;
  };
  const auto is_pair = [&](uint32_t t) { return table_[t].size() == 2; };
  for (uint32_t begin = 0; begin < 2; ++begin) {
    uint32_t end = begin;
    while (end + 1 < pairs_.size() && is_pair(end) && is_pair(end + 1) &&
           pairs_[end].first == pairs_[begin].first + (end - begin) / 2 &&
           pairs_[end + 1].first == pairs_[end].first && same_weights(pairs_[end], pairs_[begin]) &&
           same_weights(pairs_[end + 1], pairs_[begin + 1])) {
      end += 2;
    }
    if ((end - begin) / 2 <= doubles_) continue;
    doubled_ = begin;
    doubles_ = (end - begin) / 2;
  }
}

void RowSum::ApplyPairs(const float* source, float* target, uint32_t begin, uint32_t end) const {
  const Pair* const pairs = pairs_.data();
  for (uint32_t t = begin; t < end; ++t) {
    const float* const at = source + pairs[t].first;
    target[t] = OneNan(at[0] * pairs[t].weights[0] + at[1] * pairs[t].weights[1]);
  }
}

void RowSum::Apply(const float* source, float* target) const {
  if (pairs_.empty()) {
    for (uint32_t t = 0; t < table_.size(); ++t) {
      const auto taps = table_[t];
      float sum = taps.empty() ? 0 : source[taps[0].index] * taps[0].weight;
      for (size_t k = 1; k < taps.size(); ++k) sum += source[taps[k].index] * taps[k].weight;
      target[t] = OneNan(sum);
    }
    return;
  }
  const uint32_t behind = doubled_ + 2 * doubles_;
  ApplyPairs(source, target, 0, doubled_);
  if (doubles_ > 0) {
    const Pair& even = pairs_[doubled_];
    const Pair& odd = pairs_[doubled_ + 1];
    DoubleRow(source + even.first, doubles_, even.weights, odd.weights, target + doubled_);
  }
  ApplyPairs(source, target, behind, static_cast<uint32_t>(pairs_.size()));
  for (const uint32_t t : singles_) target[t] = OneNan(source[table_[t][0].index]);
}

}  // namespace anydml
