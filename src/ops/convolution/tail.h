// A convolution with a tail, as a graph describes it.
#pragma once

#include <array>
#include <optional>

#include "ops/convolution/problem.h"
#include "schema/operator_desc.h"

namespace anydml {

// The tensors that ConvolutionTail::Input lists, from kMean on, with the output's rank; the last one has the
// output's sizes, the others a number per channel. Those of a missing step are absent.
struct ConvolutionTailDesc {
  std::array<std::optional<TensorDesc>, ConvolutionTail::kInputs - ConvolutionTail::kMean> tensors;
  float epsilon = 0;
  ConvolutionLimits normalized, added;  // applied after each step

  bool normalizes() const { return tensors[0].has_value(); }
  bool adds() const { return tensors.back().has_value(); }
};

// `desc`: of CONVOLUTION, with the tail's output. Fused if a kernel can do that, otherwise one after the
// other.
Status LowerConvolutionWithTail(const OperatorDesc& desc, const ConvolutionTailDesc& tail,
                                const LowerContext& context, LoweredOperator* out);

// Whether tiles of pixels, on a CPU, can do what follows the convolution and its activation.
bool TilesCanFinish(const ConvolutionProblem& problem);

// Whether a kernel applies the tail before it stores, and gains by that.
bool GainsByTail(const OperatorDesc& desc, const ConvolutionTailDesc& tail, const LowerContext& context);

}  // namespace anydml
