// LOCAL_RESPONSE_NORMALIZATION and its gradient: divides every element by a power of the sum of squares
// around it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ops/implementation_list.h"
#include "ops/moments/steps.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> LrnOperators();

// x * s^-beta with s = bias + alpha / local_size * (sum of squares in the window), or the gradient of that.
struct LrnProblem {
  static constexpr std::string_view kFamily = "lrn";

  TensorDesc input;
  std::optional<TensorDesc> gradient;  // InputGradientTensor
  TensorDesc output;
  bool cross_channel = false;  // the window is along channels; otherwise in both spatial dimensions
  uint32_t local_size = 1;
  float alpha = 0;
  float beta = 0;
  float bias = 0;

  StepList steps;

  // An even window has one more element after the centre.
  uint32_t before() const { return (local_size - 1) / 2; }
  uint32_t after() const { return local_size - 1 - before(); }
};

// Or within CreateErrors (ops/errors.h): s is a sum, whose error a power of it magnifies by beta * magnitudes
// / s. Near a pole, where bias and the sum of squares cancel, there is no bound that holds for all operands.
inline constexpr Exactness kLrnExactness = {.float32_ulps = 4, .float16_ulps = 1, .relative = 0x1p-24};

std::unique_ptr<const Kernel> CreateLrnSteps(const LrnProblem& problem, const LowerContext& context,
                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateLrnReference(const LrnProblem& problem, const LowerContext& context,
                                                 std::string* why_not);

std::unique_ptr<const Kernel> CreateLrnErrors(const LrnProblem& problem);
std::unique_ptr<const Kernel> CreateLrnErrors(const OperatorDesc& desc);

}  // namespace anydml
