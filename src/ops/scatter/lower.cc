#include "ops/operator_table.h"
#include "ops/scatter/problem.h"
#include "ops/scatter/scatter.h"

namespace anydml {
namespace {

constexpr FeatureLevel kNegativeIndices = 0x3000;

constexpr Implementation<ScatterProblem> kImplementations[] = {
    {"cpu.typed", "cpu", ANYDML_ON_CPU(CreateScatterTyped)},
    {"cuda.by_memory", "cuda", ANYDML_ON_CUDA(CreateScatterCudaByMemory)},
    {"cuda.small", "cuda", ANYDML_ON_CUDA(CreateScatterCudaSmall), ANYDML_ON_CUDA(ScatterCudaSmallBetterNot)},
    {"cuda.lines", "cuda", ANYDML_ON_CUDA(CreateScatterCudaLines), ANYDML_ON_CUDA(ScatterCudaLinesBetterNot)},
    {"cuda.tiles", "cuda", ANYDML_ON_CUDA(CreateScatterCudaTiles), ANYDML_ON_CUDA(ScatterCudaTilesBetterNot)},
    {"cuda.gather", "cuda", ANYDML_ON_CUDA(CreateScatterCudaGather),
     ANYDML_ON_CUDA(ScatterCudaGatherBetterNot)},
    {"cuda.claims", "cuda", ANYDML_ON_CUDA(CreateScatterCudaClaims)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateScatterReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

Status Lower(const OperatorDesc& desc, ScatterProblem problem, const LowerContext& context,
             LoweredOperator* out) {
  problem.input = *desc.tensor("InputTensor");
  problem.indices = *desc.tensor("IndicesTensor");
  problem.updates = *desc.tensor("UpdatesTensor");
  problem.output = *desc.tensor("OutputTensor");
  const DataType type = problem.indices.type;
  const bool is_signed = type == DataType::kInt32 || type == DataType::kInt64;
  problem.wraps = is_signed && context.level >= kNegativeIndices;
  if (SameLayout(problem.input, problem.output)) out->in_place = {{0, 0}};
  return ChooseKernel(OperatorTableOf(context.backend).scatter, problem, context, out);
}

Status LowerNd(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  ScatterProblem problem;
  problem.kind = ScatterProblem::Kind::kNd;
  problem.input_dimensions = desc.uint("InputDimensionCount");
  problem.indices_dimensions = desc.uint("IndicesDimensionCount");
  return Lower(desc, problem, context, out);
}

Status LowerElements(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  ScatterProblem problem;
  problem.kind = ScatterProblem::Kind::kElements;
  problem.axis = desc.uint("Axis");
  return Lower(desc, problem, context, out);
}

}  // namespace

std::span<const Implementation<ScatterProblem>> ScatterImplementations() { return kImplementations; }

constinit const Operator kScatterNdOperator = {109, CheckScatterNd, LowerNd, InferScatter, kNames};
constinit const Operator kScatterElementsOperator = {94, CheckScatterElements, LowerElements, InferScatter,
                                                     kNames};

}  // namespace anydml
