// The rows of a pooling: along the last dimension, or along the channels.
#pragma once

#include <algorithm>
#include <string>

#include "ops/pooling/cpu/scan.h"
#include "ops/pooling/problem.h"

namespace anydml::pooling {

// Whether numbers of taps are exact in FLOAT32, and tables with an element per window along a dimension are
// short.
inline bool HasModestWindows(const PoolingProblem& p) {
  constexpr uint64_t kMost = uint64_t{1} << 24;
  uint64_t taps = 1;
  for (const WindowAxis& axis : p.shape.axes) {
    taps = std::min(taps * axis.size, kMost);
    if (axis.windows >= kMost || axis.input >= kMost) return false;
  }
  return taps < kMost;
}

// Windows in rows along the last dimension. A buffer has a column for each position that the windows of a row
// reach, including padding and what extends beyond it.
struct RowPlan {
  // A row of windows.
  struct Place {
    uint32_t n;
    uint32_t c;
    uint32_t d;
    uint32_t h;
    WindowRange d_taps;  // valid taps in depth
    WindowRange h_taps;

    bool empty() const { return d_taps.count() == 0 || h_taps.count() == 0; }

    uint64_t ChannelOffset(const PoolingTensor& tensor) const {
      return n * tensor.strides[0] + c * tensor.strides[1];
    }
    uint64_t RowOffset(const PoolingTensor& tensor) const {
      return ChannelOffset(tensor) + d * tensor.strides[2] + h * tensor.strides[3];
    }

    // Calls body(offset from the channel's first element) for the input rows in which the windows have taps,
    // in row-major order.
    template <typename Body>
    void ForEachRow(const PoolingProblem& p, Body&& body) const {
      const auto& axes = p.shape.axes;
      for (uint32_t i = d_taps.begin; i < d_taps.end; ++i) {
        const auto plane = static_cast<uint64_t>(PlaceOf(axes[0], d, i)) * p.input.strides[2];
        for (uint32_t j = h_taps.begin; j < h_taps.end; ++j) {
          body(plane + static_cast<uint64_t>(PlaceOf(axes[1], h, j)) * p.input.strides[3]);
        }
      }
    }
  };

  explicit RowPlan(const PoolingShape& shape)
      : last(shape.axes[2]), rows(shape.Windows() / last.windows), buffer(BufferOf(last)) {
    const uint64_t reach = ReachOf(last);
    columns = reach <= last.start ? 0 : std::min<uint64_t>(last.input, reach - last.start);
  }

  Place At(const PoolingShape& shape, uint64_t row) const {
    const auto& axes = shape.axes;
    Place at;
    at.h = static_cast<uint32_t>(row % axes[1].windows);
    row /= axes[1].windows;
    at.d = static_cast<uint32_t>(row % axes[0].windows);
    row /= axes[0].windows;
    at.c = static_cast<uint32_t>(row % shape.channels);
    at.n = static_cast<uint32_t>(row / shape.channels);
    at.d_taps = ValidTaps(axes[0], at.d);
    at.h_taps = ValidTaps(axes[1], at.h);
    return at;
  }

  // Moves to the next row.
  static void Advance(const PoolingShape& shape, Place* at) {
    const auto& axes = shape.axes;
    if (++at->h == axes[1].windows) {
      at->h = 0;
      if (++at->d == axes[0].windows) {
        at->d = 0;
        if (++at->c == shape.channels) at->c = 0, ++at->n;
      }
      at->d_taps = ValidTaps(axes[0], at->d);
    }
    at->h_taps = ValidTaps(axes[1], at->h);
  }

  // Whether buffers are not much longer than rows.
  static bool Fits(const PoolingProblem& p, std::string* why_not) {
    const WindowAxis& last = p.shape.axes[2];
    if (HasModestWindows(p) && BufferOf(last) <= uint64_t{last.input} * 4 + 4096) return true;
    *why_not = "windows, rows or their padding are too long";
    return false;
  }

  WindowAxis last;
  uint64_t rows;
  uint64_t buffer;   // columns, from the first padding on
  uint64_t columns;  // input columns that windows reach

 private:
  static uint64_t ReachOf(const WindowAxis& axis) {
    return uint64_t{axis.windows - 1} * axis.stride + ExtentOf(axis);
  }
  // One more, which loops may read.
  static uint64_t BufferOf(const WindowAxis& axis) {
    return std::max<uint64_t>(ReachOf(axis), axis.start) + 1;
  }
};

// Whether every window is a whole channel with contiguous elements.
inline bool HasWholePlanes(const PoolingProblem& p) {
  uint64_t stride = 1;
  for (uint32_t d = kSpatialRank; d-- > 0;) {
    const WindowAxis& axis = p.shape.axes[d];
    const bool whole = axis.windows == 1 && axis.size == axis.input && axis.start == 0 && axis.dilation == 1;
    if (!whole || (axis.input > 1 && p.input.strides[2 + d] != stride)) return false;
    stride *= axis.input;
  }
  return true;
}

// A window over all channels.
struct ChannelWindow {
  uint32_t n;
  std::array<uint32_t, kSpatialRank> window;

  ChannelWindow(const PoolingShape& shape, uint64_t number) {
    for (uint32_t d = kSpatialRank; d-- > 0;) {
      window[d] = static_cast<uint32_t>(number % shape.axes[d].windows);
      number /= shape.axes[d].windows;
    }
    n = static_cast<uint32_t>(number);
  }

  uint64_t Offset(const PoolingTensor& tensor) const {
    uint64_t offset = n * tensor.strides[0];
    for (uint32_t d = 0; d < kSpatialRank; ++d) offset += window[d] * tensor.strides[2 + d];
    return offset;
  }

  static bool Fits(const PoolingProblem& p, std::string* why_not) {
    const bool channels = p.shape.channels >= 4 && p.input.strides[1] == 1 && p.output.strides[1] == 1;
    if (channels && HasModestWindows(p)) return true;
    *why_not = "channels are few or not side by side, or windows very many";
    return false;
  }
};

// Calls body(offset from the batch's first element) for the taps of valid column `k` of a window.
template <typename Body>
void ForEachTapOfColumn(const PoolingProblem& p, const TapBox& box, uint32_t k, Body&& body) {
  const auto& axes = p.shape.axes;
  const uint64_t* const strides = p.input.strides.data() + 2;
  const auto place = [&](uint32_t d, uint32_t tap) {
    return (box.first[d] + uint64_t{tap} * axes[d].dilation) * strides[d];
  };
  for (uint32_t i = 0; i < box.taps[0].count(); ++i) {
    for (uint32_t j = 0; j < box.taps[1].count(); ++j) body(place(0, i) + place(1, j) + place(2, k));
  }
}

}  // namespace anydml::pooling
