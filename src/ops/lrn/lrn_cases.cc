#include "ops/moments/modest_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kLocalResponseNormalization,
                                       OperatorType::kLocalResponseNormalizationGrad};

Case MakeLrn(OperatorType operator_type, CaseMaker& make) {
  ByteSource& source = make.source();
  std::vector<uint32_t> sizes = make.Sizes(4);
  while (sizes.size() < 4) sizes.insert(sizes.begin(), 1);
  const DataType type = source.Any(kFloatTypes);
  const bool is_gradient = operator_type == OperatorType::kLocalResponseNormalizationGrad;
  const bool whole = source.OneIn(2);
  // The reference reads every element of a window, and for the gradient the windows of all of those.
  const uint32_t local_size = source.OneIn(8) && !is_gradient ? 1000 : source.Between(1, is_gradient ? 4 : 9);
  constexpr float kAlphas[] = {1e-4f, 0.5f, -0.25f, 300}, kBetas[] = {0.75f, 0.5f, 1, 2, -1.5f, 0, 9};
  constexpr float kBiases[] = {1, 2, 0, -5, 25};
  Case problem;
  problem.desc = MakeDesc(FindOperator(operator_type)->name,
                          {{"InputTensor", make.Input(type, sizes)},
                           {is_gradient ? "OutputGradientTensor" : "OutputTensor", make.Output(type, sizes)},
                           {"CrossChannel", source.Between(0, 1)},
                           {"LocalSize", local_size},
                           {"Alpha", source.Any(kAlphas)},
                           {"Beta", source.Any(kBetas)},
                           {"Bias", source.Any(kBiases)}});
  if (is_gradient) {
    problem.desc.fields[static_cast<size_t>(FindField(*problem.desc.schema, "InputGradientTensor"))] =
        make.Input(type, sizes);
  }
  for (const TensorDesc* tensor : problem.desc.inputs()) {
    problem.inputs.push_back(ModestContent(*tensor, whole, make));
  }
  Spoil(*problem.desc.inputs()[0], &problem.inputs[0], make);
  return problem;
}

}  // namespace

CaseFamily family::lrn::Cases() { return {"lrn", kOperators, MakeLrn}; }

}  // namespace anydml::testing
