// The operands of a product of bytes as sources of panels whose words are four steps each. Unsigned numbers
// become signed ones by subtracting 128, from their zero points as well.
#pragma once

#include "ops/convolution/problem.h"
#include "ops/gemm/cpu/blocked.h"

namespace anydml {

// Elements are output channels of a group, steps are its input channels with their taps.
class FilterQuads final : public PanelSource {
 public:
  // `filter`: of one matrix.
  FilterQuads(const ConvolutionShape& shape, DataType type, const std::byte* filter);
  void Pack(uint64_t first, uint64_t count, uint64_t word, uint64_t words, uint32_t width,
            float* to) const override;

 private:
  void PackAcross(uint64_t first, uint64_t count, uint64_t step, uint64_t words, uint32_t width,
                  float* to) const;

  const ConvolutionShape& shape_;
  bool is_unsigned_;
  const std::byte* data_;
  bool contiguous_;  // steps are neighbours
};

// Elements are positions of the output, in row-major order; steps as above. Outside of the input is `zero`.
class WindowQuads final : public PanelSource {
 public:
  // `input`: of one matrix.
  WindowQuads(const ConvolutionShape& shape, DataType type, const std::byte* input, std::byte zero)
      : shape_(shape), is_unsigned_(type == DataType::kUInt8), data_(input), zero_(zero) {}
  void Pack(uint64_t first, uint64_t count, uint64_t word, uint64_t words, uint32_t width,
            float* to) const override;

 private:
  const ConvolutionShape& shape_;
  bool is_unsigned_;
  const std::byte* data_;
  std::byte zero_;
};

}  // namespace anydml
