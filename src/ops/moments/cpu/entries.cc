#include "ops/moments/problem.h"
#include "ops/moments/window_sums.h"

namespace anydml::family::moments {
namespace {

constexpr Implementation<MomentsProblem> kMoments[] = {
    {"cpu.moments", CreateMomentsCpu},
};

constexpr Implementation<WindowSumsProblem> kWindowSums[] = {
    {"cpu.window_sums", CreateWindowSumsCpu},
};

}  // namespace

void RegisterCpu(Column* column) {
  column->Add<MomentsProblem>(kMoments);
  column->Add<WindowSumsProblem>(kWindowSums);
}

}  // namespace anydml::family::moments
