// Numbers per output channel: the bias, and those of a batch normalisation after the convolution.
#pragma once

#include <cstdint>

#include "kernel/scratch_layout.h"
#include "ops/convolution/problem.h"

namespace anydml {

class ChannelNumbers {
 public:
  // A group's channels have `width` places, zero-padded.
  ChannelNumbers(const ConvolutionProblem& problem, uint64_t width, ScratchLayout* scratch);

  void Load(const ConvolutionProblem& problem, const KernelArguments& arguments) const;

  // The numbers of the group's first channel; those of the others follow at stride().
  const float* Bias(const KernelArguments& arguments, uint64_t group) const {
    return numbers_.In<const float>(arguments.temporary) + group * width_;
  }
  // From biases to means, to factors, to shifts.
  uint64_t stride() const { return stride_; }

 private:
  uint64_t width_, stride_;
  ScratchLayout::Piece numbers_;
};

}  // namespace anydml
