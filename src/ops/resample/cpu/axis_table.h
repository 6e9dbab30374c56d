// A table of what every number of the target takes along one dimension.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/resample/taps.h"

namespace anydml {

struct WeightedTap {
  uint32_t index;
  float weight;
};

class AxisTable {
 public:
  AxisTable() = default;
  AxisTable(const ResampleAxis& axis, bool gradient);

  uint32_t size() const { return static_cast<uint32_t>(begins_.size() - 1); }
  std::span<const WeightedTap> operator[](uint32_t number) const {
    return {taps_.data() + begins_[number], taps_.data() + begins_[number + 1]};
  }

 private:
  std::vector<uint64_t> begins_ = {0};
  std::vector<WeightedTap> taps_;
};

// Sums along rows of a fixed length, of elements of `width` numbers each.
class RowSum {
 public:
  RowSum() = default;
  RowSum(const AxisTable& table, uint32_t width);

  void Apply(const float* source, float* target) const;

 private:
  // Two adjacent taps.
  struct Pair {
    uint32_t first;
    float weights[2];
  };
  void FindPattern(uint32_t repeats, uint32_t step);
  void ApplyPairs(const float* source, float* target, uint32_t begin, uint32_t end) const;
  void ApplyWide(const float* source, float* target) const;

  AxisTable table_;
  uint32_t width_ = 1;
  std::vector<Pair> pairs_;        // empty if sums are longer
  std::vector<uint32_t> singles_;  // numbers that take a single element, which their pairs ignore
  // The pattern of most pairs, from pattern_begin_ on: `repeats` of them share a first element, the next ones
  // have the element `step` further on, and weights repeat, too.
  uint32_t repeats_ = 0;
  uint32_t step_ = 0;
  uint32_t pattern_begin_ = 0;
  uint32_t pattern_count_ = 0;
};

}  // namespace anydml
