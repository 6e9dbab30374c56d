#include "ops/element/problem.h"
#include "ops/implementation_list.h"

namespace anydml::family::element {
namespace {

constexpr Implementation<ElementProblem> kEntries[] = {
    {"cpu.copy", CreateElementCopy},
    {"cpu.direct", CreateElementDirect, nullptr, {}, ElementBound},
    {"cpu.tiles", CreateElementTiles, nullptr, {}, ElementBound},
    {.name = "cpu.reference", .create = CreateElementReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<ElementProblem>(kEntries); }

}  // namespace anydml::family::element
