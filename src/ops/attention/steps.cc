#include "ops/attention/steps.h"

#include <utility>

#include "ops/implementation_list.h"

namespace anydml {
namespace {

constexpr uint64_t kMostLogits = uint64_t{1} << 40;

// Rows are keys or values.
GemmMatrix MatrixOf(const AttentionView& view) { return {{view.batch, view.head}, view.row, view.column}; }

}  // namespace

GemmMatrix AttentionSteps::PackedGroup(uint64_t columns) const {
  const AttentionProblem& p = problem();
  const uint64_t group = p.group * p.queries * columns;
  return {{p.KeyHeads() * group, group}, columns, 1};
}

// Converts the product, whose heads are separate, to the output.
Status AttentionSteps::AddConversion(const LowerContext& part) {
  const AttentionProblem& p = problem();
  const uint64_t head = p.queries * p.value.columns;
  ElementProblem problem;
  problem.rank = 4;
  problem.sizes = {p.batch, p.heads, p.queries, p.value.columns};
  problem.inputs = {ElementOperand{DataType::kFloat32, {p.heads * head, head, p.value.columns, 1}}};
  problem.outputs = {ElementOperand{p.type, {p.output.batch, p.output.head, p.output.row, p.output.column}}};
  const uint8_t at = problem.program.Load(0, Class::kF32);
  problem.program.Apply(ElementFunction::kCanonical, Class::kF32, {at});
  problem.program.Store(0, at, Class::kF32);
  LoweredOperator lowered;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(problem, part, &lowered));
  conversion_part_ = AddPart(lowered.implementation, std::move(lowered.kernel));
  return {};
}

Status AttentionSteps::AddProducts(const LowerContext& context) {
  const AttentionProblem& p = problem();
  const LowerContext part = context.ForPart();
  GemmProblem logits;
  logits.type = query().type;
  logits.batch = {p.batch, p.KeyHeads()};
  logits.m = p.group * p.queries;
  logits.n = p.keys;
  logits.k = p.key.columns;
  logits.a = GroupMatrix(query().view);
  logits.b = MatrixOf(key().view).Transposed();
  logits.output = PackedGroup(p.keys);
  logits.alpha = p.scale;
  LoweredOperator lowered;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(logits, part, &lowered));
  logits_part_ = AddPart(lowered.implementation, std::move(lowered.kernel));

  GemmProblem product;  // FLOAT32, since rounded weights would cost the output's digits
  product.batch = logits.batch;
  product.m = logits.m;
  product.n = p.value.columns;
  product.k = p.keys;
  product.a = logits.output;
  product.b = MatrixOf(value().view);
  product.output = converts_ ? PackedGroup(p.value.columns) : GroupMatrix(p.output);
  product.output_type = converts_ ? DataType::kFloat32 : p.type;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(product, part, &lowered));
  output_part_ = AddPart(lowered.implementation, std::move(lowered.kernel));
  return converts_ ? AddConversion(part) : Status();
}

Status AttentionSteps::Create(const LowerContext& context) {
  const AttentionProblem& p = problem();
  if (weights().Rows() > kMostLogits / p.keys) {
    return Status(Code::kUnsupported, StrCat("there are more than ", kMostLogits, " logits"));
  }
  converts_ = !RowsAreEven() || (for_libraries_ && (is_half() || !HasOneStride(p.output, p.heads)));
  logits_ = AddScratch("logits", weights().Rows() * p.keys * sizeof(float));
  if (converts_) result_ = AddScratch("output", weights().Rows() * p.value.columns * sizeof(float));
  return AddProducts(context);
}

Status AttentionSteps::Run(const KernelArguments& arguments) const {
  RunJoins(arguments);
  const Buffer logits = logits_.In(arguments.temporary);
  KernelArguments part = arguments;
  const Buffer factors[] = {BufferOf(query(), arguments), BufferOf(key(), arguments), {}};
  part.inputs = factors;
  part.outputs = {&logits, 1};
  ANYDML_RETURN_IF_ERROR(RunPart(logits_part_, part));

  Weigh(reinterpret_cast<float*>(logits.data), WeightsMemory(arguments), arguments);

  const Buffer weighted[] = {logits, BufferOf(value(), arguments), {}};
  const Buffer result = converts_ ? result_.In(arguments.temporary) : arguments.outputs[0];
  part.inputs = weighted;
  part.outputs = {&result, 1};
  ANYDML_RETURN_IF_ERROR(RunPart(output_part_, part));
  if (converts_) {
    part.inputs = {&result, 1};
    part.outputs = arguments.outputs.first(1);
    ANYDML_RETURN_IF_ERROR(RunPart(conversion_part_, part));
  }
  // A single query sees all rows.
  if (problem().lengths.exists && problem().queries > 1) {
    LeaveOutUnseen(reinterpret_cast<const float*>(logits.data), WeightsMemory(arguments), arguments);
  }
  return {};
}

}  // namespace anydml
