// A model's graph with resolved names: values by number, nodes in an order in which they can run.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/file/model.h"
#include "onnx/model/functions.h"

namespace anydml::onnx {

using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;  // an omitted optional input or output
inline constexpr size_t kNever = SIZE_MAX;

class Program;

struct ProgramNode {
  const NodeProto* proto = nullptr;
  int64_t version = 0;  // the imported opset version of its domain
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::map<std::string, std::unique_ptr<Program>> bodies;  // If's branches, Loop's body, by attribute
};

struct ProgramValue {
  std::string name;
  const Tensor* initializer = nullptr;
  const ValueProto* declared = nullptr;  // of inputs and outputs
  size_t producer = kNever;              // node
  size_t last_use = 0;                   // node, or kNever for outputs of the program
};

// "Conv-11 ("conv1")", as sentences name a node.
std::string Title(const ProgramNode& node);

// A value of an enclosing graph.
struct Capture {
  ValueId inner;
  ValueId outer;
};

class Program {
 public:
  // `model` must outlive it.
  static Status Create(const Model& model, std::unique_ptr<Program>* out);

  const std::vector<ProgramValue>& values() const { return values_; }
  const std::vector<ProgramNode>& nodes() const { return nodes_; }
  // The inputs to be given; an initializer is a default for an input of its name, which is never overridden.
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<Capture>& captures() const { return captures_; }

  // "node 3 "conv1" (Conv-11)"
  std::string Describe(size_t node) const;

 private:
  // Names that a body does not define are looked up in `around`.
  static Status CreateIn(const Model& model, const GraphProto& graph, const Opsets& opsets, Program* around,
                         std::unique_ptr<Program>* out);
  Program() = default;
  Status AddInputs(const GraphProto& graph);
  Status AddOutputsOf(const std::vector<FlatNode>& nodes);
  Status Order(const std::vector<FlatNode>& nodes, std::vector<size_t>* order);
  bool TakeConstant(const NodeProto& proto);
  Status AddNode(const Model& model, const FlatNode& flat);
  ValueId AddValue(const std::string& name);
  // Also in enclosing graphs; kAbsent if it is unknown.
  ValueId Lookup(const std::string& name);
  void FindLastUses();

  std::map<std::string, ValueId, std::less<>> ids_;
  std::vector<ProgramValue> values_;
  std::vector<ProgramNode> nodes_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<Capture> captures_;
  std::deque<NodeProto> inlined_;  // nodes of functions
  Program* around_ = nullptr;
  int depth_ = 0;                         // number of enclosing programs
  size_t inline_budget_ = kInlineBudget;  // of the outermost one
};

}  // namespace anydml::onnx
