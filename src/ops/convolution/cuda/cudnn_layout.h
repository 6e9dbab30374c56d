// A convolution in cuDNN's terms: which of its tensors are read where they are, and what the others become.
#pragma once

#include <array>
#include <string>

#include "ops/convolution/cuda/cudnn_convolution.h"
#include "ops/convolution/problem.h"

namespace anydml {

// A tensor without gaps, whose channels are of all groups.
struct CudnnPacked {
  uint64_t images = 1, channels = 1;
  std::array<uint64_t, kMaxSpatial> sizes{};
  bool channels_last = false;

  uint64_t Elements() const { return images * channels * sizes[0] * sizes[1] * sizes[2]; }
  // outer[1] is left open.
  ConvolutionTensor Strides() const;
  // Whether a tensor's elements are there, too.
  bool Is(const ConvolutionTensor& tensor, uint64_t groups) const;
};

// FLOAT32 tensors that are packed as they are listed are read where they are. Otherwise channels are
// neighbours: tensors have them so, or are brought into that order.
struct CudnnLayout {
  bool channels_last = false;
  CudnnPacked input, filter, output;  // as cuDNN sees them
  // The forward convolution, of which a backward one is the gradient; the filter's strides are its own.
  ConvolutionShape forward;
  uint32_t input_channels = 0;   // of a group of `input`; more than there are: zeros
  uint32_t filter_channels = 0;  // of `filter`, likewise
  bool packs_input = false, packs_filter = false, packs_output = false;
  CudnnProblem problem;  // without a bias and limits; the result is of the operands' type

  // Returns why there is none, or nothing.
  std::string Set(const ConvolutionProblem& problem);
};

}  // namespace anydml
