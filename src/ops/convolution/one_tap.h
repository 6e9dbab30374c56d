// Convolutions of one tap whose output positions are the input's.
#pragma once

#include <string>

#include "ops/convolution/problem.h"

namespace anydml {

// Why a convolution is not one of these; empty if it is.
inline std::string WhyNotOneTap(const ConvolutionShape& shape) {
  for (const ConvolutionWindow& w : shape.windows) {
    if (w.taps != 1) return "there is more than one tap";
    if (w.stride != 1 || w.start_padding != 0 || w.output != w.input || w.reached != w.output) {
      return "the output has other positions than the input";
    }
  }
  return "";
}

// The common stride of positions in row-major order; false if there is none.
inline bool PositionStride(const ConvolutionShape& shape, const ConvolutionTensor& tensor, uint64_t* stride) {
  *stride = 0;
  uint64_t next = 0;  // the stride that continues the dimensions so far
  for (uint32_t d = kMaxSpatial; d-- > 0;) {
    const uint64_t size = shape.windows[d].output;
    if (size == 1) continue;
    if (next == 0) {
      *stride = tensor.spatial[d];
    } else if (tensor.spatial[d] != next) {
      return false;
    }
    next = tensor.spatial[d] * size;
    if (next == 0) return false;
  }
  if (*stride == 0) *stride = 1;
  return true;
}

}  // namespace anydml
