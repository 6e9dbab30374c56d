// Functions of a model's own: calls are replaced by the nodes of their bodies.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.h"

namespace anydml::onnx {

using Opsets = std::map<std::string, int64_t>;  // versions by domain

struct FlatNode {
  const NodeProto* proto;
  const Opsets* opsets;  // the versions that hold where it was written
};

// What all copies of a model's functions may weigh, bodies included: ten levels of ten calls each are a small
// file.
inline constexpr size_t kInlineBudget = size_t{1} << 20;

// Of the graph alone, whose own nodes have the versions `opsets`, without those of its nodes. New nodes go to
// `storage`, and their weight is taken from `budget`.
Status InlineFunctions(const Model& model, const GraphProto& graph, const Opsets& opsets, size_t* budget,
                       std::deque<NodeProto>* storage, std::vector<FlatNode>* out);

}  // namespace anydml::onnx
