// Lets nodes read or write their tensors in another value.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/passes/view.h"

namespace anydml {

// The elements at places `here` of value `from` are, or will be, at places `there` of value `to`.
struct Detour {
  uint32_t from = kNoValue;
  uint32_t to = kNoValue;
  Places here;
  Places there;
};

// Moves all tensors of the node in `from` to `to`. False, with an unusable node, if strides cannot express
// that.
bool MoveTensors(const LowerContext& context, const Graph& graph, const Detour& detour, GraphNode* node);

// The same; also false if the operator does not accept the new tensors or would be slower.
bool Redirect(const LowerContext& context, const Graph& graph, const Detour& detour, GraphNode* node);

// Redirects all of these nodes, or none.
bool RedirectAll(const LowerContext& context, const Detour& detour, std::span<const uint32_t> nodes,
                 Graph* graph);

// Copies elements of a type.
GraphNode MakeCopy(std::string name, DataType type, uint32_t from, const Places& source, uint32_t to,
                   const Places& target);

// In binding order; null for absent ones.
std::vector<TensorDesc*> TensorsOf(OperatorDesc* desc, FieldKind kind);
// Including those of a tail.
std::vector<TensorDesc*> TensorsOf(GraphOperator* op, FieldKind kind);

}  // namespace anydml
