#include "ops/moments/problem.h"
#include "ops/moments/window_sums.h"

namespace anydml::family::moments {
namespace {

constexpr Implementation<MomentsProblem> kMoments[] = {
    {"cuda.moments", CreateMomentsCuda},
};

constexpr Implementation<WindowSumsProblem> kWindowSums[] = {
    {"cuda.window_sums", CreateWindowSumsCuda},
};

}  // namespace

void RegisterCuda(Column* column) {
  column->Add<MomentsProblem>(kMoments);
  column->Add<WindowSumsProblem>(kWindowSums);
}

}  // namespace anydml::family::moments
