// VALUE_SCALE_2D: Scale x + Bias[channel], an element program per channel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"

namespace anydml {

const Operator& ValueScaleOperator();

struct ValueScaleProblem {
  static constexpr std::string_view kFamily = "value_scale";

  TensorDesc input;
  TensorDesc output;
  float scale = 1;
  std::vector<float> bias;               // one per channel
  std::vector<ElementProblem> channels;  // for the elements of a channel
};

// For all backends.
std::unique_ptr<const Kernel> CreateValueScale(const ValueScaleProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateValueScaleReference(const ValueScaleProblem& problem,
                                                        const LowerContext& context, std::string* why_not);

}  // namespace anydml
