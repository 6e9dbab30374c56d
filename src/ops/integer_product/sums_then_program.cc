#include <utility>

#include "kernel/composite.h"
#include "ops/integer_product/problem.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

class SumsThenProgram final : public CompositeKernel {
 public:
  SumsThenProgram(const IntegerProductProblem& problem, LoweredOperator sums, LoweredOperator program)
      : sums_part_(AddPart(sums.implementation, std::move(sums.kernel))),
        program_part_(AddPart(program.implementation, std::move(program.kernel))),
        program_inputs_(problem.program_inputs) {
    const uint64_t width = BitSize(problem.sums.sum_type) / 8;
    sums_ = AddScratch("sums", problem.sums.shape.Elements() * width);
  }

  bool packs_input(uint32_t input) const override { return PartPacksInput(sums_part_, input); }
  Status Initialize(const KernelArguments& arguments) const override {
    return InitializePart(sums_part_, arguments);
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer sums = sums_.In(arguments.temporary);
    KernelArguments part = arguments;
    part.outputs = {&sums, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(sums_part_, part));
    std::array<Buffer, kMaxInputs> inputs = {sums};
    for (size_t i = 0; i < program_inputs_.size(); ++i) inputs[i + 1] = arguments.inputs[program_inputs_[i]];
    part.inputs = std::span(inputs).first(program_inputs_.size() + 1);
    part.outputs = arguments.outputs;
    return RunPart(program_part_, part);
  }

 private:
  static constexpr size_t kMaxInputs = 8;

  uint32_t sums_part_, program_part_;
  std::vector<uint32_t> program_inputs_;
  ScratchLayout::Piece sums_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateSumsThenProgram(const IntegerProductProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  if (problem.program.program.instructions.empty()) {
    *why_not = "the sums are the output";
    return nullptr;
  }
  const IntegerProductProblem only_sums = {problem.sums, {}, {}};
  // The reference consists of references.
  LowerContext part = context.ForPart();
  if (context.implementation == "cpu.reference") part.implementation = context.implementation;
  LoweredOperator sums, program;
  Status status = ChooseKernel(only_sums, part, &sums);
  if (status.ok()) status = ChooseKernel(problem.program, part, &program);
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<SumsThenProgram>(problem, std::move(sums), std::move(program));
}

}  // namespace anydml
