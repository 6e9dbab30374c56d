// SOFTMAX, LOG_SOFTMAX and HARDMAX, over the last dimension or over a set of axes: each element is related to
// its set, the elements whose coordinates differ only along the axes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "ops/reduce/axes.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> SoftmaxOperators();

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax, kHardmax };

struct SoftmaxProblem {
  static constexpr std::string_view kFamily = "softmax";

  SoftmaxKind kind = SoftmaxKind::kSoftmax;
  TensorDesc input;
  TensorDesc output;
  AxisSet axes = 0;
};

// Over sets, and over the elements of each, with strides of the input and of the output. The input's smallest
// stride is innermost.
struct SoftmaxNests {
  LoopNest<2> sets;
  LoopNest<2> elements;
};
SoftmaxNests NestsOf(const SoftmaxProblem& problem);

Exactness SoftmaxBound(const SoftmaxProblem& problem);

std::unique_ptr<const Kernel> CreateHardmaxCpu(const SoftmaxProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateHardmaxCuda(const SoftmaxProblem& problem, const LowerContext& context,
                                                std::string* why_not);
std::unique_ptr<const Kernel> CreateSoftmaxCpu(const SoftmaxProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateSoftmaxRowsCuda(const SoftmaxProblem& problem,
                                                    const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateSoftmaxCuda(const SoftmaxProblem& problem, const LowerContext& context,
                                                std::string* why_not);
std::unique_ptr<const Kernel> CreateSoftmaxReference(const SoftmaxProblem& problem,
                                                     const LowerContext& context, std::string* why_not);

}  // namespace anydml
