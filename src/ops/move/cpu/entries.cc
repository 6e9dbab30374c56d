#include "ops/move/problem.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"

namespace anydml::family::move {
namespace {

constexpr Implementation<MoveProblem> kMove[] = {
    {"cpu.frame", CreateFrameCpu},
    {"cpu.copies", CreateMoveCpu},
    {.name = "cpu.reference", .create = CreateMoveReference, .abilities = kIsReference},
};

constexpr Implementation<ReverseProblem> kReverse[] = {
    {"cpu.sequences", CreateReverseCpu},
    {.name = "cpu.reference", .create = CreateReverseReference, .abilities = kIsReference},
};

constexpr Implementation<ValueScaleProblem> kValueScale[] = {
    {"cpu.channels", CreateValueScale},
    {.name = "cpu.reference", .create = CreateValueScaleReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) {
  column->Add<MoveProblem>(kMove);
  column->Add<ReverseProblem>(kReverse);
  column->Add<ValueScaleProblem>(kValueScale);
}

}  // namespace anydml::family::move
