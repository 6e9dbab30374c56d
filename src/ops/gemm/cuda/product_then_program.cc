// A product followed by an element program that adds C and applies the activation, for what product kernels
// cannot do themselves.
#include "base/half.h"
#include "kernel/composite.h"
#include "ops/convolution/activation.h"
#include "ops/gemm/problem.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

ElementOperand OperandOf(const GemmMatrix& matrix, DataType type) {
  return {type, {matrix.batch[0], matrix.batch[1], matrix.row, matrix.column}};
}

GemmMatrix PackedMatrix(const GemmProblem& p) { return {{p.batch[1] * p.m * p.n, p.m * p.n}, p.n, 1}; }

// Whether the product can add C, round, and write to the output before the activation is applied in place;
// then both steps are as fast as they can be.
bool ActivatesInPlace(const GemmProblem& p) {
  if (p.activation.instructions.empty() || !p.AddsRow() || p.type != p.output_type) return false;
  if (p.type == DataType::kFloat32) return true;
  const auto is_half = [](float number) { return ToFloat(ToHalf(number)) == number; };
  SumLimits limits;
  return limits.Set(p.activation) && is_half(limits.least) && is_half(limits.most);
}

// From the product (input 0) and C (input 1) to the output.
ElementProblem SecondHalf(const GemmProblem& p, const GemmProblem& first) {
  ElementProblem problem;
  problem.rank = 4;
  problem.sizes = {p.batch[0], p.batch[1], p.m, p.n};
  problem.inputs = {OperandOf(first.output, first.output_type)};
  problem.outputs = {OperandOf(p.output, p.output_type)};
  ElementProgram& program = problem.program;
  const uint8_t at = program.Load(0, Class::kF32);
  if (p.c && !first.c) {
    problem.inputs.push_back(OperandOf(*p.c, p.type));
    const uint8_t c = program.Load(1, Class::kF32);
    program.Apply(ElementFunction::kScaleBias, Class::kF32, {c}, ParameterOf(p.beta), ParameterOf(0.0f));
    program.Apply(ElementFunction::kAdd, Class::kF32, {at, c});
  }
  for (const Instruction& instruction : p.activation.instructions)
    program.instructions.push_back(instruction);
  program.Store(0, at, Class::kF32);
  return problem;
}

class GemmInTwo final : public CompositeKernel {
 public:
  GemmInTwo(LoweredOperator product, LoweredOperator rest, bool adds_c_first, uint64_t scratch_bytes)
      : product_(AddPart(product.implementation, std::move(product.kernel))),
        rest_(AddPart(rest.implementation, std::move(rest.kernel))),
        adds_c_first_(adds_c_first),
        in_output_(scratch_bytes == 0) {
    if (!in_output_) sums_ = AddScratch("product", scratch_bytes);
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer sums = in_output_ ? arguments.outputs[0] : sums_.In(arguments.temporary);
    KernelArguments part = arguments;
    part.inputs = arguments.inputs.first(adds_c_first_ ? 3 : 2);
    part.outputs = {&sums, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(product_, part));
    const Buffer inputs[] = {sums, arguments.inputs[2]};
    const bool adds_c = !adds_c_first_ && arguments.inputs[2].data != nullptr;
    part.inputs = std::span(inputs).first(adds_c ? 2 : 1);
    part.outputs = arguments.outputs;
    return RunPart(rest_, part);
  }

 private:
  uint32_t product_, rest_;
  bool adds_c_first_;
  bool in_output_;  // the product is written to the output, having its type
  ScratchLayout::Piece sums_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmInTwo(const GemmProblem& problem, const LowerContext& context,
                                              std::string* why_not) {
  if (!problem.c && problem.activation.instructions.empty()) {
    *why_not = "there is neither C nor an activation";
    return nullptr;
  }
  GemmProblem first = problem;
  first.activation = {};
  const bool in_place = ActivatesInPlace(problem);
  if (!in_place) first.c.reset();
  uint64_t bytes = 0;
  if (!in_place && problem.output_type != DataType::kFloat32) {
    first.output_type = DataType::kFloat32;
    first.output = PackedMatrix(problem);
    bytes = problem.Batches() * problem.m * problem.n * sizeof(float);
  }
  LoweredOperator product, rest;
  Status status = ChooseKernel(first, context.ForPart(), &product);
  if (status.ok()) {
    status = ChooseKernel(SecondHalf(problem, first), context.ForPart(), &rest);
  }
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<GemmInTwo>(std::move(product), std::move(rest), first.c.has_value(), bytes);
}

}  // namespace anydml
