#include "ops/moments/steps.h"

#include <array>
#include <utility>

#include "kernel/composite.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

class StepsKernel final : public CompositeKernel {
 public:
  explicit StepsKernel(const StepList& list) {
    for (const uint64_t elements : list.scratch)
      scratch_.push_back(AddScratch("step", elements * sizeof(float)));
  }

  void Add(const Step& step, LoweredOperator lowered) {
    steps_.push_back({AddPart(lowered.implementation, std::move(lowered.kernel)), step.inputs, step.outputs});
  }

  Status Run(const KernelArguments& arguments) const override {
    for (const Bound& step : steps_) {
      std::array<Buffer, kMaxStepOperands> inputs, outputs;
      KernelArguments own = arguments;
      own.inputs = Gather(step.inputs, arguments, &inputs);
      own.outputs = Gather(step.outputs, arguments, &outputs);
      ANYDML_RETURN_IF_ERROR(RunPart(step.part, own));
    }
    return {};
  }

 private:
  struct Bound {
    uint32_t part;
    std::vector<StepOperand> inputs, outputs;
  };

  std::span<const Buffer> Gather(const std::vector<StepOperand>& operands, const KernelArguments& arguments,
                                 std::array<Buffer, kMaxStepOperands>* buffers) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      const uint32_t index = operands[i].index;
      switch (operands[i].where) {
        case StepOperand::kInput:
          (*buffers)[i] = arguments.inputs[index];
          break;
        case StepOperand::kOutput:
          (*buffers)[i] = arguments.outputs[index];
          break;
        case StepOperand::kScratch:
          (*buffers)[i] = scratch_[index].In(arguments.temporary);
      }
    }
    return std::span<const Buffer>(*buffers).first(operands.size());
  }

  std::vector<ScratchLayout::Piece> scratch_;
  std::vector<Bound> steps_;
};

Status Choose(const MomentsProblem& problem, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(problem, context, out);
}
Status Choose(const WindowSumsProblem& problem, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(problem, context, out);
}
Status Choose(const ElementProblem& problem, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(problem, context, out);
}

}  // namespace

std::unique_ptr<const Kernel> CreateSteps(const StepList& list, const LowerContext& context,
                                          std::string* why_not) {
  auto kernel = std::make_unique<StepsKernel>(list);
  for (const Step& step : list.steps) {
    LoweredOperator lowered;
    const Status status = std::visit(
        [&](const auto& problem) { return Choose(problem, context.ForPart(), &lowered); }, step.problem);
    if (!status.ok()) {
      *why_not = status.message();
      return nullptr;
    }
    kernel->Add(step, std::move(lowered));
  }
  return kernel;
}

ElementProgramStep::ElementProgramStep(const TensorDesc& whole) : ElementProgramStep(whole, {}) {}

ElementProgramStep::ElementProgramStep(const TensorDesc& whole, const DimensionSet& reduced) {
  problem_.rank = whole.rank;
  for (uint32_t d = 0; d < whole.rank; ++d) problem_.sizes[d] = reduced[d] ? 1 : whole.sizes[d];
}

ElementOperand ElementProgramStep::Operand(const TensorDesc& tensor) const {
  ElementOperand operand = {tensor.type, {}};
  for (uint32_t d = 0; d < tensor.rank; ++d)
    operand.strides[d] = tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
  return operand;
}

ElementOperand ElementProgramStep::Result(const DimensionSet& reduced) const {
  ElementOperand operand = {DataType::kFloat32, {}};
  uint64_t stride = 1;
  for (uint32_t d = problem_.rank; d-- > 0;) {
    if (reduced[d]) continue;
    operand.strides[d] = stride;
    stride *= problem_.sizes[d];
  }
  return operand;
}

uint8_t ElementProgramStep::LoadFrom(StepOperand operand, const ElementOperand& element_operand) {
  inputs_.push_back(operand);
  problem_.inputs.push_back(element_operand);
  return program().Load(static_cast<uint32_t>(inputs_.size() - 1), Class::kF32);
}

void ElementProgramStep::StoreTo(StepOperand operand, const ElementOperand& element_operand, uint8_t source) {
  outputs_.push_back(operand);
  problem_.outputs.push_back(element_operand);
  program().Store(static_cast<uint32_t>(outputs_.size() - 1), source, Class::kF32);
}

uint8_t ElementProgramStep::Load(StepOperand operand, const TensorDesc& tensor) {
  return LoadFrom(operand, Operand(tensor));
}
uint8_t ElementProgramStep::LoadResult(StepOperand operand, const DimensionSet& reduced) {
  return LoadFrom(operand, Result(reduced));
}
void ElementProgramStep::Store(StepOperand operand, const TensorDesc& tensor, uint8_t source) {
  StoreTo(operand, Operand(tensor), source);
}
void ElementProgramStep::StoreResult(StepOperand operand, const DimensionSet& reduced, uint8_t source) {
  StoreTo(operand, Result(reduced), source);
}

}  // namespace anydml
