#include "kernel/work_estimate.h"
#include "ops/common/strided_copy.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

TensorDesc TensorOf(const ElementProblem& problem, const ElementOperand& operand) {
  TensorDesc tensor;
  tensor.type = operand.type;
  tensor.rank = problem.rank;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    tensor.sizes[d] = static_cast<uint32_t>(problem.sizes[d]);
    tensor.strides[d] = static_cast<uint32_t>(operand.strides[d]);
  }
  return tensor;
}

class ElementCopy final : public Kernel, public WorkEstimate {
 public:
  ElementCopy(const ElementProblem& problem, uint32_t threads)
      : copy_(TensorOf(problem, problem.inputs[0]), TensorOf(problem, problem.outputs[0]), threads) {}

  uint64_t work_bytes() const override { return copy_.work_bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    copy_.Run(arguments.inputs[0].data, arguments.outputs[0].data, arguments.executor);
    return {};
  }

 private:
  StridedCopy copy_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementCopy(const ElementProblem& problem, const LowerContext& context,
                                                std::string* why_not) {
  if (!IsMove(problem)) {
    *why_not = "elements are not only moved";
    return nullptr;
  }
  return std::make_unique<ElementCopy>(problem, context.threads);
}

}  // namespace anydml
