#include "ops/scatter/problem.h"
#include "ops/scatter/scatter.h"

namespace anydml::family::scatter {
namespace {

constexpr Implementation<ScatterProblem> kEntries[] = {
    {"cuda.by_memory", CreateScatterCudaByMemory},
    {"cuda.small", CreateScatterCudaSmall, ScatterCudaSmallBetterNot},
    {"cuda.lines", CreateScatterCudaLines, ScatterCudaLinesBetterNot},
    {"cuda.tiles", CreateScatterCudaTiles, ScatterCudaTilesBetterNot},
    {"cuda.gather", CreateScatterCudaGather, ScatterCudaGatherBetterNot},
    {"cuda.claims", CreateScatterCudaClaims},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<ScatterProblem>(kEntries); }

}  // namespace anydml::family::scatter
