#include "ops/generate/problem.h"
#include "ops/generate/random.h"

namespace anydml::family::generate {
namespace {

constexpr Implementation<GenerateProblem> kGenerate[] = {
    {"cuda.units", CreateGenerateCuda},
};

constexpr Implementation<RandomProblem> kRandom[] = {
    {"cuda.blocks", CreateRandomCuda},
};

}  // namespace

void RegisterCuda(Column* column) {
  column->Add<GenerateProblem>(kGenerate);
  column->Add<RandomProblem>(kRandom);
}

}  // namespace anydml::family::generate
