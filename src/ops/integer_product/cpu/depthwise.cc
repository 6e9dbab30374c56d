// Filters of one input channel: the FLOAT32 kernel, whose sums are exact here.
#include "ops/convolution/cpu/depthwise.h"

#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

// More for one channel are a matrix, which others multiply and cut for threads.
constexpr uint32_t kMaxFilters = 4;

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerDepthwise(const IntegerProductProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  const IntegerSums& sums = problem.sums;
  const auto zero_point = [](const std::optional<ZeroPoints>& zero) {
    std::optional<DepthwiseProblem::ZeroPoint> result;
    if (zero) result = {zero->input, zero->stride, zero->group};
    return result;
  };
  if (!problem.program.program.instructions.empty()) {
    *why_not = "there are scales";
  } else if (sums.sum_type != DataType::kInt32) {
    *why_not = "operands have more than 8 bits";
  } else if (sums.shape.output_channels > kMaxFilters) {
    *why_not = StrCat("a channel has ", sums.shape.output_channels, " filters");
  } else if (sums.input_zero && (sums.input_zero->stride != 0 || sums.input_zero->group != 0)) {
    *why_not = "positions have zero points of their own";
  } else {
    return CreateDepthwise({.shape = sums.shape,
                            .input_type = sums.input_type,
                            .filter_type = sums.filter_type,
                            .output_type = sums.sum_type,
                            .input = sums.input,
                            .filter = sums.filter,
                            .input_zero = zero_point(sums.input_zero),
                            .filter_zero = zero_point(sums.filter_zero)},
                           context.threads, why_not);
  }
  return nullptr;
}

}  // namespace anydml
