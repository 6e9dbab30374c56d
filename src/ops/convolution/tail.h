// A convolution with a tail, as a graph describes it.
#pragma once

#include <array>
#include <optional>

#include "ops/convolution/problem.h"
#include "schema/operator_desc.h"

namespace anydml {

// The tensors that ConvolutionTail::Input lists, from kMean on, of the output's rank; all but the last, which
// has the output's sizes, have a number for each channel. Those of a step that does not exist are absent.
struct ConvolutionTailDesc {
  std::array<std::optional<TensorDesc>, ConvolutionTail::kInputs - ConvolutionTail::kMean> tensors;
  float epsilon = 0;
  ConvolutionLimits normalized, added;  // after each step

  bool normalizes() const { return tensors[0].has_value(); }
  bool adds() const { return tensors.back().has_value(); }
};

// Of CONVOLUTION's description, whose output is the tail's. Fused where a kernel does that, else one after
// the other.
Status LowerConvolutionWithTail(const OperatorDesc& desc, const ConvolutionTailDesc& tail,
                                const LowerContext& context, LoweredOperator* out);

// Whether tiles of pixels, on a CPU, can do what is behind the convolution and its activation.
bool TilesCanFinish(const ConvolutionProblem& problem);

// Whether a kernel applies the tail to what it stores, and gains by it.
bool GainsByTail(const OperatorDesc& desc, const ConvolutionTailDesc& tail, const LowerContext& context);

}  // namespace anydml
