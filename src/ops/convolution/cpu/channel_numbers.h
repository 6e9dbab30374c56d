// Numbers that all pixels of an output channel share: the bias, and those of a batch normalisation behind it.
#pragma once

#include <cstdint>

#include "kernel/scratch_layout.h"
#include "ops/convolution/problem.h"

namespace anydml {

class ChannelNumbers {
 public:
  // A group's channels have `width` places, with zeros behind the last.
  ChannelNumbers(const ConvolutionProblem& problem, uint64_t width, ScratchLayout* scratch);

  void Load(const ConvolutionProblem& problem, const KernelArguments& arguments) const;

  // Of the group's first channel; what is behind: see stride().
  const float* Bias(const KernelArguments& arguments, uint64_t group) const {
    return numbers_.In<const float>(arguments.temporary) + group * width_;
  }
  // From biases to means, to factors, to what is added at last.
  uint64_t stride() const { return stride_; }

 private:
  uint64_t width_, stride_;
  ScratchLayout::Piece numbers_;
};

}  // namespace anydml
