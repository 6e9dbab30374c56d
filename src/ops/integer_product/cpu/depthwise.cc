// Filters of one input channel, with the FLOAT32 kernel, whose sums are exact here.
#include "ops/product/depthwise.h"

#include "ops/integer_product/cpu/requantize.h"
#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

// More filters for one channel form a matrix product, which other kernels compute and cut for threads.
constexpr uint32_t kMaxFilters = 4;

class RequantizedDepthwise final : public DepthwiseSink {
 public:
  explicit RequantizedDepthwise(const IntegerProductProblem& problem)
      : requantizer_(*problem.requantization, problem.sums.shape) {}

  void Finish(const KernelArguments& arguments, std::array<uint64_t, 2> outer, uint64_t channel,
              uint64_t first, uint64_t count, const float* sums) const override {
    requantizer_.Put(arguments, outer, channel, first, count, sums);
  }

 private:
  RowRequantizer requantizer_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerDepthwise(const IntegerProductProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  const IntegerSums& sums = problem.sums;
  const auto zero_point = [](const std::optional<ZeroPoints>& zero) {
    std::optional<DepthwiseProblem::ZeroPoint> result;
    if (zero) result = {zero->input, zero->stride, zero->group};
    return result;
  };
  std::shared_ptr<const DepthwiseSink> sink;
  if (problem.requantization) sink = std::make_shared<RequantizedDepthwise>(problem);
  if (!problem.program.program.instructions.empty() && sink == nullptr) {
    *why_not = "there are scales that rows do not share";
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
                            .filter_zero = zero_point(sums.filter_zero),
                            .sink = sink},
                           context.threads, why_not);
  }
  return nullptr;
}

}  // namespace anydml
