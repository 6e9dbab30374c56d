// What passes over a model's graph know of it: who computes a value, how many read it, which are constants.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/model.h"

namespace anydml::onnx {

class GraphEdit {
 public:
  // `prefix` begins the names of what is added. The graph's nodes stay where they are until RemoveDead.
  GraphEdit(GraphProto* graph, const char* prefix);

  // A node of ONNX's own domain, or null.
  NodeProto* Producer(const std::string& name) const;
  // An initializer or what a Constant has, or null.
  const Tensor* Constant(const std::string& name) const;
  bool OnlyHere(const std::string& name) { return uses_[name] == 1; }
  bool IsDead(const std::string& name) const { return dead_.contains(name); }

  void Use(const std::string& name) { ++uses_[name]; }
  // One use less. Who has none is not computed, nor is what only it needs.
  void Leave(const std::string& name);
  // `node` computes it from now on.
  void SetProducer(const std::string& name, NodeProto* node) { producers_[name] = node; }

  std::string Add(Tensor tensor);
  // A name that nobody has or reads.
  std::string NewName();
  void RemoveDead(std::vector<NodeProto>* nodes) const;

 private:
  GraphProto& graph_;
  const char* const prefix_;
  std::map<std::string, NodeProto*> producers_;
  std::map<std::string, size_t> uses_;
  std::set<std::string> dead_;
  size_t added_ = 0;
};

// Whether nodes of ONNX's domain are ONNX's: a model's own functions may have the names of its operators.
bool HasOnlyKnownOperators(const Model& model);

}  // namespace anydml::onnx
