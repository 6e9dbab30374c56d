// A convolution in cuDNN's terms: which of its tensors are read in place, and what the others become.
#pragma once

#include <array>
#include <string>

#include "ops/convolution/cuda/cudnn/cudnn_convolution.h"
#include "ops/convolution/problem.h"

namespace anydml {

// A packed tensor, with the channels of all groups.
struct CudnnPacked {
  uint64_t images = 1, channels = 1;
  std::array<uint64_t, kMaxSpatial> sizes{};
  bool channels_last = false;

  uint64_t Elements() const { return images * channels * sizes[0] * sizes[1] * sizes[2]; }
  // outer[1] is not set.
  ConvolutionTensor Strides() const;
  // Whether a tensor has this layout.
  bool Is(const ConvolutionTensor& tensor, uint64_t groups) const;
};

// FLOAT32 tensors packed in their dimensions' order are read in place. Otherwise the layout is channels-last:
// tensors already have it, or are converted.
struct CudnnLayout {
  bool channels_last = false;
  CudnnPacked input, filter, output;  // as cuDNN sees them
  // The forward convolution, whose gradient a backward one is; the filter keeps its own strides.
  ConvolutionShape forward;
  uint32_t input_channels = 0;   // per group of `input`; those beyond the actual number are zeros
  uint32_t filter_channels = 0;  // per group of `filter`, likewise
  bool packs_input = false, packs_filter = false, packs_output = false;
  CudnnProblem problem;  // without a bias and limits; the result has the operands' type

  // Returns why there is no such layout, or an empty string.
  std::string Set(const ConvolutionProblem& problem);
};

}  // namespace anydml
