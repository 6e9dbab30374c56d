#include "ops/convolution/cpu/panels.h"

#include <algorithm>
#include <cstring>

#include "ops/element/cpu/blocks.h"
#include "ops/gemm/cpu/operands.h"

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

  Step(const ConvolutionProblem& p, uint64_t number) {
    for (uint32_t d = kMaxSpatial; d-- > 0; number /= p.windows[d].taps) {
      taps[d] = static_cast<uint32_t>(number % p.windows[d].taps);
    }
    channel = number;
  }

  void Next(const ConvolutionProblem& p) {
    for (uint32_t d = kMaxSpatial; d-- > 0; taps[d] = 0) {
      if (++taps[d] < p.windows[d].taps) return;
    }
    ++channel;
  }
};

}  // namespace

FilterPanels::FilterPanels(const ConvolutionProblem& problem, const std::byte* filter, uint64_t group)
    : problem_(problem),
      data_(filter + (problem.filter_offset + group * problem.filter_group) * Width(problem.type)) {
  uint64_t expected = 1;
  contiguous_ = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= problem.windows[d].taps) {
    contiguous_ = contiguous_ && (problem.windows[d].taps == 1 || problem.filter.spatial[d] == expected);
  }
  contiguous_ = contiguous_ && (problem.input_channels == 1 || problem.filter.channel == expected);
}

void FilterPanels::Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                        float* to) const {
  const ConvolutionProblem& p = problem_;
  if (contiguous_) {
    StridedPanels(data_, p.type, p.filter.batch, 1).Pack(first, count, step, steps, width, to);
    return;
  }
  if (count < width) std::memset(to, 0, steps * width * sizeof(float));
  Step at(p, step);
  for (uint64_t s = 0; s < steps; ++s, at.Next(p)) {
    uint64_t offset = first * p.filter.batch + at.channel * p.filter.channel;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at.taps[d] * p.filter.spatial[d];
    LoadSome(data_ + offset * Width(p.type), p.type, p.filter.batch, count, to + s * width);
  }
}

WindowPanels::WindowPanels(const ConvolutionProblem& problem, const std::byte* input, uint64_t batch,
                           uint64_t group)
    : problem_(problem),
      data_(input + (batch * problem.input.batch + group * problem.input_channels * problem.input.channel) *
                        Width(problem.type)) {
  uint64_t expected = 1;
  plain_ = problem.Taps() == 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= problem.windows[d].input) {
    const ConvolutionWindow& w = problem.windows[d];
    plain_ = plain_ && w.stride == 1 && w.start_padding == 0 && w.reached == w.input && w.output == w.input &&
             (w.input == 1 || problem.input.spatial[d] == expected);
  }
}

void WindowPanels::Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                        float* to) const {
  const ConvolutionProblem& p = problem_;
  if (plain_) {
    StridedPanels(data_, p.type, 1, p.input.channel).Pack(first, count, step, steps, width, to);
    return;
  }
  // The panel's positions, row by row of the output.
  Run runs[kMaxTileColumns];
  uint32_t run_count = 0;
  for (uint64_t position = first; position < first + count;) {
    Run& run = runs[run_count++];
    uint64_t rest = position;
    for (uint32_t d = kMaxSpatial; d-- > 0; rest /= p.windows[d].output) {
      run.at[d] = static_cast<uint32_t>(rest % p.windows[d].output);
    }
    run.count = static_cast<uint32_t>(std::min<uint64_t>(
        first + count - position, p.windows[kMaxSpatial - 1].output - run.at[kMaxSpatial - 1]));
    position += run.count;
  }
  Step at(p, step);
  for (uint64_t s = 0; s < steps; ++s, at.Next(p)) {
    float* target = to + s * width;
    for (uint32_t r = 0; r < run_count; target += runs[r++].count)
      PackRun(runs[r], at.channel, at.taps, target);
    std::fill(target, to + (s + 1) * width, 0.0f);
  }
}

void WindowPanels::PackRun(const Run& run, uint64_t channel, const uint32_t (&taps)[kMaxSpatial],
                           float* to) const {
  const ConvolutionProblem& p = problem_;
  uint64_t offset = channel * p.input.channel;
  for (uint32_t d = 0; d + 1 < kMaxSpatial; ++d) {
    const int64_t index = InputIndex(p.windows[d], p.backward, run.at[d], taps[d]);
    if (index < 0) {
      std::fill(to, to + run.count, 0.0f);
      return;
    }
    offset += static_cast<uint64_t>(index) * p.input.spatial[d];
  }
  PackRow(run, taps[kMaxSpatial - 1], data_ + offset * Width(p.type), to);
}

void WindowPanels::PackRow(const Run& run, uint32_t tap, const std::byte* row, float* to) const {
  const ConvolutionProblem& p = problem_;
  const ConvolutionWindow& w = p.windows[kMaxSpatial - 1];
  const uint64_t stride = p.input.spatial[kMaxSpatial - 1];
  const uint32_t begin = run.at[kMaxSpatial - 1];
  if (p.backward && w.stride > 1) {
    for (uint32_t i = 0; i < run.count; ++i) {
      const int64_t index = InputIndex(w, true, begin + i, tap);
      to[i] = 0;
      if (index >= 0)
        LoadSome(row + static_cast<uint64_t>(index) * stride * Width(p.type), p.type, 1, 1, to + i);
    }
    return;
  }
  // Positions whose tap is inside of the input are neighbours: [low, high).
  const int64_t reach = int64_t{tap} * w.dilation;
  const int64_t start = p.backward ? int64_t{begin} + w.start_padding - reach
                                   : int64_t{begin} * w.stride - w.start_padding + reach;
  const int64_t step = w.stride;
  const int64_t reached = std::min<int64_t>(run.count, int64_t{w.reached} - begin);
  const int64_t low = std::clamp<int64_t>(start < 0 ? (-start + step - 1) / step : 0, 0, run.count);
  const int64_t inside = start < w.input ? (w.input - 1 - start) / step + 1 : 0;
  const int64_t high = std::clamp<int64_t>(std::min(inside, reached), low, run.count);
  std::fill(to, to + low, 0.0f);
  std::fill(to + high, to + run.count, 0.0f);
  if (low == high) return;
  const std::byte* const from = row + static_cast<uint64_t>(start + low * step) * stride * Width(p.type);
  const auto count = static_cast<uint64_t>(high - low);
  if (p.type == DataType::kFloat32 && stride * w.stride == 1) {
    std::memcpy(to + low, from, count * sizeof(float));
  } else {
    LoadSome(from, p.type, stride * w.stride, count, to + low);
  }
}

}  // namespace anydml
