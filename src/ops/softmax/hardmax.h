// HARDMAX: ARGMAX, then ones among zeros.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernel/composite.h"
#include "ops/implementation_list.h"
#include "ops/reduce/problem.h"
#include "ops/softmax/problem.h"

namespace anydml {

class HardmaxKernel : public CompositeKernel {
 public:
  Status Run(const KernelArguments& arguments) const override {
    const Buffer positions[] = {positions_.In(arguments.temporary)};
    KernelArguments first = arguments;
    first.outputs = positions;
    ANYDML_RETURN_IF_ERROR(RunPart(argmax_, first));
    return Write(positions_.In<uint32_t>(arguments.temporary), arguments);
  }

 protected:
  HardmaxKernel(const SoftmaxProblem& problem, LoweredOperator argmax)
      : bytes_(BitSize(problem.output.type) / 8),
        argmax_(AddPart(argmax.implementation, std::move(argmax.kernel))) {
    const TensorDesc& output = problem.output;
    uint64_t sets = 1;
    for (uint32_t d = output.rank; d-- > 0;) {
      if (Has(problem.axes, d)) continue;
      packed_[d] = sets;
      sets *= output.sizes[d];
    }
    for (uint32_t d = 0; d < output.rank; ++d) {
      if (Has(problem.axes, d)) {
        elements_.Append(output.sizes[d], {output.strides[d]});
      } else {
        sets_.Append(output.sizes[d], {packed_[d], output.strides[d]});
      }
    }
    positions_ = AddScratch("positions", sets * sizeof(uint32_t));
  }

  // Writes a one at each set's position and zeros elsewhere.
  virtual Status Write(const uint32_t* positions, const KernelArguments& arguments) const = 0;

  uint32_t bytes_;        // per element: FLOAT32 or FLOAT16
  LoopNest<2> sets_;      // of positions and the output
  LoopNest<1> elements_;  // of the output, in the order of positions

 private:
  std::array<uint64_t, kMaxDimensions> packed_{};
  uint32_t argmax_;
  ScratchLayout::Piece positions_;
};

inline constexpr uint32_t kOneAsFloat32 = 0x3F800000;
inline constexpr uint16_t kOneAsFloat16 = 0x3C00;

template <typename Hardmax>
std::unique_ptr<const Kernel> CreateHardmax(const SoftmaxProblem& problem, const LowerContext& context,
                                            std::string* why_not) {
  if (problem.kind != SoftmaxKind::kHardmax) {
    *why_not = "is for HARDMAX";
    return nullptr;
  }
  const Dimensions sizes = WithoutAxes(problem.input.sizes, problem.axes);
  const ReduceProblem argmax = {ReduceFunction::kArgmax, false, problem.input,
                                PackedTensor(DataType::kUInt32, sizes.data(), problem.input.rank),
                                problem.axes};
  LoweredOperator part;
  const Status status = ChooseKernel(argmax, context.ForPart(), &part);
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<Hardmax>(problem, std::move(part), context);
}

}  // namespace anydml
