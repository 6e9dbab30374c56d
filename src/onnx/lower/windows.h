// The windows of convolutions and poolings, from the attributes of any version.
#pragma once

#include "onnx/lower/lowering.h"

namespace anydml::onnx {

struct Windows {
  std::vector<UINT> kernel, strides, dilations, begin, end;
  std::vector<int64_t> output;  // spatial sizes

  UINT rank() const { return static_cast<UINT>(kernel.size()); }
};

// `input` and `kernel` are the spatial sizes.
Status ResolveWindows(const NodeFacts& node, std::span<const int64_t> input, std::span<const int64_t> kernel,
                      Windows* out);
// For ConvTranspose, whose output is a convolution's input.
Status ResolveTransposed(const NodeFacts& node, std::span<const int64_t> input,
                         std::span<const int64_t> kernel, Windows* out);

// One-dimensional ones become two-dimensional with a height of 1.
Windows AtLeastTwo(Windows windows);
// {N,C,W} as {N,C,1,W}.
View WithHeight(const View& view);

}  // namespace anydml::onnx
