#include "ops/move/problem.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"

namespace anydml::family::move {
namespace {

constexpr Implementation<MoveProblem> kMove[] = {
    {"cuda.frame", CreateFrameCuda},
    {"cuda.copies", CreateMoveCuda},
};

constexpr Implementation<ReverseProblem> kReverse[] = {
    {"cuda.sequences", CreateReverseCuda},
};

constexpr Implementation<ValueScaleProblem> kValueScale[] = {
    {"cuda.channels", CreateValueScale},
};

}  // namespace

void RegisterCuda(Column* column) {
  column->Add<MoveProblem>(kMove);
  column->Add<ReverseProblem>(kReverse);
  column->Add<ValueScaleProblem>(kValueScale);
}

}  // namespace anydml::family::move
