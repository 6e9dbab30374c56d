// Functions of a model's own: calls are replaced by the nodes of their bodies.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.h"

namespace anydml::onnx {

struct FlatNode {
  const NodeProto* proto;
  const std::map<std::string, int64_t>* opsets;  // the versions that hold where it was written
};

// Of the graph alone, without those of its nodes. New nodes go to `storage`.
Status InlineFunctions(const Model& model, const GraphProto& graph, std::deque<NodeProto>* storage,
                       std::vector<FlatNode>* out);

}  // namespace anydml::onnx
