#include "ops/common/checks.h"
#include "ops/element/builder.h"
#include "ops/mvn/problem.h"
#include "ops/implementation_list.h"
#include "ops/reduce/axes.h"
#include "ops/work.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Function = ElementFunction;

constexpr StepOperand kInput = {StepOperand::kInput, 0}, kScale = {StepOperand::kInput, 1},
                      kBias = {StepOperand::kInput, 2}, kOutput = {StepOperand::kOutput, 0};

// --- problems ---

std::optional<TensorDesc> OrNone(const TensorDesc* tensor) {
  return tensor != nullptr ? std::optional<TensorDesc>(*tensor) : std::nullopt;
}

DimensionSet SetOf(std::span<const uint32_t> axes) {
  DimensionSet set{};
  for (const uint32_t axis : axes) set[axis] = true;
  return set;
}

struct Affine {
  MvnProblem problem;
  const OperatorDesc* activation = nullptr;
};

template <typename Desc>
Affine AffineOf(const Desc& desc, std::span<const uint32_t> axes, bool use_mean, bool use_variance) {
  Affine affine;
  MvnProblem& problem = affine.problem;
  problem.input = desc.input;
  problem.scale = OrNone(desc.scale);
  problem.bias = OrNone(desc.bias);
  problem.output = desc.output;
  problem.reduced = SetOf(axes);
  problem.use_mean = use_mean;
  problem.use_variance = use_variance;
  problem.epsilon = desc.epsilon;
  problem.has_activation = desc.fused_activation != nullptr;
  affine.activation = desc.fused_activation;
  return affine;
}

Affine Problem0(const OperatorDesc& given) {
  constexpr uint32_t kAxes[] = {1, 2, 3};
  const auto desc = MeanVarianceNormalizationDesc::From(given);
  return AffineOf(desc, std::span<const uint32_t>(kAxes).subspan(desc.cross_channel ? 0 : 1), true,
                  desc.normalize_variance);
}

Affine Problem1(const OperatorDesc& given) {
  const auto desc = MeanVarianceNormalization1Desc::From(given);
  return AffineOf(desc, desc.axes, true, desc.normalize_variance);
}

Affine Problem2(const OperatorDesc& given) {
  const auto desc = MeanVarianceNormalization2Desc::From(given);
  return AffineOf(desc, desc.axes, desc.use_mean, desc.use_variance);
}

Affine ProblemLp(const OperatorDesc& given) {
  const auto desc = LpNormalizationDesc::From(given);
  Affine affine;
  MvnProblem& problem = affine.problem;
  problem.input = desc.input;
  problem.output = desc.output;
  problem.reduced[desc.axis] = true;
  problem.use_mean = problem.use_variance = false;
  problem.epsilon = desc.epsilon;
  problem.p = desc.p;
  return affine;
}

// --- steps ---

// 1 / sqrt(variance + epsilon), or max(norm, epsilon), of every set.
Step FactorStep(const MvnProblem& problem, StepOperand statistic, StepOperand factor) {
  ElementProgramStep step(problem.input, problem.reduced);
  const uint8_t at = step.LoadResult(statistic, problem.reduced);
  if (problem.p == 0) step.Apply(Function::kScaleBias, {at}, 1, problem.epsilon);
  if (problem.p != 1) step.Apply(Function::kSquareRoot, {at});
  if (problem.p == 0) {
    step.Apply(Function::kReciprocal, {at});
  } else {
    step.Apply(Function::kMaximum, {at, step.program().Constant(ParameterOf(problem.epsilon), Class::kF32)});
  }
  step.StoreResult(factor, problem.reduced, at);
  return std::move(step).Take();
}

StepList StepsOf(const MvnProblem& problem, const OperatorDesc* activation) {
  StepList list;
  const uint64_t sets = KeptElements(problem.input, problem.reduced);
  const bool divides = problem.use_variance || problem.p != 0;
  StepOperand mean, statistic, factor;
  if (problem.use_mean) mean = list.AddScratch(sets);
  if (divides) statistic = list.AddScratch(sets);
  if (divides) factor = list.AddScratch(sets);
  if (problem.use_mean || divides) {
    const Moments moments = problem.p == 1                             ? Moments::kSumOfMagnitudes
                            : problem.p == 2                           ? Moments::kSumOfSquares
                            : problem.use_mean && problem.use_variance ? Moments::kMeanAndVariance
                            : problem.use_mean                         ? Moments::kMean
                                                                       : Moments::kMeanOfSquares;
    Step sums = {MomentsProblem{moments, problem.input, problem.reduced, {}, {}}, {kInput}, {}};
    if (problem.use_mean) sums.outputs.push_back(mean);
    if (divides) sums.outputs.push_back(statistic);
    list.steps.push_back(std::move(sums));
  }
  if (divides) list.steps.push_back(FactorStep(problem, statistic, factor));

  ElementProgramStep step(problem.input);
  const uint8_t x = step.Load(kInput, problem.input);
  if (problem.use_mean) step.Apply(Function::kSubtract, {x, step.LoadResult(mean, problem.reduced)});
  if (divides) {
    step.Apply(problem.p == 0 ? Function::kMultiply : Function::kDivide,
               {x, step.LoadResult(factor, problem.reduced)});
  }
  if (problem.scale) step.Apply(Function::kMultiply, {x, step.Load(kScale, *problem.scale)});
  if (problem.bias) step.Apply(Function::kAdd, {x, step.Load(kBias, *problem.bias)});
  if (activation != nullptr) AppendActivation(*activation, &step.program(), x);
  step.Store(kOutput, problem.output, x);
  list.steps.push_back(std::move(step).Take());
  return list;
}

ElementProblem FinishOf(const MvnProblem& problem, const OperatorDesc* activation) {
  ElementProgramStep step(problem.input);
  const uint8_t x = step.LoadResult(kInput, {});
  if (activation != nullptr) AppendActivation(*activation, &step.program(), x);
  step.Store(kOutput, problem.output, x);
  return std::get<ElementProblem>(std::move(step).Take().problem);
}

template <Affine (*kProblemOf)(const OperatorDesc&)>
Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  Affine affine = kProblemOf(desc);
  affine.problem.finish = FinishOf(affine.problem, affine.activation);
  affine.problem.steps = StepsOf(affine.problem, affine.activation);
  return ChooseKernel(affine.problem, context, out);
}

// --- rules ---

Status CheckAffine(const OperatorDesc& desc, FeatureLevel level) {
  const bool has_scale = desc.tensor("ScaleTensor") != nullptr,
             has_bias = desc.tensor("BiasTensor") != nullptr;
  constexpr FeatureLevel kIndependent = 0x5200;
  if (has_scale != has_bias && level < kIndependent) {
    return InvalidArgument(desc.schema->name, ": ", has_scale ? "BiasTensor" : "ScaleTensor", " is null but ",
                           has_scale ? "ScaleTensor" : "BiasTensor",
                           " is not; they come together at feature level ", FeatureLevelName(level),
                           " (one may come without the other from 5.2 on)");
  }
  if (has_scale) ANYDML_RETURN_IF_ERROR(CheckBroadcastSizes(desc, "ScaleTensor"));
  if (has_bias) ANYDML_RETURN_IF_ERROR(CheckBroadcastSizes(desc, "BiasTensor"));
  return {};
}

// Before 4.0, scale and bias must have all channels.
Status CheckChannels(const OperatorDesc& desc, FeatureLevel level) {
  constexpr FeatureLevel kAnyBroadcast = 0x4000;
  const TensorDesc& input = *desc.tensor("InputTensor");
  if (level >= kAnyBroadcast || input.rank < 2) return {};
  for (const char* name : {"ScaleTensor", "BiasTensor"}) {
    const TensorDesc* tensor = desc.tensor(name);
    if (tensor == nullptr || tensor->sizes[1] == input.sizes[1]) continue;
    return InvalidArgument(desc.schema->name, ": ", name, ".Sizes[1] is ", tensor->sizes[1], " but must be ",
                           input.sizes[1], ", that of InputTensor, at feature level ",
                           FeatureLevelName(level), " (1 is allowed from 4.0 on)");
  }
  return {};
}

Status Check1(const OperatorDesc& desc, FeatureLevel level) {
  ANYDML_RETURN_IF_ERROR(CheckAxes(desc, MeanVarianceNormalization1Desc::From(desc).axes));
  ANYDML_RETURN_IF_ERROR(CheckAffine(desc, level));
  return CheckChannels(desc, level);
}

Status Check2(const OperatorDesc& desc, FeatureLevel level) {
  ANYDML_RETURN_IF_ERROR(CheckAxes(desc, MeanVarianceNormalization2Desc::From(desc).axes));
  return CheckAffine(desc, level);
}

Status CheckLp(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
  const uint32_t p = desc.uint("P");
  if (p == 1 || p == 2) return {};
  return InvalidArgument(desc.schema->name, ": P is ", p, " but must be 1 or 2");
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, "OutputTensor", input.type, input.sizes, input.rank);
  return {};
}

}  // namespace

std::span<const Operator> MvnOperators() {
  constexpr OperatorTraits kNormalization = kPlainTraits.With(WorkOfElements);
  static const Operator operators[] = {
      {static_cast<uint32_t>(OperatorType::kMeanVarianceNormalization), CheckAffine, Lower<Problem0>, Infer,
       MvnProblem::kFamily, kNormalization},
      {static_cast<uint32_t>(OperatorType::kMeanVarianceNormalization1), Check1, Lower<Problem1>, Infer,
       MvnProblem::kFamily, kNormalization.With(RowUse::kInBlocks)},
      {static_cast<uint32_t>(OperatorType::kMeanVarianceNormalization2), Check2, Lower<Problem2>, Infer,
       MvnProblem::kFamily, kNormalization.With(RowUse::kInBlocks)},
      {static_cast<uint32_t>(OperatorType::kLpNormalization), CheckLp, Lower<ProblemLp>, Infer,
       MvnProblem::kFamily, kPlainTraits},
  };
  return operators;
}

namespace family::mvn {

void RegisterOperators(OperatorList* all) { all->Add(MvnOperators()); }

}  // namespace family::mvn

}  // namespace anydml
