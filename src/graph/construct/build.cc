#include <algorithm>
#include <utility>

#include "graph/construct/checked_graph.h"
#include "graph/graph.h"
#include "ops/element/builder.h"

namespace anydml {
namespace {

// Copies a tensor's elements to another tensor of the same layout.
ElementProblem CopyOf(const TensorDesc& tensor) {
  ElementProblem problem;
  problem.rank = tensor.rank;
  ElementOperand operand;
  operand.type = BitsOf(tensor.type);
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    problem.sizes[d] = tensor.sizes[d];
    operand.strides[d] = tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
  }
  problem.inputs = {operand};
  problem.outputs = {operand};
  // Kernels that only move elements move whole bytes; elements smaller than a byte are converted and stored
  // as numbers.
  const bool small = BitSize(operand.type) < 8;
  const Class type = small ? Class::kF32 : ClassOf(operand.type);
  const uint8_t at = problem.program.Load(0, type);
  if (small) problem.program.Apply(ElementFunction::kCanonical, type, {at});
  problem.program.Store(0, at, type);
  return problem;
}

class Builder {
 public:
  Builder(CheckedGraph checked, Graph* graph) : checked_(std::move(checked)), graph_(*graph) {}

  void Build() {
    MakeValues();
    MakeNodes();
    graph_.inputs = std::move(checked_.inputs);
    graph_.outputs = std::move(checked_.outputs);
  }

 private:
  void MakeValues();
  void MakeNodes();
  GraphOperand OperandOf(const GraphFeed& feed) const;
  uint32_t AddValue(GraphValue value);
  void AddCopy(uint32_t from_node, uint32_t output, uint32_t graph_output);

  CheckedGraph checked_;
  Graph& graph_;
  std::vector<uint32_t> input_values_;              // of the graph
  std::vector<std::vector<uint32_t>> node_values_;  // one per output; a constant has one
};

uint32_t Builder::AddValue(GraphValue value) {
  graph_.values.push_back(std::move(value));
  return static_cast<uint32_t>(graph_.values.size() - 1);
}

void Builder::MakeValues() {
  const GraphDescription& description = checked_.description;
  input_values_.assign(description.input_count, kNoValue);
  for (uint32_t i = 0; i < description.input_count; ++i) {
    const GraphInput& input = checked_.inputs[i];
    if (input.connected) {
      input_values_[i] = AddValue({.home = GraphValue::Home::kInput, .index = i, .bytes = input.bytes});
    }
  }
  node_values_.resize(checked_.node_count());
  for (uint32_t i = 0; i < checked_.node_count(); ++i) {
    if (checked_.IsConstant(i)) {
      node_values_[i] = {AddValue({.home = GraphValue::Home::kConstant})};
      continue;
    }
    for (const NamedTensor& output : checked_.nodes[i].outputs) {
      node_values_[i].push_back(output.tensor == nullptr ? kNoValue
                                                         : AddValue({.bytes = output.tensor->total_bytes}));
    }
  }
  // A constant's bytes end with its last element: TotalTensorSizeInBytes may be any larger size.
  for (const GraphEdgeDescription& edge : description.intermediate_edges) {
    if (!checked_.IsConstant(edge.from.index)) continue;
    GraphValue& value = graph_.values[node_values_[edge.from.index][0]];
    const TensorDesc& tensor = *checked_.nodes[edge.to.index].inputs[edge.to.port].tensor;
    value.bytes = std::max(value.bytes, MinimumTotalBytes(tensor));
  }
  for (uint32_t i = 0; i < checked_.node_count(); ++i) {
    if (!checked_.IsConstant(i)) continue;
    GraphValue& value = graph_.values[node_values_[i][0]];
    const auto given = description.nodes[i].constant;
    const auto read = given.first(std::min<uint64_t>(given.size(), value.bytes));
    value.constant.assign(read.begin(), read.end());
    value.constant.resize(value.bytes);  // rounded up to whole words
  }
}

GraphOperand Builder::OperandOf(const GraphFeed& feed) const {
  switch (feed.kind) {
    case GraphFeed::Kind::kInputEdge:
      return {input_values_[checked_.description.input_edges[feed.edge].from.index]};
    case GraphFeed::Kind::kIntermediateEdge: {
      const GraphPort& from = checked_.description.intermediate_edges[feed.edge].from;
      return {node_values_[from.index][from.port]};
    }
    default:
      return {};
  }
}

void Builder::MakeNodes() {
  for (const uint32_t i : checked_.order) {
    GraphNode node;
    node.name = checked_.NodeName(i);
    for (const GraphFeed& feed : checked_.nodes[i].feeds) node.inputs.push_back(OperandOf(feed));
    for (const uint32_t value : node_values_[i]) node.outputs.push_back({value});
    node.work = GraphOperator{checked_.description.nodes[i].op, checked_.description.nodes[i].desc};
    graph_.nodes.push_back(std::move(node));
  }
  // A node writes directly to its first graph output; its other graph outputs are copies of that one.
  for (const GraphEdgeDescription& edge : checked_.description.output_edges) {
    GraphValue& value = graph_.values[node_values_[edge.from.index][edge.from.port]];
    if (value.home == GraphValue::Home::kOutput) {
      AddCopy(edge.from.index, edge.from.port, edge.to.index);
    } else {
      value.home = GraphValue::Home::kOutput;
      value.index = edge.to.index;
    }
  }
}

// Element by element: the bytes between elements must not be written.
void Builder::AddCopy(uint32_t from_node, uint32_t output, uint32_t graph_output) {
  const TensorDesc& tensor = *checked_.nodes[from_node].outputs[output].tensor;
  GraphNode copy;
  copy.name = StrCat("copy of ", checked_.NodeName(from_node), " for graph output ", graph_output);
  copy.work = CopyOf(tensor);
  copy.inputs = {{node_values_[from_node][output]}};
  copy.outputs = {
      {AddValue({.home = GraphValue::Home::kOutput, .index = graph_output, .bytes = tensor.total_bytes})}};
  graph_.nodes.push_back(std::move(copy));
}

}  // namespace

Status BuildGraph(GraphDescription description, Graph* graph) {
  CheckedGraph checked;
  checked.description = std::move(description);
  ANYDML_RETURN_IF_ERROR(CheckGraph(&checked));
  graph->warnings = FindWarnings(checked);
  Builder(std::move(checked), graph).Build();
  return ConnectPresentOutputs(graph);
}

}  // namespace anydml
