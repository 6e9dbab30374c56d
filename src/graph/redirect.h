// Nodes that read or write their tensors in another value than before.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/view.h"

namespace anydml {

// The elements at `here` of value `from` are, or shall be, those at `there` of value `to`.
struct Detour {
  uint32_t from = kNoValue;
  uint32_t to = kNoValue;
  Places here;
  Places there;
};

// Lets all tensors of the node that lie in `from` lie in `to`. False, with an unusable node, where that
// cannot be said.
bool MoveTensors(const LowerContext& context, const Graph& graph, const Detour& detour, GraphNode* node);

// The same; false, too, where the operator does not allow it, or where it would be slower.
bool Redirect(const LowerContext& context, const Graph& graph, const Detour& detour, GraphNode* node);

// All of these nodes, or none of them.
bool RedirectAll(const LowerContext& context, const Detour& detour, std::span<const uint32_t> nodes,
                 Graph* graph);

// Moves the elements of a type.
GraphNode MakeCopy(std::string name, DataType type, uint32_t from, const Places& source, uint32_t to,
                   const Places& target);

// In binding order; null: absent.
std::vector<TensorDesc*> TensorsOf(OperatorDesc* desc, FieldKind kind);
// With those of a tail.
std::vector<TensorDesc*> TensorsOf(GraphOperator* op, FieldKind kind);

}  // namespace anydml
