// The two operands of a convolution as sources of panels: the filter's channels, and the windows of the
// input.
#pragma once

#include "ops/convolution/problem.h"
#include "ops/product/blocked.h"

namespace anydml {

// Elements are output channels of a group; steps are its input channels with their taps.
class FilterPanels final : public PanelSource {
 public:
  // `filter`: of one matrix. `zero_points`, if any, are subtracted, one per output channel.
  FilterPanels(const ConvolutionShape& shape, DataType type, const std::byte* filter,
               const float* zero_points = nullptr);
  void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
            float* to) const override;
  bool PackHalves(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                  uint16_t* to) const override;
  Place FindRows(uint64_t first) const override;

 private:
  const ConvolutionShape& shape_;
  DataType type_;
  const std::byte* data_;
  const float* zero_points_;
  bool contiguous_;  // steps are contiguous
};

// Elements are output positions in row-major order; steps as above.
class WindowPanels final : public PanelSource {
 public:
  // `input`: of one matrix. `zero_points`, if any, are subtracted from elements inside the input, one per
  // position.
  WindowPanels(const ConvolutionShape& shape, DataType type, const std::byte* input,
               const float* zero_points = nullptr);
  void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
            float* to) const override;
  Place FindSteps(uint64_t first) const override;

 private:
  const ConvolutionShape& shape_;
  DataType type_;
  const std::byte* data_;
  const float* zero_points_;
  bool plain_;  // a window is one element, and output positions are those of the input, contiguous
};

}  // namespace anydml
