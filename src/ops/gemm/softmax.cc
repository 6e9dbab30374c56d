#include "ops/gemm/softmax.h"

#include <utility>

#include "kernel/composite.h"
#include "ops/implementation_list.h"
#include "ops/softmax/problem.h"

namespace anydml {
namespace {

TensorDesc TensorOf(const GemmProblem& p, const GemmMatrix& matrix, DataType type) {
  const auto narrow = [](uint64_t number) { return static_cast<uint32_t>(number); };
  TensorDesc tensor;
  tensor.type = type;
  tensor.rank = 4;
  tensor.sizes = {narrow(p.batch[0]), narrow(p.batch[1]), narrow(p.m), narrow(p.n)};
  tensor.strides = {narrow(matrix.batch[0]), narrow(matrix.batch[1]), narrow(matrix.row),
                    narrow(matrix.column)};
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}

// Converts FLOAT32 in scratch to the output.
ElementProblem Conversion(const GemmProblem& p, const GemmMatrix& from) {
  const auto operand = [](const GemmMatrix& m, DataType type) {
    return ElementOperand{type, {m.batch[0], m.batch[1], m.row, m.column}};
  };
  ElementProblem problem;
  problem.rank = 4;
  problem.sizes = {p.batch[0], p.batch[1], p.m, p.n};
  problem.inputs = {operand(from, DataType::kFloat32)};
  problem.outputs = {operand(p.output, p.output_type)};
  const uint8_t at = problem.program.Load(0, Class::kF32);
  problem.program.Apply(ElementFunction::kCanonical, Class::kF32, {at});
  problem.program.Store(0, at, Class::kF32);
  return problem;
}

class GemmThenSoftmax final : public CompositeKernel {
 public:
  // Results are rounded once, after the softmax: product and softmax work on FLOAT32.
  Status Create(const GemmSoftmaxProblem& problem, const LowerContext& context) {
    GemmProblem product = problem.product;
    const DataType type = product.output_type;
    const GemmMatrix output = product.output;
    product.output = {{product.batch[1] * product.m * product.n, product.m * product.n}, product.n, 1};
    product.output_type = DataType::kFloat32;
    converts_ = type != DataType::kFloat32;
    const TensorDesc sums = TensorOf(product, product.output, DataType::kFloat32);
    const GemmMatrix& result = converts_ ? product.output : output;
    const SoftmaxProblem softmax = {SoftmaxKind::kSoftmax, sums,
                                    TensorOf(product, result, DataType::kFloat32), problem.axes};
    LowerContext part = context.ForPart();
    if (context.implementation == "cpu.reference") part.implementation = context.implementation;
    LoweredOperator lowered;
    ANYDML_RETURN_IF_ERROR(ChooseKernel(product, part, &lowered));
    product_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    ANYDML_RETURN_IF_ERROR(ChooseKernel(softmax, part, &lowered));
    softmax_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    const uint64_t bytes = product.Batches() * product.m * product.n * sizeof(float);
    sums_ = AddScratch("product", bytes);
    if (!converts_) return {};
    powers_ = AddScratch("softmax", bytes);
    ANYDML_RETURN_IF_ERROR(ChooseKernel(Conversion(problem.product, product.output), part, &lowered));
    conversion_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    return {};
  }

  bool packs_input(uint32_t input) const override { return PartPacksInput(product_, input); }
  Status Initialize(const KernelArguments& arguments) const override {
    return InitializePart(product_, arguments);
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer sums = sums_.In(arguments.temporary);
    const Buffer powers = converts_ ? powers_.In(arguments.temporary) : arguments.outputs[0];
    KernelArguments part = arguments;
    part.outputs = {&sums, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(product_, part));
    part.inputs = {&sums, 1};
    part.outputs = {&powers, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(softmax_, part));
    if (!converts_) return {};
    part.inputs = {&powers, 1};
    part.outputs = arguments.outputs;
    return RunPart(conversion_, part);
  }

 private:
  bool converts_ = false;
  uint32_t product_ = 0, softmax_ = 0, conversion_ = 0;
  ScratchLayout::Piece sums_, powers_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmThenSoftmax(const GemmSoftmaxProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<GemmThenSoftmax>();
  const Status status = kernel->Create(problem, context);
  if (status.ok()) return kernel;
  *why_not = status.message();
  return nullptr;
}

}  // namespace anydml
