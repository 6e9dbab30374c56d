#include "ops/common/checks.h"
#include "ops/identity/identity.h"
#include "ops/identity/problem.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

constexpr Implementation<IdentityProblem> kImplementations[] = {
    {"cpu.copy", "cpu", CreateIdentityCopy},
    {"cpu.typed", "cpu", CreateIdentityTyped},
    {"cuda.map", "cuda", nullptr, nullptr, "AnyDmlCreateIdentityCuda"},
    {"cpu.reference", "cpu", CreateIdentityReference},
};
constexpr auto kNames = ImplementationNames(kImplementations);

// Everything there is to check is in the schema.
Status Check(const OperatorDesc&, FeatureLevel) { return {}; }

Status Lower(const OperatorDesc& desc, const LowerOptions& options, LoweredOperator* out) {
  IdentityProblem problem;
  problem.input = *desc.tensor("InputTensor");
  problem.output = *desc.tensor("OutputTensor");
  if (const ScaleBias* scale_bias = desc.scale_bias("ScaleBias")) problem.scale_bias = *scale_bias;
  problem.threads = options.threads;
  if (SameLayout(problem.input, problem.output)) out->in_place = {{0, 0}};
  return ChooseImplementation(desc.schema->name, kImplementations, problem, options, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  const TensorDesc from = *input;
  FillTensor(desc, "OutputTensor", from.type, from.sizes, from.rank);
  return {};
}

}  // namespace

constinit const Operator kIdentityOperator = {1, Check, Lower, Infer, kNames};

}  // namespace anydml
