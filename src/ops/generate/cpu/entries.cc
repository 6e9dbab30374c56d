#include "ops/generate/problem.h"
#include "ops/generate/random.h"

namespace anydml::family::generate {
namespace {

constexpr Implementation<GenerateProblem> kGenerate[] = {
    {"cpu.rows", CreateGenerateCpu},
    {.name = "cpu.reference", .create = CreateGenerateReference, .abilities = kIsReference},
};

constexpr Implementation<RandomProblem> kRandom[] = {
    {"cpu.lanes", CreateRandomCpu},
    {.name = "cpu.reference", .create = CreateRandomReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) {
  column->Add<GenerateProblem>(kGenerate);
  column->Add<RandomProblem>(kRandom);
}

}  // namespace anydml::family::generate
