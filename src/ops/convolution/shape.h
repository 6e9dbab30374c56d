// What the descriptions of all convolutions say about shapes.
#pragma once

#include <span>

#include "ops/convolution/problem.h"
#include "schema/operator_desc.h"

namespace anydml {

struct ConvolutionFields {
  const char* name;  // of the operator
  const TensorDesc& input;
  const TensorDesc& filter;
  std::span<const uint32_t> strides, dilations, start_padding, end_padding;
  std::span<const uint32_t> output_padding = {};  // none: 0
  uint32_t groups = 1;
  bool backward = false;
  bool mirrored = false;  // the last tap comes first
};

// Counts of arrays and channels, windows that fit, sizes of the output.
Status CheckConvolution(const ConvolutionFields& fields, const TensorDesc& output);

ConvolutionShape ShapeOf(const ConvolutionFields& fields, const TensorDesc& output);

// What CONVOLUTION's description asks for, with an output of these strides.
ConvolutionProblem ConvolutionProblemOf(const OperatorDesc& desc, const TensorDesc& output);

// The output's sizes by the pages' formulas.
Status InferConvolution(const ConvolutionFields& fields, Dimensions* sizes);

}  // namespace anydml
