// Facts about a model's graph for passes: which node computes a value, how many read it, which values are
// constants.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/file/model.h"

namespace anydml::onnx {

class GraphEdit {
 public:
  // `prefix` begins the names of added values. The graph's nodes keep their places until RemoveDead.
  GraphEdit(GraphProto* graph, const char* prefix);

  // A node of ONNX's own domain, or null.
  NodeProto* Producer(const std::string& name) const;
  // An initializer or a Constant's value, or null.
  const Tensor* Constant(const std::string& name) const;
  bool OnlyHere(const std::string& name) { return uses_[name] == 1; }
  bool IsDead(const std::string& name) const { return dead_.contains(name); }

  void Use(const std::string& name) { ++uses_[name]; }
  // Removes one use. A value without uses is not computed, nor is what only it needs.
  void Leave(const std::string& name);
  // From now on `node` computes the value.
  void SetProducer(const std::string& name, NodeProto* node) { producers_[name] = node; }

  std::string Add(Tensor tensor);
  // A name that is not in use.
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
