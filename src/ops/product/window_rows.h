// The windows of an input as rows: what a step, which is an input channel with its taps, reads for several
// positions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/convolution/problem.h"
#include "ops/product/panel_rows.h"

namespace anydml {

// A step's channel and taps.
struct ConvolutionStep {
  uint64_t channel;
  uint32_t taps[kMaxSpatial];

  ConvolutionStep(const ConvolutionShape& p, uint64_t number) {
    for (uint32_t d = kMaxSpatial; d-- > 0; number /= p.windows[d].taps) {
      taps[d] = static_cast<uint32_t>(number % p.windows[d].taps);
    }
    channel = number;
  }
};

class WindowRows {
 public:
  explicit WindowRows(const ConvolutionShape& shape)
      : shape_(shape), windows_(shape.windows), strides_(shape.input.spatial) {
    // Merges dimensions whose windows are the input's elements in order.
    for (uint32_t d = kLast; d-- > 0;) {
      ConvolutionWindow &outer = windows_[d], &inner = windows_[kLast];
      const bool follow = outer.input == 1 || strides_[d] == strides_[kLast] * inner.input;
      if (!IsWhole(outer) || !IsWhole(inner) || !follow) break;
      inner.input = inner.output = inner.reached = outer.input * inner.input;
      outer = {};
    }
  }

  // Sets the positions [first, first + count), at most kPanelRowElements.
  void Begin(uint64_t first, uint64_t count) {
    run_count_ = 0;
    for (uint64_t done = 0; done < count;) {
      Run& run = runs_[run_count_++];
      run.row = done;
      uint64_t rest = first + done;
      for (uint32_t d = kMaxSpatial; d-- > 0; rest /= windows_[d].output) {
        run.at[d] = static_cast<uint32_t>(rest % windows_[d].output);
      }
      run.count =
          static_cast<uint32_t>(std::min<uint64_t>(count - done, windows_[kLast].output - run.at[kLast]));
      done += run.count;
    }
  }

  // Calls load(offset, stride, at, count) for elements of the input that belong to places [at, at + count) of
  // the row, `stride` apart from `offset` on, and outside(at, count) for places without one.
  template <typename Load, typename Outside>
  void ForStep(uint64_t number, Load&& load, Outside&& outside) const {
    const ConvolutionStep step(shape_, number);
    for (uint32_t r = 0; r < run_count_; ++r) {
      const Run& run = runs_[r];
      uint64_t offset = step.channel * shape_.input.channel;
      bool inside = true;
      for (uint32_t d = 0; d < kLast && inside; ++d) {
        const int64_t index = InputIndex(windows_[d], shape_.backward, run.at[d], step.taps[d]);
        inside = index >= 0;
        offset += static_cast<uint64_t>(index) * strides_[d];
      }
      if (inside) {
        LoadRun(run, step.taps[kLast], offset, load, outside);
      } else {
        outside(run.row, run.count);
      }
    }
  }

 private:
  static constexpr uint32_t kLast = kMaxSpatial - 1;

  static bool IsWhole(const ConvolutionWindow& w) {
    return w.taps == 1 && w.stride == 1 && w.start_padding == 0 && w.output == w.input &&
           w.reached == w.input;
  }

  // Neighbouring positions of one row of the output.
  struct Run {
    uint64_t row;  // their place in the row of the panel
    uint32_t at[kMaxSpatial];
    uint32_t count;
  };

  template <typename Load, typename Outside>
  void LoadRun(const Run& run, uint32_t tap, uint64_t offset, Load&& load, Outside&& outside) const {
    const ConvolutionWindow& w = windows_[kLast];
    const uint64_t stride = strides_[kLast];
    const uint32_t begin = run.at[kLast];
    if (shape_.backward && w.stride > 1) {
      for (uint32_t i = 0; i < run.count; ++i) {
        const int64_t index = InputIndex(w, true, begin + i, tap);
        if (index >= 0) {
          load(offset + static_cast<uint64_t>(index) * stride, stride, run.row + i, 1);
        } else {
          outside(run.row + i, 1);
        }
      }
      return;
    }
    // Positions whose tap is inside the input are contiguous: [low, high).
    const int64_t reach = int64_t{tap} * w.dilation;
    const int64_t start = shape_.backward ? int64_t{begin} + w.start_padding - reach
                                          : int64_t{begin} * w.stride - w.start_padding + reach;
    const int64_t step = w.stride;
    const int64_t reached = std::min<int64_t>(run.count, int64_t{w.reached} - begin);
    const auto steps = [&](int64_t distance) { return step == 1 ? distance : (distance + step - 1) / step; };
    const int64_t low = std::clamp<int64_t>(start < 0 ? steps(-start) : 0, 0, run.count);
    const int64_t inside = start < w.input ? steps(w.input - start) : 0;
    const int64_t high = std::clamp<int64_t>(std::min(inside, reached), low, run.count);
    const auto before = static_cast<uint64_t>(low), end = static_cast<uint64_t>(high);
    if (before != 0) outside(run.row, before);
    if (end < run.count) outside(run.row + end, run.count - end);
    if (before == end) return;
    load(offset + static_cast<uint64_t>(start + low * step) * stride, stride * w.stride, run.row + before,
         end - before);
  }

  const ConvolutionShape& shape_;
  std::array<ConvolutionWindow, kMaxSpatial> windows_;
  std::array<uint64_t, kMaxSpatial> strides_;  // of the input
  uint32_t run_count_ = 0;
  Run runs_[kPanelRowElements];
};

}  // namespace anydml
