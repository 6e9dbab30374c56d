#include "ops/element/problem.h"
#include "ops/implementation_list.h"

namespace anydml::family::element {
namespace {

constexpr Implementation<ElementProblem> kEntries[] = {
    {"cuda.copy", CreateElementCopyCuda},
    {"cuda.flat", CreateElementFlatCuda, nullptr, {}, ElementBound},
    {"cuda.across", CreateElementAcrossCuda, nullptr, {}, ElementBound},
    {.name = "cuda.compiled",
     .create = CreateElementCompiledCuda,
     .better_not = BetterNotElementCompiledCuda,
     .bound = ElementBound,
     .abilities = kIsCompiled},
    {"cuda.program", CreateElementProgramCuda, nullptr, {}, ElementBound},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<ElementProblem>(kEntries); }

}  // namespace anydml::family::element
