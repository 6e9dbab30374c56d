// MEAN_VARIANCE_NORMALIZATION, 1 and 2, which are the last one with less, and LP_NORMALIZATION: statistics
// over a set of dimensions, then every element by them.
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
  std::optional<TensorDesc> scale, bias;  // sizes of 1 hold for all
  TensorDesc output;
  DimensionSet reduced{};
  bool use_mean = true;      // otherwise it is 0, and the variance is the mean of squares
  bool use_variance = true;  // otherwise nothing is divided
  float epsilon = 0;
  uint32_t p = 0;  // 1 or 2: the norm's
  bool has_activation = false;

  ElementProblem finish;  // the activation and the store: from packed FLOAT32 numbers to the output
  StepList steps;         // all of it
};

// Of numbers up to some ten, as the tests have them. A mean is rounded to FLOAT32, and what it is off by is
// divided by the deviation; activations may have slopes of some units.
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
