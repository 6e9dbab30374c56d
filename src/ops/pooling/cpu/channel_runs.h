// Consecutive windows along the last dimension that are entirely inside it, for channel_loops.h.
#pragma once

#include <algorithm>

#include "ops/pooling/cpu/channel_loops.h"
#include "ops/pooling/cpu/row_plan.h"

namespace anydml::pooling {

class ChannelRuns {
 public:
  explicit ChannelRuns(const PoolingProblem& p) {
    const WindowAxis& last = p.shape.axes[2];
    const uint64_t reach = uint64_t{last.input} + last.start, extent = ExtentOf(last);
    begin_ = (uint64_t{last.start} + last.stride - 1) / last.stride;
    end_ = reach < extent ? 0 : std::min<uint64_t>(last.windows, (reach - extent) / last.stride + 1);
  }

  // Whether the loops take the window's taps.
  static bool Fits(const ChannelLoops& loops, const PoolingShape& shape, const TapBox& box) {
    return shape.channels >= loops.least && !box.empty() &&
           uint64_t{box.taps[0].count()} * box.taps[1].count() * box.taps[2].count() <= kMostChannelTaps;
  }

  // The window `at` and the following ones with taps in the same columns and rows, up to `most`.
  ChannelTaps Find(const PoolingProblem& p, const ChannelWindow& at, const TapBox& box, uint64_t most,
                   const std::byte* input, const void* (&memory)[kMostChannelTaps]) const {
    const uint64_t width = BitSize(p.input.type) / 8, w = at.window[2];
    uint32_t count = 0;
    for (uint32_t k = 0; k < box.taps[2].count(); ++k) {
      ForEachTapOfColumn(p, box, k, [&](uint64_t offset) {
        memory[count++] = input + (at.n * p.input.strides[0] + offset) * width;
      });
    }
    return {.taps = memory,
            .columns = box.taps[2].count(),
            .rows = box.taps[0].count() * box.taps[1].count(),
            .channels = p.shape.channels,
            .windows = w < begin_ || w >= end_ ? 1 : std::min(most, end_ - w),
            .input_step = p.shape.axes[2].stride * p.input.strides[4],
            .output_step = p.output.strides[4]};
  }

 private:
  uint64_t begin_, end_;  // windows with all taps of the last dimension inside
};

}  // namespace anydml::pooling
