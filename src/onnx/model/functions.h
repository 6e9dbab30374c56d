// A model's own functions: calls are replaced by the nodes of their bodies.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "onnx/file/model.h"

namespace anydml::onnx {

using Opsets = std::map<std::string, int64_t>;  // versions by domain

struct FlatNode {
  const NodeProto* proto;
  const Opsets* opsets;  // the versions that apply to the node
};

// The limit for all copies of a model's functions, bodies included: ten levels of ten calls each fit into a
// small file.
inline constexpr size_t kInlineBudget = size_t{1} << 20;

// Inlines calls in the graph itself, whose nodes have the versions `opsets`, not in its nodes' bodies. New
// nodes go to `storage`, and their weight is subtracted from `budget`.
Status InlineFunctions(const Model& model, const GraphProto& graph, const Opsets& opsets, size_t* budget,
                       std::deque<NodeProto>* storage, std::vector<FlatNode>* out);

}  // namespace anydml::onnx
