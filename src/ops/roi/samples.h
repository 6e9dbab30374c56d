// The places of a region's samples, and their values. constexpr functions are compiled for devices, too.
//
// Sums are in FLOAT32, over a grid's rows, its columns, a number's rows of samples and their columns, in this
// order; a mean sums every row of samples and then the rows, since a single sum over many samples would lose
// digits. Samples outside the image are never visited, because a large region may have any number of them.
#pragma once

#include <cstdint>

#include "ops/resample/taps.h"
#include "ops/roi/problem.h"

namespace anydml {

// One direction of a region.
struct RegionAxis {
  uint32_t size = 1;     // of the image
  uint32_t outputs = 1;  // of the grid
  uint32_t samples = 1;  // per output
  float begin = 0;
  float length = 0;
  float divisor = 1;  // the number of samples by which the length is divided
  float step = 0;
  bool is_middle = false;  // a single sample, in the middle
  bool linear = true;
  float input_offset = 0, output_offset = 0;
};

struct SampleRange {
  uint64_t first = 0;
  uint64_t end = 0;
};

// Saturates at 2^32 - 1.
constexpr uint32_t CeilToCount(float x) {
  if (!(x > 0)) return 0;
  if (x >= 0x1p32f) return ~0u;
  const float whole = -FloorOf(-x);
  return whole >= 0x1p32f ? ~0u : static_cast<uint32_t>(whole);
}

constexpr RegionAxis RegionAxisOf(const RoiProblem& p, float low, float high, float scale, uint32_t outputs,
                                  uint32_t size) {
  RegionAxis axis;
  axis.size = size;
  axis.outputs = outputs;
  axis.begin = low * scale;
  axis.length = (high - low) * scale;
  const uint32_t wanted = CeilToCount(axis.length / static_cast<float>(outputs));
  const uint32_t at_least = wanted > p.min_samples ? wanted : p.min_samples;
  axis.samples = at_least < p.max_samples ? at_least : p.max_samples;
  const uint64_t all = uint64_t{outputs} * axis.samples;
  axis.divisor = static_cast<float>(p.corners ? all - 1 : all);
  axis.is_middle = p.corners && all == 1;
  axis.step = axis.is_middle ? 0 : axis.length / axis.divisor;
  axis.linear = p.linear;
  axis.input_offset = p.input_offset;
  axis.output_offset = p.output_offset;
  return axis;
}

// The place of sample `k` of the whole axis.
constexpr float SamplePlace(const RegionAxis& axis, uint64_t k) {
  const float way =
      axis.is_middle ? axis.length * 0.5f : (static_cast<float>(k) - axis.output_offset) * axis.step;
  return way + axis.begin - axis.input_offset;
}

// The relative position of a sample between the region's begin and end, on which its place depends.
constexpr float SampleShare(const RegionAxis& axis, uint64_t k) {
  return axis.is_middle ? 0.5f : (static_cast<float>(k) - axis.output_offset) / axis.divisor;
}

constexpr bool IsBehindBegin(float x) { return x > -1; }
constexpr bool IsBeforeEnd(const RegionAxis& axis, float x) { return x < static_cast<float>(axis.size); }

constexpr Taps SampleTaps(const RegionAxis& axis, float x) {
  if (axis.linear) return LinearTaps(axis.size, x);
  Taps taps;
  taps.first = ClampedIndex(FloorOf(x + 0.5f), axis.size);
  return taps;
}

// The samples of [begin, end) for which `enters` holds and `leaves` does not; both are monotonic: once true,
// they stay true.
template <typename Enters, typename Leaves>
constexpr SampleRange RangeBetween(uint64_t begin, uint64_t end, Enters enters, Leaves leaves) {
  const auto first_that = [](uint64_t low, uint64_t high, const auto& holds) {
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (holds(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  const uint64_t first = first_that(begin, end, enters);
  return {first, first_that(first, end, leaves)};
}

// The samples of output `output` that are inside the image.
constexpr SampleRange InsideSamples(const RegionAxis& axis, uint32_t output) {
  const uint64_t begin = uint64_t{output} * axis.samples, end = begin + axis.samples;
  const bool descends = axis.step < 0;
  const auto enters = [&axis, descends](uint64_t k) {
    const float x = SamplePlace(axis, k);
    return descends ? IsBeforeEnd(axis, x) : IsBehindBegin(x);
  };
  const auto leaves = [&axis, descends](uint64_t k) {
    const float x = SamplePlace(axis, k);
    return descends ? !IsBehindBegin(x) : !IsBeforeEnd(axis, x);
  };
  return RangeBetween(begin, end, enters, leaves);
}

// The samples of the whole axis that take element `index` of the image.
constexpr SampleRange SamplesThatTake(const RegionAxis& axis, uint32_t index) {
  const auto reaches = [&axis, index](uint64_t k) {  // it, or a later one
    const float x = SamplePlace(axis, k);
    const Taps taps = SampleTaps(axis, x);
    return IsBehindBegin(x) && taps.first + (taps.count - 1) >= index;
  };
  const auto is_reached = [&axis, index](uint64_t k) {  // it, or an earlier one
    const float x = SamplePlace(axis, k);
    return IsBeforeEnd(axis, x) && SampleTaps(axis, x).first <= index;
  };
  const bool descends = axis.step < 0;
  return RangeBetween(
      0, uint64_t{axis.outputs} * axis.samples,
      [&](uint64_t k) { return descends ? is_reached(k) : reaches(k); },
      [&](uint64_t k) { return descends ? !reaches(k) : !is_reached(k); });
}

// Elements with weight 0 are ignored.
constexpr float MixOf(float a, float b, float weight) {
  return weight == 0 ? a : a * (1 - weight) + b * weight;
}

// load(row, column) is an element of the image.
template <typename Load>
constexpr float SampleValue(const Taps& y, const Taps& x, const Load& load) {
  const auto row = [&](uint32_t at) {
    const float left = load(at, x.first);
    return x.count == 1 ? left : MixOf(left, load(at, x.first + 1), x.second);
  };
  const float upper = row(y.first);
  return y.count == 1 ? upper : MixOf(upper, row(y.first + 1), y.second);
}

// NaN if either is; +0 is larger than -0.
constexpr float LargerOf(float a, float b) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  if (a != a) return a;
  // NOLINTNEXTLINE(misc-redundant-expression)
  if (b != b) return b;
  if (a == b) return a == 0 ? a + b : a;
  return a > b ? a : b;
}

// One number of a grid.
template <typename Load>
constexpr float AlignedValue(const RoiProblem& p, const RegionAxis& y, const RegionAxis& x, uint32_t row,
                             uint32_t column, const Load& load) {
  const SampleRange rows = InsideSamples(y, row), columns = InsideSamples(x, column);
  const uint64_t all = uint64_t{y.samples} * x.samples;
  const uint64_t outside = all - (rows.end - rows.first) * (columns.end - columns.first);
  float sum = 0;
  bool is_first = true;
  const auto add = [&](float term) {
    sum = is_first ? term : p.maximum ? LargerOf(sum, term) : sum + term;
    is_first = false;
  };
  for (uint64_t i = rows.first; i < rows.end && columns.first < columns.end; ++i) {
    const Taps y_taps = SampleTaps(y, SamplePlace(y, i));
    float row_sum = SampleValue(y_taps, SampleTaps(x, SamplePlace(x, columns.first)), load);
    for (uint64_t j = columns.first + 1; j < columns.end; ++j) {
      const float value = SampleValue(y_taps, SampleTaps(x, SamplePlace(x, j)), load);
      row_sum = p.maximum ? LargerOf(row_sum, value) : row_sum + value;
    }
    add(row_sum);
  }
  if (outside > 0) add(p.maximum ? p.outside : p.outside * static_cast<float>(outside));
  return p.maximum ? sum : sum / static_cast<float>(all);
}

// The samples of a number through which its gradient flows: all inside the image, or the first of the largest
// ones.
template <typename Load>
constexpr void FindSources(const RoiProblem& p, const RegionAxis& y, const RegionAxis& x, uint32_t row,
                           uint32_t column, const Load& load, SampleRange* rows, SampleRange* columns) {
  *rows = InsideSamples(y, row);
  *columns = InsideSamples(x, column);
  if (!p.maximum || rows->first == rows->end || columns->first == columns->end) return;
  uint64_t best_row = rows->first, best_column = columns->first;
  float best = 0;
  bool is_first = true;
  for (uint64_t i = rows->first; i < rows->end; ++i) {
    const Taps y_taps = SampleTaps(y, SamplePlace(y, i));
    for (uint64_t j = columns->first; j < columns->end; ++j) {
      const float value = SampleValue(y_taps, SampleTaps(x, SamplePlace(x, j)), load);
      // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
      const bool is_larger = value > best || (value != value && best == best);
      if (!is_first && !is_larger) continue;
      is_first = false;
      best = value;
      best_row = i;
      best_column = j;
    }
  }
  *rows = {best_row, best_row + 1};
  *columns = {best_column, best_column + 1};
}

// The gradient of each of a number's samples.
constexpr float SampleGradient(const RoiProblem& p, const RegionAxis& y, const RegionAxis& x,
                               float gradient) {
  return p.maximum ? gradient : gradient / static_cast<float>(uint64_t{y.samples} * x.samples);
}

// The derivative of a sample's value along x, then along y; 0 if both neighbours are the same element.
template <typename Load>
constexpr float SlopeX(const Taps& y, const Taps& x, const Load& load) {
  if (x.count == 1) return 0;
  const auto row = [&](uint32_t at) { return load(at, x.first + 1) - load(at, x.first); };
  return y.count == 1 ? row(y.first) : MixOf(row(y.first), row(y.first + 1), y.second);
}
template <typename Load>
constexpr float SlopeY(const Taps& y, const Taps& x, const Load& load) {
  return SlopeX(x, y, [&](uint32_t column, uint32_t row) { return load(row, column); });
}

// The gradients of x1, y1, x2 and y2.
struct RegionGradient {
  float sums[4] = {};
};

// The numbers of a region are added in this many sums, in turn, and those pairwise: the first with the one in
// the middle, and so on.
inline constexpr uint32_t kRegionSums = 256;

template <typename Load>
constexpr void AddRegionGradient(const RoiProblem& p, const RegionAxis& y, const RegionAxis& x, uint32_t row,
                                 uint32_t column, float gradient, const Load& load, RegionGradient* sums) {
  if (!p.linear) return;
  SampleRange rows, columns;
  FindSources(p, y, x, row, column, load, &rows, &columns);
  const float share = SampleGradient(p, y, x, gradient);
  for (uint64_t i = rows.first; i < rows.end; ++i) {
    const Taps y_taps = SampleTaps(y, SamplePlace(y, i));
    const float t_y = SampleShare(y, i);
    for (uint64_t j = columns.first; j < columns.end; ++j) {
      const Taps x_taps = SampleTaps(x, SamplePlace(x, j));
      const float t_x = SampleShare(x, j);
      const float slope_x = SlopeX(y_taps, x_taps, load) * share;
      const float slope_y = SlopeY(y_taps, x_taps, load) * share;
      sums->sums[0] += slope_x * (p.scale_x * (1 - t_x));
      sums->sums[1] += slope_y * (p.scale_y * (1 - t_y));
      sums->sums[2] += slope_x * (p.scale_x * t_x);
      sums->sums[3] += slope_y * (p.scale_y * t_y);
    }
  }
}

// The weight of element `index` in the sample `taps`.
constexpr float TapWeight(const Taps& taps, uint32_t index) {
  if (taps.count == 1) return 1;
  return index == taps.first ? 1 - taps.second : taps.second;
}

// ROI_POOLING: the elements of an output are [begin, end).
struct PooledRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// Halves away from zero; clamped beyond the size of any image.
constexpr int64_t RoundedPlace(float x) {
  constexpr float kFar = 0x1p30f;
  if (!(x > -kFar)) return x < 0 ? -(int64_t{1} << 30) : 0;  // NaN: 0
  if (x >= kFar) return int64_t{1} << 30;
  const float magnitude = x < 0 ? -x : x, floor = FloorOf(magnitude);
  const int64_t rounded = static_cast<int64_t>(floor) + (magnitude - floor >= 0.5f ? 1 : 0);
  return x < 0 ? -rounded : rounded;
}

constexpr PooledRange PooledRangeOf(float low, float high, float scale, uint32_t output, uint32_t outputs,
                                    uint32_t size) {
  const int64_t first = RoundedPlace(low * scale), last = RoundedPlace(high * scale);
  const uint64_t length = last > first ? static_cast<uint64_t>(last - first) + 1 : 1;
  const auto begin = static_cast<int64_t>(output * length / outputs) + first;
  const auto end = static_cast<int64_t>(((uint64_t{output} + 1) * length + outputs - 1) / outputs) + first;
  const auto clamped = [size](int64_t at) {
    return static_cast<uint32_t>(at < 0 ? 0 : at > int64_t{size} ? int64_t{size} : at);
  };
  return {clamped(begin), clamped(end)};
}

// 0 if the range is empty.
template <typename Load>
constexpr float PooledValue(const PooledRange& rows, const PooledRange& columns, const Load& load) {
  float largest = 0;
  bool is_first = true;
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    for (uint32_t column = columns.begin; column < columns.end; ++column) {
      const float value = load(row, column);
      largest = is_first ? value : LargerOf(largest, value);
      is_first = false;
    }
  }
  return largest;
}

}  // namespace anydml
