#include "ops/convolution/cpu/panels.h"

#include <algorithm>
#include <cstring>

#include "ops/element/cpu/blocks.h"
#include "ops/gemm/cpu/operands.h"
#include "ops/gemm/cpu/panel_rows.h"

namespace anydml {
namespace {

uint64_t Width(DataType type) { return BitSize(type) / 8; }

// `count` numbers that are `stride` elements apart.
void LoadSome(const std::byte* data, DataType type, uint64_t stride, uint64_t count, float* to) {
  const Block block = {.columns = count, .column_stride = stride};
  FindLoad(type, Class::kF32)(data, block, to);
}

// A step's channel and taps.
struct Step {
  uint64_t channel;
  uint32_t taps[kMaxSpatial];

  Step(const ConvolutionShape& p, uint64_t number) {
    for (uint32_t d = kMaxSpatial; d-- > 0; number /= p.windows[d].taps) {
      taps[d] = static_cast<uint32_t>(number % p.windows[d].taps);
    }
    channel = number;
  }
};

}  // namespace

FilterPanels::FilterPanels(const ConvolutionShape& shape, DataType type, const std::byte* filter,
                           const float* zero_points)
    : shape_(shape), type_(type), data_(filter), zero_points_(zero_points) {
  uint64_t expected = 1;
  contiguous_ = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= shape.windows[d].taps) {
    contiguous_ = contiguous_ && (shape.windows[d].taps == 1 || shape.filter.spatial[d] == expected);
  }
  contiguous_ = contiguous_ && (shape.input_channels == 1 || shape.filter.channel == expected);
}

void FilterPanels::Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                        float* to) const {
  const ConvolutionShape& p = shape_;
  if (contiguous_ && zero_points_ == nullptr) {
    StridedPanels(data_, type_, p.filter.output_channel, 1).Pack(first, count, step, steps, width, to);
    return;
  }
  PackRows(
      count, steps, width, to, [](uint64_t, uint64_t) {},
      [&](uint64_t element, uint64_t some, uint64_t s, float* row) {
        const Step at(p, step + s);
        uint64_t offset = (first + element) * p.filter.output_channel + at.channel * p.filter.channel;
        for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at.taps[d] * p.filter.spatial[d];
        // Behind or, of a mirrored filter, before the first tap.
        const auto bytes = static_cast<ptrdiff_t>(offset * Width(type_));
        LoadSome(data_ + bytes, type_, p.filter.output_channel, some, row);
        if (zero_points_ == nullptr) return;
        for (uint64_t e = 0; e < some; ++e) row[e] -= zero_points_[first + element + e];
      });
}

WindowPanels::WindowPanels(const ConvolutionShape& shape, DataType type, const std::byte* input,
                           const float* zero_points)
    : shape_(shape), type_(type), data_(input), zero_points_(zero_points) {
  uint64_t expected = 1;
  plain_ = shape.Taps() == 1 && zero_points == nullptr;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= shape.windows[d].input) {
    const ConvolutionWindow& w = shape.windows[d];
    plain_ = plain_ && w.stride == 1 && w.start_padding == 0 && w.reached == w.input && w.output == w.input &&
             (w.input == 1 || shape.input.spatial[d] == expected);
  }
}

void WindowPanels::Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                        float* to) const {
  const ConvolutionShape& p = shape_;
  if (plain_) {
    StridedPanels(data_, type_, 1, p.input.channel).Pack(first, count, step, steps, width, to);
    return;
  }
  // The positions, row by row of the output.
  Run runs[kPanelRowElements];
  uint32_t run_count = 0;
  const auto find_runs = [&](uint64_t element, uint64_t some) {
    run_count = 0;
    for (uint64_t position = first + element; position < first + element + some;) {
      Run& run = runs[run_count++];
      run.position = position;
      uint64_t rest = position;
      for (uint32_t d = kMaxSpatial; d-- > 0; rest /= p.windows[d].output) {
        run.at[d] = static_cast<uint32_t>(rest % p.windows[d].output);
      }
      run.count = static_cast<uint32_t>(std::min<uint64_t>(
          first + element + some - position, p.windows[kMaxSpatial - 1].output - run.at[kMaxSpatial - 1]));
      position += run.count;
    }
  };
  PackRows(count, steps, width, to, find_runs, [&](uint64_t, uint64_t, uint64_t s, float* row) {
    const Step at(p, step + s);
    for (uint32_t r = 0; r < run_count; row += runs[r++].count) PackRun(runs[r], at.channel, at.taps, row);
  });
}

void WindowPanels::PackRun(const Run& run, uint64_t channel, const uint32_t (&taps)[kMaxSpatial],
                           float* to) const {
  const ConvolutionShape& p = shape_;
  uint64_t offset = channel * p.input.channel;
  for (uint32_t d = 0; d + 1 < kMaxSpatial; ++d) {
    const int64_t index = InputIndex(p.windows[d], p.backward, run.at[d], taps[d]);
    if (index < 0) {
      std::fill(to, to + run.count, 0.0f);
      return;
    }
    offset += static_cast<uint64_t>(index) * p.input.spatial[d];
  }
  PackRow(run, taps[kMaxSpatial - 1], data_ + offset * Width(type_), to);
}

void WindowPanels::PackRow(const Run& run, uint32_t tap, const std::byte* row, float* to) const {
  const ConvolutionWindow& w = shape_.windows[kMaxSpatial - 1];
  const uint64_t stride = shape_.input.spatial[kMaxSpatial - 1];
  const uint32_t begin = run.at[kMaxSpatial - 1];
  const auto load = [&](int64_t index, int64_t at, int64_t count) {
    const std::byte* const from = row + static_cast<uint64_t>(index) * stride * Width(type_);
    const auto some = static_cast<uint64_t>(count);
    if (type_ == DataType::kFloat32 && stride * w.stride == 1) {
      std::memcpy(to + at, from, some * sizeof(float));
    } else {
      LoadSome(from, type_, stride * w.stride, some, to + at);
    }
    if (zero_points_ == nullptr) return;
    const float* const zeros = zero_points_ + run.position + at;
    for (int64_t i = 0; i < count; ++i) to[at + i] -= zeros[i];
  };
  if (shape_.backward && w.stride > 1) {
    for (uint32_t i = 0; i < run.count; ++i) {
      const int64_t index = InputIndex(w, true, begin + i, tap);
      to[i] = 0;
      if (index >= 0) load(index, i, 1);
    }
    return;
  }
  // Positions whose tap is inside of the input are neighbours: [low, high).
  const int64_t reach = int64_t{tap} * w.dilation;
  const int64_t start = shape_.backward ? int64_t{begin} + w.start_padding - reach
                                        : int64_t{begin} * w.stride - w.start_padding + reach;
  const int64_t step = w.stride;
  const int64_t reached = std::min<int64_t>(run.count, int64_t{w.reached} - begin);
  const int64_t low = std::clamp<int64_t>(start < 0 ? (-start + step - 1) / step : 0, 0, run.count);
  const int64_t inside = start < w.input ? (w.input - 1 - start) / step + 1 : 0;
  const int64_t high = std::clamp<int64_t>(std::min(inside, reached), low, run.count);
  std::fill(to, to + low, 0.0f);
  std::fill(to + high, to + run.count, 0.0f);
  if (low < high) load(start + low * step, low, high - low);
}

}  // namespace anydml
