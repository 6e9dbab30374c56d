// The shapes in the descriptions of all convolutions.
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
  std::span<const uint32_t> output_padding = {};  // empty: 0
  uint32_t groups = 1;
  bool backward = false;
  bool mirrored = false;  // the last tap comes first
};

// Checks lengths of arrays, channel counts, that windows fit, and the output's sizes.
Status CheckConvolution(const ConvolutionFields& fields, const TensorDesc& output);

ConvolutionShape ShapeOf(const ConvolutionFields& fields, const TensorDesc& output);

// The problem that CONVOLUTION's description defines, with an output of these strides.
ConvolutionProblem ConvolutionProblemOf(const OperatorDesc& desc, const TensorDesc& output);

// The output's sizes by the documentation's formulas.
Status InferConvolution(const ConvolutionFields& fields, Dimensions* sizes);

}  // namespace anydml
