#include "ops/common/checks.h"
#include "ops/identity/identity.h"
#include "ops/identity/problem.h"
#include "ops/operator_table.h"

namespace anydml {
namespace {

constexpr Implementation<IdentityProblem> kImplementations[] = {
    {"cpu.copy", "cpu", ANYDML_ON_CPU(CreateIdentityCopy)},
    {"cpu.typed", "cpu", ANYDML_ON_CPU(CreateIdentityTyped)},
    {"cuda.map", "cuda", ANYDML_ON_CUDA(CreateIdentityCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateIdentityReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

// Everything there is to check is in the schema.
Status Check(const OperatorDesc&, FeatureLevel) { return {}; }

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  IdentityProblem problem;
  problem.input = *desc.tensor("InputTensor");
  problem.output = *desc.tensor("OutputTensor");
  if (const ScaleBias* scale_bias = desc.scale_bias("ScaleBias")) problem.scale_bias = *scale_bias;
  if (SameLayout(problem.input, problem.output)) out->in_place = {{0, 0}};
  return ChooseKernel(OperatorTableOf(context.backend).identity, problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  const TensorDesc from = *input;
  FillTensor(desc, "OutputTensor", from.type, from.sizes, from.rank);
  return {};
}

}  // namespace

std::span<const Implementation<IdentityProblem>> IdentityImplementations() { return kImplementations; }

constinit const Operator kIdentityOperator = {1, Check, Lower, Infer, kNames};

}  // namespace anydml
