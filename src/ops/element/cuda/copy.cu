// Programs that only move elements.
#include "ops/device/cuda/copies.cuh"
#include "ops/element/problem.h"

namespace anydml {
namespace {

class ElementCopyCuda final : public Kernel {
 public:
  explicit ElementCopyCuda(const ElementProblem& problem)
      : same_layout_(SameStrides(problem)),
        copies_({{.nest = NestOf(problem)}}, BitSize(problem.outputs[0].type) / 8) {}

  Status Run(const KernelArguments& arguments) const override {
    if (same_layout_ && arguments.inputs[0].data == arguments.outputs[0].data) return {};
    KernelChain chain(arguments.stream);
    LaunchCopies(copies_, arguments, /*fill=*/0, &chain);
    return {};
  }

 private:
  static LoopNest<2> NestOf(const ElementProblem& problem) {
    LoopNest<2> nest;
    for (uint32_t d = 0; d < problem.rank; ++d) {
      nest.Append(problem.sizes[d], {problem.inputs[0].strides[d], problem.outputs[0].strides[d]});
    }
    return SortedByStride(nest, DeviceCopy::kTo);
  }

  static bool SameStrides(const ElementProblem& problem) {
    for (uint32_t d = 0; d < problem.rank; ++d) {
      const bool same = problem.inputs[0].strides[d] == problem.outputs[0].strides[d];
      if (problem.sizes[d] > 1 && !same) return false;
    }
    return true;
  }

  bool same_layout_;  // then there is nothing to do in place
  DeviceCopies copies_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementCopyCuda(const ElementProblem& problem, const LowerContext&,
                                                    std::string* why_not) {
  if (!IsMove(problem)) {
    *why_not = "elements are not only moved";
    return nullptr;
  }
  if (BitSize(problem.outputs[0].type) < 8 || problem.rank > kMaxDimensions) {
    *why_not = "only elements of whole bytes, in up to 8 loops, are moved here";
    return nullptr;
  }
  return std::make_unique<ElementCopyCuda>(problem);
}

}  // namespace anydml
