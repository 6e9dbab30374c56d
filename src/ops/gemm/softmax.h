// GEMM with a softmax of the product: the only activation that is not element-wise.
#pragma once

#include "ops/gemm/problem.h"
#include "ops/reduce/axes.h"

namespace anydml {

struct GemmSoftmaxProblem {
  static constexpr std::string_view kFamily = "gemm_softmax";

  GemmProblem product;  // without an activation
  AxisSet axes = 0;     // of {batch, batch, m, n}
};

std::unique_ptr<const Kernel> CreateGemmThenSoftmax(const GemmSoftmaxProblem& problem,
                                                    const LowerContext& context, std::string* why_not);

}  // namespace anydml
