#include "ops/product/window_panels.h"

#include <algorithm>

#include "ops/product/operands.h"
#include "ops/product/window_rows.h"

namespace anydml {
namespace {

uint64_t Width(DataType type) { return BitSize(type) / 8; }

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
  if (contiguous_) {
    StridedPanels(data_, type_, p.filter.output_channel, 1).Pack(first, count, step, steps, width, to);
    for (uint64_t e = 0; e < count && zero_points_ != nullptr; e += width) {
      const uint64_t some = std::min<uint64_t>(width, count - e);
      for (uint64_t s = 0; s < steps; ++s) {
        float* const row = to + e * steps + s * width;
        for (uint64_t i = 0; i < some; ++i) row[i] -= zero_points_[first + e + i];
      }
    }
    return;
  }
  PackRows(
      count, steps, width, to, [](uint64_t, uint64_t) {},
      [&](uint64_t element, uint64_t some, uint64_t s, float* row) {
        const ConvolutionStep at(p, step + s);
        uint64_t offset = (first + element) * p.filter.output_channel + at.channel * p.filter.channel;
        for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at.taps[d] * p.filter.spatial[d];
        // After or, for a mirrored filter, before the first tap.
        const auto bytes = static_cast<ptrdiff_t>(offset * Width(type_));
        LoadNumbers(data_ + bytes, type_, p.filter.output_channel, some, row);
        if (zero_points_ == nullptr) return;
        for (uint64_t e = 0; e < some; ++e) row[e] -= zero_points_[first + element + e];
      });
}

bool FilterPanels::PackHalves(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                              uint16_t* to) const {
  const StridedPanels rows(data_, type_, shape_.filter.output_channel, 1);
  return contiguous_ && zero_points_ == nullptr && rows.PackHalves(first, count, step, steps, width, to);
}

PanelSource::Place FilterPanels::FindRows(uint64_t first) const {
  if (!contiguous_ || zero_points_ != nullptr) return {};
  return StridedPanels(data_, type_, shape_.filter.output_channel, 1).FindRows(first);
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
  const auto* const floats = type_ == DataType::kFloat32 && zero_points_ == nullptr
                                 ? reinterpret_cast<const float*>(data_)
                                 : nullptr;
  WindowRows windows(p);
  PackRows(
      count, steps, width, to, [&](uint64_t element, uint64_t some) { windows.Begin(first + element, some); },
      [&](uint64_t element, uint64_t, uint64_t s, float* row) {
        windows.ForStep(
            step + s,
            [&](uint64_t offset, uint64_t stride, uint64_t at, uint64_t some) {
              if (floats != nullptr && stride == 1) {
                CopyShortRow(floats + offset, some, row + at);
                return;
              }
              LoadNumbers(data_ + offset * Width(type_), type_, stride, some, row + at);
              if (zero_points_ == nullptr) return;
              const float* const zeros = zero_points_ + first + element + at;
              for (uint64_t i = 0; i < some; ++i) row[at + i] -= zeros[i];
            },
            [&](uint64_t at, uint64_t some) { std::fill_n(row + at, some, 0.0f); });
      });
}

PanelSource::Place WindowPanels::FindSteps(uint64_t first) const {
  if (!plain_) return {};
  return StridedPanels(data_, type_, 1, shape_.input.channel).FindSteps(first);
}

}  // namespace anydml
