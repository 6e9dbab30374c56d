#include "ops/batchnorm/problem.h"
#include "ops/common/checks.h"
#include "ops/element/builder.h"
#include "ops/implementation_list.h"
#include "ops/work.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Function = ElementFunction;
using Kind = BatchNormProblem::Kind;

constexpr StepOperand Input(uint32_t index) { return {StepOperand::kInput, index}; }
constexpr StepOperand Output(uint32_t index) { return {StepOperand::kOutput, index}; }

// scale / sqrt(variance + epsilon); the root replaces the variance in its register.
uint8_t ApplyFactor(ElementProgramStep& step, uint8_t scale, uint8_t variance, float epsilon) {
  step.Apply(Function::kScaleBias, {variance}, 1, epsilon);
  step.Apply(Function::kSquareRoot, {variance});
  return step.Apply(Function::kDivide, {scale, variance});
}

StepList InferenceSteps(const BatchNormProblem& p, const OperatorDesc* activation) {
  constexpr auto kAt = batch_norm::InputsOf(Kind::kInference);
  DimensionSet one_factor{};
  for (uint32_t d = 0; d < p.input.rank; ++d)
    one_factor[d] = p.scale.sizes[d] == 1 && p.variance->sizes[d] == 1;
  StepList list;
  const StepOperand factors = list.AddScratch(KeptElements(p.input, one_factor));

  ElementProgramStep factor_step(p.input, one_factor);
  const uint8_t factor = factor_step.Load(Input(kAt.scale), p.scale);
  ApplyFactor(factor_step, factor, factor_step.Load(Input(kAt.variance), *p.variance), p.epsilon);
  factor_step.StoreResult(factors, one_factor, factor);
  list.steps.push_back(std::move(factor_step).Take());

  ElementProgramStep step(p.input);
  const uint8_t x = step.Load(Input(0), p.input);
  step.Apply(Function::kSubtract, {x, step.Load(Input(kAt.mean), *p.mean)});
  step.Apply(Function::kMultiply, {x, step.LoadResult(factors, one_factor)});
  step.Apply(Function::kAdd, {x, step.Load(Input(kAt.bias), *p.bias)});
  if (activation != nullptr) AppendActivation(*activation, &step.program(), x);
  step.Store(Output(0), p.outputs[0], x);
  list.steps.push_back(std::move(step).Take());
  return list;
}

StepList TrainingSteps(const BatchNormProblem& p, const OperatorDesc* activation) {
  constexpr auto kAt = batch_norm::InputsOf(Kind::kTraining);
  const DimensionSet reduced = ReducedBy(p.scale);
  const uint64_t sets = KeptElements(p.input, reduced);
  StepList list;
  const StepOperand means = list.AddScratch(sets), variances = list.AddScratch(sets),
                    factors = list.AddScratch(sets);
  list.steps.push_back(
      {MomentsProblem{Moments::kMeanAndVariance, p.input, reduced, {}, {}}, {Input(0)}, {means, variances}});

  ElementProgramStep per_set(p.scale);
  per_set.Store(Output(1), p.outputs[1], per_set.LoadResult(means, reduced));
  const uint8_t variance = per_set.LoadResult(variances, reduced);
  per_set.Store(Output(2), p.outputs[2], variance);
  const uint8_t factor = per_set.Load(Input(kAt.scale), p.scale);
  ApplyFactor(per_set, factor, variance, p.epsilon);
  per_set.StoreResult(factors, reduced, factor);
  list.steps.push_back(std::move(per_set).Take());

  ElementProgramStep step(p.input);
  const uint8_t x = step.Load(Input(0), p.input);
  step.Apply(Function::kSubtract, {x, step.LoadResult(means, reduced)});
  step.Apply(Function::kMultiply, {x, step.LoadResult(factors, reduced)});
  step.Apply(Function::kAdd, {x, step.Load(Input(kAt.bias), *p.bias)});
  if (p.added) step.Apply(Function::kAdd, {x, step.Load(Input(kAt.added), *p.added)});
  if (activation != nullptr) AppendActivation(*activation, &step.program(), x);
  step.Store(Output(0), p.outputs[0], x);
  list.steps.push_back(std::move(step).Take());
  return list;
}

// mean(gradient), and mean(gradient * (x - mean)) / (variance + epsilon): the part of the gradient through
// the statistics.
Step StatisticsGradientStep(const BatchNormProblem& p, const DimensionSet& reduced, StepOperand first,
                            StepOperand second, StepOperand offsets, StepOperand slopes) {
  constexpr auto kAt = batch_norm::InputsOf(Kind::kTrainingGradient);
  ElementProgramStep step(p.scale);
  const auto count = static_cast<float>(ReducedElements(p.input, reduced));
  const uint8_t n = step.program().Constant(ParameterOf(count), Class::kF32);
  const uint8_t offset = step.LoadResult(first, reduced);
  step.Apply(Function::kDivide, {offset, n});
  step.StoreResult(offsets, reduced, offset);
  const uint8_t slope = step.LoadResult(second, reduced);
  step.Apply(Function::kDivide, {slope, n});
  const uint8_t variance = step.Load(Input(kAt.variance), *p.variance);
  step.Apply(Function::kScaleBias, {variance}, 1, p.epsilon);
  step.Apply(Function::kDivide, {slope, variance});
  step.StoreResult(slopes, reduced, slope);
  return std::move(step).Take();
}

StepList GradientSteps(const BatchNormProblem& p, const OperatorDesc*) {
  constexpr auto kAt = batch_norm::InputsOf(Kind::kGradient);
  const DimensionSet reduced = ReducedBy(p.scale);
  const uint64_t sets = KeptElements(p.input, reduced);
  StepList list;
  const StepOperand first = list.AddScratch(sets), second = list.AddScratch(sets),
                    factors = list.AddScratch(sets);
  list.steps.push_back({MomentsProblem{Moments::kGradientSums, p.input, reduced, *p.gradient, *p.mean},
                        {Input(0), Input(kAt.gradient), Input(kAt.mean)},
                        {first, second}});

  ElementProgramStep per_set(p.scale);
  const uint8_t factor = per_set.Load(Input(kAt.scale), p.scale);
  const uint8_t root = per_set.Load(Input(kAt.variance), *p.variance);
  ApplyFactor(per_set, factor, root, p.epsilon);
  per_set.StoreResult(factors, reduced, factor);
  const uint8_t scale_gradient = per_set.LoadResult(second, reduced);
  per_set.Apply(Function::kDivide, {scale_gradient, root});
  per_set.Store(Output(1), p.outputs[1], scale_gradient);
  per_set.Store(Output(2), p.outputs[2], per_set.LoadResult(first, reduced));
  list.steps.push_back(std::move(per_set).Take());

  ElementProgramStep step(p.input);
  const uint8_t gradient = step.Load(Input(kAt.gradient), *p.gradient);
  if (p.kind == Kind::kTrainingGradient) {
    const StepOperand offsets = list.AddScratch(sets), slopes = list.AddScratch(sets);
    list.steps.push_back(StatisticsGradientStep(p, reduced, first, second, offsets, slopes));
    step.Apply(Function::kSubtract, {gradient, step.LoadResult(offsets, reduced)});
    const uint8_t x = step.Load(Input(0), p.input);
    step.Apply(Function::kSubtract, {x, step.Load(Input(kAt.mean), *p.mean)});
    step.Apply(Function::kMultiply, {x, step.LoadResult(slopes, reduced)});
    step.Apply(Function::kSubtract, {gradient, x});
  }
  step.Apply(Function::kMultiply, {gradient, step.LoadResult(factors, reduced)});
  step.Store(Output(0), p.outputs[0], gradient);
  list.steps.push_back(std::move(step).Take());
  return list;
}

ElementProblem FinishOf(const BatchNormProblem& problem, const OperatorDesc* activation) {
  ElementProgramStep step(problem.input);
  const uint8_t x = step.LoadResult(Input(0), {});
  if (activation != nullptr) AppendActivation(*activation, &step.program(), x);
  step.Store(Output(0), problem.outputs[0], x);
  return std::get<ElementProblem>(std::move(step).Take().problem);
}

template <StepList (*kStepsOf)(const BatchNormProblem&, const OperatorDesc*)>
Status Choose(BatchNormProblem problem, const OperatorDesc* activation, const LowerContext& context,
              LoweredOperator* out) {
  problem.finish = FinishOf(problem, activation);
  problem.steps = kStepsOf(problem, activation);
  return ChooseKernel(problem, context, out);
}

template <typename Desc>
BatchNormProblem ProblemOf(Kind kind, const Desc& desc) {
  BatchNormProblem problem;
  problem.kind = kind;
  problem.input = desc.input;
  problem.scale = desc.scale;
  problem.epsilon = desc.epsilon;
  return problem;
}

Status LowerInference(const OperatorDesc& given, const LowerContext& context, LoweredOperator* out) {
  const auto desc = BatchNormalizationDesc::From(given);
  BatchNormProblem problem = ProblemOf(Kind::kInference, desc);
  problem.mean = desc.mean;
  problem.variance = desc.variance;
  problem.bias = desc.bias;
  problem.outputs = {desc.output};
  return Choose<InferenceSteps>(std::move(problem), desc.fused_activation, context, out);
}

Status LowerTraining(const OperatorDesc& given, const LowerContext& context, LoweredOperator* out) {
  const auto desc = BatchNormalizationTrainingDesc::From(given);
  BatchNormProblem problem = ProblemOf(Kind::kTraining, desc);
  problem.bias = desc.bias;
  if (desc.fused_add != nullptr) problem.added = *desc.fused_add;
  problem.outputs = {desc.output, desc.output_mean, desc.output_variance};
  return Choose<TrainingSteps>(std::move(problem), desc.fused_activation, context, out);
}

template <typename Desc, Kind kKind>
Status LowerGradient(const OperatorDesc& given, const LowerContext& context, LoweredOperator* out) {
  const auto desc = Desc::From(given);
  BatchNormProblem problem = ProblemOf(kKind, desc);
  problem.mean = desc.mean;
  problem.variance = desc.variance;
  problem.gradient = desc.input_gradient;
  problem.outputs = {desc.output_gradient, desc.output_scale_gradient, desc.output_bias_gradient};
  return Choose<GradientSteps>(std::move(problem), nullptr, context, out);
}

// Before 4.0, mean and variance that are not spatial have an element per location.
Status CheckInference(const OperatorDesc& desc, FeatureLevel level) {
  for (const char* name : {"MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor"}) {
    ANYDML_RETURN_IF_ERROR(CheckBroadcastSizes(desc, name));
  }
  constexpr FeatureLevel kSpatialIsIgnored = 0x4000;
  if (level >= kSpatialIsIgnored || desc.uint("Spatial") != 0) return {};
  const TensorDesc& input = *desc.tensor("InputTensor");
  for (const char* name : {"MeanTensor", "VarianceTensor"}) {
    const TensorDesc& tensor = *desc.tensor(name);
    for (uint32_t d = 2; d < tensor.rank; ++d) {
      if (tensor.sizes[d] == input.sizes[d]) continue;
      return InvalidArgument(desc.schema->name, ": ", name, ".Sizes[", d, "] is ", tensor.sizes[d],
                             " but must be ", input.sizes[d],
                             ", that of InputTensor, where Spatial is FALSE at ", "feature level ",
                             FeatureLevelName(level), " (Spatial is ignored from 4.0 on)");
    }
  }
  return {};
}

// By the schema, the other parameters have the same sizes.
Status CheckScale(const OperatorDesc& desc, FeatureLevel) { return CheckBroadcastSizes(desc, "ScaleTensor"); }

Status InferLike(OperatorDesc* desc, const char* of_input, std::initializer_list<const char*> of_scale) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, of_input, input.type, input.sizes, input.rank);
  if (of_scale.size() == 0) return {};
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "ScaleTensor", &given));
  const TensorDesc scale = *given;
  for (const char* name : of_scale) FillTensor(desc, name, input.type, scale.sizes, scale.rank);
  return {};
}

Status InferInference(OperatorDesc* desc) { return InferLike(desc, "OutputTensor", {}); }
Status InferTraining(OperatorDesc* desc) {
  return InferLike(desc, "OutputTensor", {"OutputMeanTensor", "OutputVarianceTensor"});
}
Status InferGradient(OperatorDesc* desc) {
  return InferLike(desc, "OutputGradientTensor", {"OutputScaleGradientTensor", "OutputBiasGradientTensor"});
}

}  // namespace

std::span<const Operator> BatchNormOperators() {
  static const Operator operators[] = {
      {static_cast<uint32_t>(OperatorType::kBatchNormalization), CheckInference, LowerInference,
       InferInference, BatchNormProblem::kFamily, kPlainTraits.With(LayoutOfAll).With(WorkOfElements)},
      {static_cast<uint32_t>(OperatorType::kBatchNormalizationGrad), CheckScale,
       LowerGradient<BatchNormalizationGradDesc, Kind::kGradient>, InferGradient, BatchNormProblem::kFamily,
       kPlainTraits},
      {static_cast<uint32_t>(OperatorType::kBatchNormalizationTraining), CheckScale, LowerTraining,
       InferTraining, BatchNormProblem::kFamily, kPlainTraits},
      {static_cast<uint32_t>(OperatorType::kBatchNormalizationTrainingGrad), CheckScale,
       LowerGradient<BatchNormalizationTrainingGradDesc, Kind::kTrainingGradient>, InferGradient,
       BatchNormProblem::kFamily, kPlainTraits},
  };
  return operators;
}

namespace family::batchnorm {

void RegisterOperators(OperatorList* all) { all->Add(BatchNormOperators()); }

}  // namespace family::batchnorm

}  // namespace anydml
