// A copy of a convolution's input as FLOAT32 with its padding, in which each tap is contiguous over
// neighbouring outputs, wherever they are.
#pragma once

#include <optional>
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/convolution/problem.h"
#include "ops/product/blocked.h"

namespace anydml {

class PaddedInput {
 public:
  // `scratch` is the layout of the kernel's temporary memory. Empty if the copy would not help; the code has
  // the reasons.
  static std::optional<PaddedInput> Create(const ConvolutionShape& shape, DataType type, uint32_t threads,
                                           ScratchLayout* scratch);

  // Copies the input, whose first byte is at `input`.
  void Load(const std::byte* input, const KernelArguments& arguments) const;

  // Elements are output positions; steps are the input channels of a group with their taps, as in
  // WindowPanels.
  class Panels final : public PanelSource {
   public:
    Panels(const PaddedInput& input, const float* matrix) : input_(input), matrix_(matrix) {}
    void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
              float* to) const override;

   private:
    const PaddedInput& input_;
    const float* matrix_;
  };
  Panels Find(const KernelArguments& arguments, uint64_t outer0, uint64_t outer1) const {
    const uint64_t matrix = (outer0 * shape_.outer[1] + outer1) * shape_.input_channels;
    return {*this, planes_.In<const float>(arguments.temporary) + matrix * plane_};
  }

 private:
  PaddedInput(const ConvolutionShape& shape, DataType type) : shape_(shape), type_(type) {}
  void LoadPlane(const std::byte* from, float* row, float* to) const;
  void LoadRow(const std::byte* from, float* row, float* to) const;

  ConvolutionShape shape_;
  DataType type_;
  uint64_t pitch_;                 // length of a row in one phase: every stride-th element
  uint64_t row_, slice_, plane_;   // floats of all phases of a row, of all rows, of a channel
  uint64_t height_, depth_;        // rows per slice, slices per channel
  std::vector<uint64_t> offsets_;  // of each tap, relative to the first one
  uint32_t workers_;
  ScratchLayout::Piece planes_, rows_;
};

}  // namespace anydml
