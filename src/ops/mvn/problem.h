// MEAN_VARIANCE_NORMALIZATION, 1 and 2 (the earlier ones are special cases of the last), and
// LP_NORMALIZATION: statistics over a set of dimensions, by which every element is normalised.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/moments/steps.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> MvnOperators();

// activation(scale * (x - mean) / sqrt(variance + epsilon) + bias), or x / max(norm, epsilon).
struct MvnProblem {
  static constexpr std::string_view kFamily = "mvn";

  TensorDesc input;
  std::optional<TensorDesc> scale, bias;  // sizes of 1 broadcast
  TensorDesc output;
  DimensionSet reduced{};
  bool use_mean = true;      // otherwise the mean counts as 0, and the variance is the mean of squares
  bool use_variance = true;  // otherwise there is no division
  float epsilon = 0;
  uint32_t p = 0;  // the norm: 1 or 2
  bool has_activation = false;

  ElementProblem finish;  // the activation and the store: from packed FLOAT32 numbers to the output
  StepList steps;         // the whole computation
};

// For numbers up to about ten, as in the tests. The mean's rounding error is divided by the deviation, and
// activations may have slopes of some units.
inline constexpr Exactness kMvnExactness = {
    .float32_ulps = 4, .float16_ulps = 1, .relative = 1e-5, .absolute = 2e-4};

std::unique_ptr<const Kernel> CreateMvnRowsCpu(const MvnProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateMvnRowsCuda(const MvnProblem& problem, const LowerContext& context,
                                                std::string* why_not);
std::unique_ptr<const Kernel> CreateMvnSteps(const MvnProblem& problem, const LowerContext& context,
                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateMvnReference(const MvnProblem& problem, const LowerContext& context,
                                                 std::string* why_not);

}  // namespace anydml
