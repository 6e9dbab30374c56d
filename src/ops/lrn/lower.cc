#include "ops/common/checks.h"
#include "ops/lrn/problem.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Function = ElementFunction;

constexpr StepOperand kInput = {StepOperand::kInput, 0}, kGradient = {StepOperand::kInput, 1},
                      kOutput = {StepOperand::kOutput, 0};

// Sums over windows of `from`; for a square window along rows, then along columns.
StepOperand AppendSums(StepList* list, const LrnProblem& p, StepOperand from, const TensorDesc& tensor,
                       bool squares, uint32_t before, uint32_t after) {
  const uint64_t elements = ElementCount(p.input);
  const StepOperand sums = list->AddScratch(elements);
  const uint32_t first = p.cross_channel ? 1 : 3;
  list->steps.push_back({WindowSumsProblem{tensor, first, before, after, squares}, {from}, {sums}});
  if (p.cross_channel) return sums;
  const StepOperand both = list->AddScratch(elements);
  const TensorDesc packed = PackedTensor(DataType::kFloat32, tensor.sizes.data(), tensor.rank);
  list->steps.push_back({WindowSumsProblem{packed, 2, before, after, false}, {sums}, {both}});
  return both;
}

// (bias + alpha / local_size * sum)^exponent, in a new register.
uint8_t LoadPower(ElementProgramStep& step, const LrnProblem& p, StepOperand sums, float exponent) {
  const uint8_t s = step.LoadResult(sums, {});
  step.Apply(Function::kScaleBias, {s}, p.alpha / static_cast<float>(p.local_size), p.bias);
  return step.Apply(Function::kConstantPower, {s}, exponent);
}

StepList StepsOf(const LrnProblem& p) {
  StepList list;
  const StepOperand sums = AppendSums(&list, p, kInput, p.input, true, p.before(), p.after());
  ElementProgramStep step(p.input);
  if (!p.gradient) {
    const uint8_t x = step.Load(kInput, p.input);
    step.Apply(Function::kMultiply, {x, LoadPower(step, p, sums, -p.beta)});
    step.Store(kOutput, p.output, x);
    list.steps.push_back(std::move(step).Take());
    return list;
  }
  // The contribution of element j to all in its window: gradient * x * s^(-beta - 1).
  const StepOperand shares = list.AddScratch(ElementCount(p.input));
  ElementProgramStep share_step(p.input);
  const uint8_t share = share_step.Load(kGradient, *p.gradient);
  share_step.Apply(Function::kMultiply, {share, share_step.Load(kInput, p.input)});
  share_step.Apply(Function::kMultiply, {share, LoadPower(share_step, p, sums, -p.beta - 1)});
  share_step.StoreResult(shares, {}, share);
  list.steps.push_back(std::move(share_step).Take());
  // Those that have element i in their window: the mirrored window.
  const TensorDesc packed = PackedTensor(DataType::kFloat32, p.input.sizes.data(), p.input.rank);
  const StepOperand gathered = AppendSums(&list, p, shares, packed, false, p.after(), p.before());

  const uint8_t gradient = step.Load(kGradient, *p.gradient);
  step.Apply(Function::kMultiply, {gradient, LoadPower(step, p, sums, -p.beta)});
  const uint8_t others = step.LoadResult(gathered, {});
  step.Apply(Function::kMultiply, {others, step.Load(kInput, p.input)});
  step.Apply(Function::kScaleBias, {others}, 2 * p.alpha * p.beta / static_cast<float>(p.local_size), 0);
  step.Apply(Function::kSubtract, {gradient, others});
  step.Store(kOutput, p.output, gradient);
  list.steps.push_back(std::move(step).Take());
  return list;
}

template <typename Desc>
LrnProblem ProblemOf(const Desc& desc) {
  LrnProblem problem;
  problem.input = desc.input;
  problem.cross_channel = desc.cross_channel;
  problem.local_size = desc.local_size;
  problem.alpha = desc.alpha;
  problem.beta = desc.beta;
  problem.bias = desc.bias;
  return problem;
}

LrnProblem ProblemOf(const OperatorDesc& given) {
  if (given.schema->type == static_cast<uint32_t>(OperatorType::kLocalResponseNormalization)) {
    const auto desc = LocalResponseNormalizationDesc::From(given);
    LrnProblem problem = ProblemOf(desc);
    problem.output = desc.output;
    return problem;
  }
  const auto desc = LocalResponseNormalizationGradDesc::From(given);
  LrnProblem problem = ProblemOf(desc);
  problem.gradient = desc.input_gradient;
  problem.output = desc.output_gradient;
  return problem;
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  LrnProblem problem = ProblemOf(desc);
  problem.steps = StepsOf(problem);
  return ChooseKernel(problem, context, out);
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  if (desc.uint("LocalSize") >= 1) return {};
  return InvalidArgument(desc.schema->name, ": LocalSize is 0 but must be at least 1");
}

template <const char* const& kOutputName>
Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, kOutputName, input.type, input.sizes, input.rank);
  return {};
}

constexpr const char* kForward = "OutputTensor";
constexpr const char* kBackward = "OutputGradientTensor";

}  // namespace

std::unique_ptr<const Kernel> CreateLrnErrors(const OperatorDesc& desc) {
  return CreateLrnErrors(ProblemOf(desc));
}

std::span<const Operator> LrnOperators() {
  static const Operator operators[] = {
      {static_cast<uint32_t>(OperatorType::kLocalResponseNormalization), Check, Lower, Infer<kForward>,
       LrnProblem::kFamily, kPlainTraits},
      {static_cast<uint32_t>(OperatorType::kLocalResponseNormalizationGrad), Check, Lower, Infer<kBackward>,
       LrnProblem::kFamily, kPlainTraits},
  };
  return operators;
}

namespace family::lrn {

void RegisterOperators(OperatorList* all) { all->Add(LrnOperators()); }

}  // namespace family::lrn

}  // namespace anydml
