#include "ops/move/problem.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"

namespace anydml {
namespace {

constexpr Implementation<MoveProblem> kMove[] = {
    {"cpu.frame", "cpu", ANYDML_ON_CPU(CreateFrameCpu)},
    {"cpu.copies", "cpu", ANYDML_ON_CPU(CreateMoveCpu)},
    {"cuda.frame", "cuda", ANYDML_ON_CUDA(CreateFrameCuda)},
    {"cuda.copies", "cuda", ANYDML_ON_CUDA(CreateMoveCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateMoveReference)},
};
constexpr auto kMoveNames = ImplementationNames(kMove);

constexpr Implementation<ReverseProblem> kReverse[] = {
    {"cpu.sequences", "cpu", ANYDML_ON_CPU(CreateReverseCpu)},
    {"cuda.sequences", "cuda", ANYDML_ON_CUDA(CreateReverseCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateReverseReference)},
};
constexpr auto kReverseNames = ImplementationNames(kReverse);

constexpr Implementation<ValueScaleProblem> kValueScale[] = {
    {"cpu.channels", "cpu", ANYDML_ON_CPU(CreateValueScale)},
    {"cuda.channels", "cuda", ANYDML_ON_CUDA(CreateValueScale)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateValueScaleReference)},
};
constexpr auto kValueScaleNames = ImplementationNames(kValueScale);

}  // namespace

std::span<const Implementation<MoveProblem>> MoveImplementations() { return kMove; }
std::span<const char* const> MoveImplementationNames() { return kMoveNames; }

std::span<const Implementation<ReverseProblem>> ReverseImplementations() { return kReverse; }
std::span<const char* const> ReverseImplementationNames() { return kReverseNames; }

std::span<const Implementation<ValueScaleProblem>> ValueScaleImplementations() { return kValueScale; }
std::span<const char* const> ValueScaleImplementationNames() { return kValueScaleNames; }

}  // namespace anydml
