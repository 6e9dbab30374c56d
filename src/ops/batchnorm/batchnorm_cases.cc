#include <algorithm>

#include "ops/element/element_cases.h"
#include "ops/moments/modest_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {
    OperatorType::kBatchNormalization, OperatorType::kBatchNormalizationGrad,
    OperatorType::kBatchNormalizationTraining, OperatorType::kBatchNormalizationTrainingGrad};

// The operator is exact, so any numbers will do.
Case MakeInference(CaseMaker& make) {
  const DataType type = make.source().Any(kFloatTypes);
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  constexpr float kEpsilons[] = {0, 1e-5f, 0.5f};
  // In half of the cases packed, with parameters of the first dimensions.
  const bool packed = make.source().OneIn(2);
  const uint32_t kept = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  const auto parameter = [&] {
    if (!packed) return make.Input(type, SomeOnes(sizes, make));
    std::vector<uint32_t> first = sizes;
    std::fill(first.begin() + kept, first.end(), 1);
    return Packed(type, first);
  };
  Case problem;
  problem.desc = MakeDesc(
      "BATCH_NORMALIZATION",
      {{"InputTensor", packed ? Packed(type, sizes) : make.Input(type, sizes)},
       {"MeanTensor", parameter()},
       {"VarianceTensor", parameter()},
       {"ScaleTensor", parameter()},
       {"BiasTensor", parameter()},
       {"OutputTensor", packed ? Packed(type, sizes) : make.Output(type, sizes)},
       {"Spatial", make.source().Between(0, 1)},
       {"Epsilon", make.source().Any(kEpsilons)},
       {"FusedActivation", ModestActivation(*FindOperator(OperatorType::kBatchNormalization), make)}});
  for (const TensorDesc* tensor : problem.desc.inputs()) {
    problem.inputs.push_back(ElementContent(*tensor, make));
  }
  return problem;
}

Case MakeTraining(CaseMaker& make) {
  const DataType type = make.source().Any(kFloatTypes);
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions), few = SomeOnes(sizes, make);
  const bool whole = make.source().OneIn(2);
  const FieldValue added = make.source().OneIn(2) ? FieldValue(make.Input(type, sizes)) : FieldValue();
  Case problem;
  problem.desc =
      MakeDesc("BATCH_NORMALIZATION_TRAINING",
               {{"InputTensor", make.Input(type, sizes)},
                {"ScaleTensor", make.Input(type, few)},
                {"BiasTensor", make.Input(type, few)},
                {"FusedAddTensor", added},
                {"OutputTensor", make.Output(type, sizes)},
                {"OutputMeanTensor", make.Output(type, few)},
                {"OutputVarianceTensor", make.Output(type, few)},
                {"Epsilon", ModestEpsilon(whole, make)},
                {"FusedActivation",
                 ModestActivation(*FindOperator(OperatorType::kBatchNormalizationTraining), make)}});
  for (const TensorDesc* tensor : problem.desc.inputs()) {
    problem.inputs.push_back(tensor == nullptr ? Bytes{} : ModestContent(*tensor, whole, make));
  }
  Spoil(*problem.desc.inputs()[0], &problem.inputs[0], make);
  return problem;
}

Case MakeGradient(OperatorType operator_type, CaseMaker& make) {
  const DataType type = make.source().Any(kFloatTypes);
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions), few = SomeOnes(sizes, make);
  const bool whole = make.source().OneIn(2);
  const TensorDesc variance = make.Input(type, few);
  Case problem;
  problem.desc =
      MakeDesc(FindOperator(operator_type)->name, {{"InputTensor", make.Input(type, sizes)},
                                                   {"InputGradientTensor", make.Input(type, sizes)},
                                                   {"MeanTensor", make.Input(type, few)},
                                                   {"VarianceTensor", variance},
                                                   {"ScaleTensor", make.Input(type, few)},
                                                   {"OutputGradientTensor", make.Output(type, sizes)},
                                                   {"OutputScaleGradientTensor", make.Output(type, few)},
                                                   {"OutputBiasGradientTensor", make.Output(type, few)},
                                                   {"Epsilon", ModestEpsilon(whole, make)}});
  for (const TensorDesc* tensor : problem.desc.inputs()) {
    problem.inputs.push_back(ModestContent(*tensor, whole, make));
  }
  problem.inputs[3] = PositiveContent(variance, make);
  return problem;
}

Case MakeBatchNorm(OperatorType type, CaseMaker& make) {
  switch (type) {
    case OperatorType::kBatchNormalization:
      return MakeInference(make);
    case OperatorType::kBatchNormalizationTraining:
      return MakeTraining(make);
    default:
      return MakeGradient(type, make);
  }
}

}  // namespace

CaseFamily family::batchnorm::Cases() { return {"batchnorm", kOperators, MakeBatchNorm}; }

}  // namespace anydml::testing
