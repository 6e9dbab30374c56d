// Converts onnxruntime's graphs to the importer's: names, attributes and types are copied, weights stay where
// they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/file/model.h"
#include "ort/api.h"

namespace anydml::ort {

struct GraphNode {
  const OrtNode* node = nullptr;
  onnx::NodeProto proto;
  bool readable = true;               // false: it contains graphs, or attributes unknown to the importer
  std::vector<std::string> captures;  // what graphs inside it read
};

struct GraphValue {
  onnx::ValueProto facts;  // has_shape is false for scalars, too, because versions before 24 do not
                           // distinguish them
  const OrtValueInfo* info = nullptr;
  bool constant = false;
};

struct Graph {
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;
  std::vector<GraphNode> nodes;  // producers first
  std::map<std::string, GraphValue> values;
};

Status ReadGraph(const Api& api, const OrtGraph* graph, Graph* out);

// Whether it is, or may be, in the body of a node that is a function: onnxruntime puts the function in the
// node's place later, and refuses a body in which there is what only a provider knows.
// `files` remembers the models that were searched.
Status IsInFunction(const Api& api, const OrtGraph* graph, std::map<std::string, bool>* files, bool* out);

// The names of a node's inputs and outputs, in a fused node's order; "" for absent ones.
Status ReadNames(const Api& api, const OrtNode* node, std::vector<std::string>* inputs,
                 std::vector<std::string>* outputs);

// The elements of a constant, if onnxruntime has them: valid during the call that passed the graph.
Status ConstantOf(const Api& api, const GraphValue& value, onnx::Tensor* out);

}  // namespace anydml::ort
