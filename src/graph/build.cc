#include <algorithm>
#include <functional>
#include <optional>
#include <queue>

#include "graph/graph.h"
#include "ops/element/builder.h"

namespace anydml {
namespace {

std::string Quoted(const std::string& name) { return name.empty() ? "" : StrCat(" \"", name, "\""); }

// Moves a tensor's elements to another one of the same layout.
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
  // Kernels that only move elements move whole bytes; halves of bytes are stored from numbers.
  const bool small = BitSize(operand.type) < 8;
  const Class type = small ? Class::kF32 : ClassOf(operand.type);
  const uint8_t at = problem.program.Load(0, type);
  if (small) problem.program.Apply(ElementFunction::kCanonical, type, {at});
  problem.program.Store(0, at, type);
  return problem;
}

// Bytes from the first to the last element, not rounded up; saturates.
uint64_t ElementBytes(const TensorDesc& tensor) {
  const uint64_t span = ElementSpan(tensor), bits = BitSize(tensor.type);
  return span > (UINT64_MAX - 7) / bits ? UINT64_MAX : (span * bits + 7) / 8;
}

// Who feeds an input of a node or a graph output.
struct Feed {
  enum class Kind { kNobody, kInputEdge, kIntermediateEdge, kOutputEdge };
  Kind kind = Kind::kNobody;
  uint32_t edge = 0;
};

class Builder {
 public:
  Builder(GraphDescription description, Graph* graph)
      : description_(std::move(description)), graph_(*graph) {}

  Status Build() {
    ANYDML_RETURN_IF_ERROR(CheckCounts());
    CollectTensors();
    ANYDML_RETURN_IF_ERROR(ConnectInputEdges());
    ANYDML_RETURN_IF_ERROR(ConnectIntermediateEdges());
    ANYDML_RETURN_IF_ERROR(ConnectOutputEdges());
    ANYDML_RETURN_IF_ERROR(CheckAllConnected());
    ANYDML_RETURN_IF_ERROR(Order());
    ANYDML_RETURN_IF_ERROR(CheckReachable());
    ANYDML_RETURN_IF_ERROR(CheckSizes());
    ANYDML_RETURN_IF_ERROR(CheckOwned());
    MakeValues();
    MakeNodes();
    return ConnectPresentOutputs(&graph_);
  }

 private:
  struct NodeState {
    std::vector<NamedTensor> inputs;
    std::vector<NamedTensor> outputs;
    std::vector<Feed> feeds;       // one per input
    std::vector<uint32_t> values;  // one per output; of a constant: the only one
  };

  std::string NodeName(uint32_t i) const {
    const GraphNodeDescription& node = description_.nodes[i];
    return StrCat("node ", i, Quoted(node.name), " (",
                  node.op != nullptr ? node.desc.schema->name : "CONSTANT", ")");
  }
  std::string InputName(uint32_t node, uint32_t input) const {
    return StrCat("input ", input, " (", states_[node].inputs[input].name, ") of ", NodeName(node));
  }
  static std::string EdgeName(const char* kind, uint32_t i, const GraphEdgeDescription& edge) {
    return StrCat(kind, " edge ", i, Quoted(edge.name));
  }
  std::string FeedName(const Feed& feed) const {
    if (feed.kind == Feed::Kind::kInputEdge) {
      return EdgeName("input", feed.edge, description_.input_edges[feed.edge]);
    }
    return EdgeName("intermediate", feed.edge, description_.intermediate_edges[feed.edge]);
  }
  bool IsConstant(uint32_t node) const { return description_.nodes[node].op == nullptr; }
  uint32_t NodeCount() const { return static_cast<uint32_t>(description_.nodes.size()); }

  Status CheckCounts() const;
  void CollectTensors();
  Status CheckTarget(const std::string& edge, const GraphPort& to) const;
  Status CheckSource(const std::string& edge, const GraphPort& from) const;
  Status Connect(const GraphPort& to, Feed feed);
  Status ConnectInputEdges();
  Status ConnectIntermediateEdges();
  Status ConnectOutputEdges();
  Status CheckAllConnected() const;
  Status Order();
  std::string FindCycle(const std::vector<uint32_t>& waiting) const;
  Status CheckReachable() const;
  Status CheckSizes() const;
  Status CheckConstant(const std::string& edge, const GraphPort& from, const GraphPort& to) const;
  Status CheckOwned() const;
  void MakeValues();
  void MakeNodes();
  uint32_t AddValue(GraphValue value);
  void AddCopy(uint32_t from_node, uint32_t output, uint32_t graph_output);

  GraphDescription description_;
  Graph& graph_;
  std::vector<NodeState> states_;
  std::vector<Feed> output_feeds_;
  std::vector<uint32_t> order_;         // operators only
  std::vector<uint32_t> input_values_;  // of the graph
};

Status Builder::CheckCounts() const {
  if (description_.nodes.empty())
    return InvalidArgument("NodeCount is 0; a graph needs at least one operator");
  if (description_.output_count == 0)
    return InvalidArgument("OutputCount is 0; a graph needs at least one output");
  if (description_.output_edges.empty()) {
    return InvalidArgument("there is no output edge; a graph needs at least one output");
  }
  // Every input and output is a binding; nobody has a million.
  constexpr uint32_t kMost = 1 << 20;
  if (description_.input_count > kMost) {
    return InvalidArgument("InputCount is ", description_.input_count, "; allowed are at most ", kMost);
  }
  if (description_.output_count > kMost) {
    return InvalidArgument("OutputCount is ", description_.output_count, "; allowed are at most ", kMost);
  }
  return {};
}

void Builder::CollectTensors() {
  states_.resize(NodeCount());
  for (uint32_t i = 0; i < NodeCount(); ++i) {
    const GraphNodeDescription& node = description_.nodes[i];
    NodeState& state = states_[i];
    if (node.op != nullptr) {
      state.inputs = NamedTensors(node.desc, FieldKind::kInput);
      state.outputs = NamedTensors(node.desc, FieldKind::kOutput);
    }
    state.feeds.resize(state.inputs.size());
  }
  output_feeds_.resize(description_.output_count);
  graph_.inputs.resize(description_.input_count);
  graph_.outputs.resize(description_.output_count);
}

Status Builder::CheckTarget(const std::string& edge, const GraphPort& to) const {
  if (to.index >= NodeCount()) {
    return InvalidArgument(edge, ": ToNodeIndex is ", to.index, " but the graph has ", NodeCount(), " nodes");
  }
  if (IsConstant(to.index)) {
    return InvalidArgument(edge, ": ", NodeName(to.index),
                           " is a constant; it has one output (0) and no inputs");
  }
  const NodeState& node = states_[to.index];
  if (to.port >= node.inputs.size()) {
    const std::string has = node.inputs.empty() ? std::string(" has no inputs")
                                                : StrCat(" has inputs 0 to ", node.inputs.size() - 1);
    return InvalidArgument(edge, ": ToNodeInputIndex is ", to.port, " but ", NodeName(to.index), has);
  }
  if (node.inputs[to.port].tensor == nullptr) {
    return InvalidArgument(edge, ": ", InputName(to.index, to.port),
                           " does not exist: the operator was created without it");
  }
  return {};
}

Status Builder::CheckSource(const std::string& edge, const GraphPort& from) const {
  if (from.index >= NodeCount()) {
    return InvalidArgument(edge, ": FromNodeIndex is ", from.index, " but the graph has ", NodeCount(),
                           " nodes");
  }
  if (IsConstant(from.index)) {
    if (from.port == 0) return {};
    return InvalidArgument(edge, ": FromNodeOutputIndex is ", from.port, " but ", NodeName(from.index),
                           " is a constant; it has one output (0) and no inputs");
  }
  const NodeState& node = states_[from.index];
  if (from.port >= node.outputs.size()) {
    return InvalidArgument(edge, ": FromNodeOutputIndex is ", from.port, " but ", NodeName(from.index),
                           " has outputs 0 to ", node.outputs.size() - 1);
  }
  if (node.outputs[from.port].tensor == nullptr) {
    return InvalidArgument(edge, ": output ", from.port, " (", node.outputs[from.port].name, ") of ",
                           NodeName(from.index), " does not exist: the operator was created without it");
  }
  return {};
}

Status Builder::Connect(const GraphPort& to, Feed feed) {
  Feed& slot = states_[to.index].feeds[to.port];
  if (slot.kind != Feed::Kind::kNobody) {
    return InvalidArgument(InputName(to.index, to.port), " is fed twice: by ", FeedName(slot), " and ",
                           FeedName(feed));
  }
  slot = feed;
  return {};
}

Status Builder::ConnectInputEdges() {
  for (uint32_t i = 0; i < description_.input_edges.size(); ++i) {
    const GraphEdgeDescription& edge = description_.input_edges[i];
    const std::string name = EdgeName("input", i, edge);
    if (edge.from.index >= description_.input_count) {
      return InvalidArgument(name, ": GraphInputIndex is ", edge.from.index, " but InputCount is ",
                             description_.input_count);
    }
    ANYDML_RETURN_IF_ERROR(CheckTarget(name, edge.to));
    ANYDML_RETURN_IF_ERROR(Connect(edge.to, {Feed::Kind::kInputEdge, i}));
    const TensorDesc& tensor = *states_[edge.to.index].inputs[edge.to.port].tensor;
    GraphInput& input = graph_.inputs[edge.from.index];
    input.connected = true;
    input.owned = tensor.owned_by_dml;
    input.bytes = std::max(input.bytes, tensor.total_bytes);
    input.alignment = std::max(input.alignment, tensor.alignment);
    input.element_bytes = std::max<uint32_t>(input.element_bytes, (BitSize(tensor.type) + 7) / 8);
  }
  return {};
}

Status Builder::ConnectIntermediateEdges() {
  for (uint32_t i = 0; i < description_.intermediate_edges.size(); ++i) {
    const GraphEdgeDescription& edge = description_.intermediate_edges[i];
    const std::string name = EdgeName("intermediate", i, edge);
    ANYDML_RETURN_IF_ERROR(CheckSource(name, edge.from));
    ANYDML_RETURN_IF_ERROR(CheckTarget(name, edge.to));
    ANYDML_RETURN_IF_ERROR(Connect(edge.to, {Feed::Kind::kIntermediateEdge, i}));
  }
  return {};
}

Status Builder::ConnectOutputEdges() {
  for (uint32_t i = 0; i < description_.output_edges.size(); ++i) {
    const GraphEdgeDescription& edge = description_.output_edges[i];
    const std::string name = EdgeName("output", i, edge);
    ANYDML_RETURN_IF_ERROR(CheckSource(name, edge.from));
    if (IsConstant(edge.from.index)) {
      return InvalidArgument(name, ": ", NodeName(edge.from.index),
                             " is a constant, which has no tensor; only operators feed graph outputs");
    }
    if (edge.to.index >= description_.output_count) {
      return InvalidArgument(name, ": GraphOutputIndex is ", edge.to.index, " but OutputCount is ",
                             description_.output_count);
    }
    Feed& feed = output_feeds_[edge.to.index];
    if (feed.kind != Feed::Kind::kNobody) {
      return InvalidArgument("graph output ", edge.to.index, " is fed twice: by output edges ", feed.edge,
                             " and ", i);
    }
    feed = {Feed::Kind::kOutputEdge, i};
    const TensorDesc& tensor = *states_[edge.from.index].outputs[edge.from.port].tensor;
    graph_.outputs[edge.to.index] = {.connected = true,
                                     .bytes = tensor.total_bytes,
                                     .alignment = tensor.alignment,
                                     .element_bytes = (BitSize(tensor.type) + 7) / 8};
  }
  return {};
}

Status Builder::CheckAllConnected() const {
  for (uint32_t i = 0; i < NodeCount(); ++i) {
    for (uint32_t j = 0; j < states_[i].inputs.size(); ++j) {
      if (states_[i].inputs[j].tensor != nullptr && states_[i].feeds[j].kind == Feed::Kind::kNobody) {
        return InvalidArgument(InputName(i, j),
                               " is not connected; every tensor that the operator has needs an edge");
      }
    }
  }
  return {};
}

// Nodes run as soon as they can, those with a lower index first.
Status Builder::Order() {
  std::vector<uint32_t> waiting(NodeCount());
  std::vector<std::vector<uint32_t>> followers(NodeCount());
  for (const GraphEdgeDescription& edge : description_.intermediate_edges) {
    ++waiting[edge.to.index];
    followers[edge.from.index].push_back(edge.to.index);
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < NodeCount(); ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  uint32_t ordered = 0;
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    ++ordered;
    if (!IsConstant(node)) order_.push_back(node);
    for (const uint32_t follower : followers[node]) {
      if (--waiting[follower] == 0) ready.push(follower);
    }
  }
  if (ordered == NodeCount()) return {};
  return InvalidArgument(FindCycle(waiting), "; a graph must not have cycles");
}

// `waiting` is not 0 for the nodes of cycles and those behind them. Each waits for another such node: going
// back often enough ends in a cycle.
std::string Builder::FindCycle(const std::vector<uint32_t>& waiting) const {
  std::vector<uint32_t> before(NodeCount(), kNoValue);
  for (const GraphEdgeDescription& edge : description_.intermediate_edges) {
    if (waiting[edge.from.index] != 0 && waiting[edge.to.index] != 0) before[edge.to.index] = edge.from.index;
  }
  uint32_t node = 0;
  while (waiting[node] == 0) ++node;
  for (uint32_t i = 0; i < NodeCount(); ++i) node = before[node];
  std::vector<uint32_t> cycle;
  for (uint32_t at = node; cycle.empty() || at != node; at = before[at]) cycle.push_back(at);
  if (cycle.size() == 1) return StrCat(NodeName(node), " feeds itself");
  std::sort(cycle.begin(), cycle.end());
  std::string names;
  for (const uint32_t member : cycle) names += StrCat(names.empty() ? "nodes " : ", ", member);
  return names + " form a cycle";
}

Status Builder::CheckReachable() const {
  std::vector<char> useful(NodeCount());
  for (const GraphEdgeDescription& edge : description_.output_edges) useful[edge.from.index] = 1;
  for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
    if (useful[*node] == 0) {
      return InvalidArgument(NodeName(*node), ": none of its outputs leads to a graph output");
    }
    for (const Feed& feed : states_[*node].feeds) {
      if (feed.kind == Feed::Kind::kIntermediateEdge) {
        useful[description_.intermediate_edges[feed.edge].from.index] = 1;
      }
    }
  }
  return {};
}

Status Builder::CheckConstant(const std::string& edge, const GraphPort& from, const GraphPort& to) const {
  const TensorDesc& tensor = *states_[to.index].inputs[to.port].tensor;
  const uint64_t given = description_.nodes[from.index].constant.size();
  const uint64_t needed = ElementBytes(tensor);
  if (given >= needed && given <= tensor.total_bytes) return {};
  return InvalidArgument(edge, ": the constant of ", NodeName(from.index), " has ", given, " bytes, ",
                         InputName(to.index, to.port), " needs ", needed,
                         given < needed ? "" : StrCat(" and takes at most ", tensor.total_bytes));
}

Status Builder::CheckSizes() const {
  for (uint32_t i = 0; i < description_.intermediate_edges.size(); ++i) {
    const GraphEdgeDescription& edge = description_.intermediate_edges[i];
    const std::string name = EdgeName("intermediate", i, edge);
    if (IsConstant(edge.from.index)) {
      ANYDML_RETURN_IF_ERROR(CheckConstant(name, edge.from, edge.to));
      continue;
    }
    const NamedTensor& from = states_[edge.from.index].outputs[edge.from.port];
    const TensorDesc& to = *states_[edge.to.index].inputs[edge.to.port].tensor;
    if (from.tensor->total_bytes != to.total_bytes) {
      return InvalidArgument(name, ": output ", edge.from.port, " (", from.name, ") of ",
                             NodeName(edge.from.index), " has TotalTensorSizeInBytes ",
                             from.tensor->total_bytes, ", ", InputName(edge.to.index, edge.to.port), " has ",
                             to.total_bytes, "; they must be equal");
    }
  }
  return {};
}

Status Builder::CheckOwned() const {
  std::vector<std::optional<GraphPort>> first(description_.input_count);
  for (const GraphEdgeDescription& edge : description_.input_edges) {
    const auto owned = [&](const GraphPort& port) {
      return states_[port.index].inputs[port.port].tensor->owned_by_dml;
    };
    std::optional<GraphPort>& known = first[edge.from.index];
    if (!known.has_value()) known = edge.to;
    if (owned(*known) == owned(edge.to)) continue;
    const GraphPort& with = owned(*known) ? *known : edge.to;
    const GraphPort& without = owned(*known) ? edge.to : *known;
    return InvalidArgument("graph input ", edge.from.index, " feeds ", InputName(with.index, with.port),
                           " with OWNED_BY_DML and ", InputName(without.index, without.port),
                           " without; all or none must have the flag");
  }
  for (uint32_t i = 0; i < description_.intermediate_edges.size(); ++i) {
    const GraphPort& to = description_.intermediate_edges[i].to;
    if (!states_[to.index].inputs[to.port].tensor->owned_by_dml) continue;
    return InvalidArgument(InputName(to.index, to.port), " has OWNED_BY_DML but is fed by ",
                           EdgeName("intermediate", i, description_.intermediate_edges[i]),
                           "; the flag is for tensors that come from graph inputs");
  }
  return {};
}

uint32_t Builder::AddValue(GraphValue value) {
  graph_.values.push_back(std::move(value));
  return static_cast<uint32_t>(graph_.values.size() - 1);
}

void Builder::MakeValues() {
  input_values_.assign(description_.input_count, kNoValue);
  for (uint32_t i = 0; i < description_.input_count; ++i) {
    const GraphInput& input = graph_.inputs[i];
    if (input.connected) {
      input_values_[i] = AddValue({.home = GraphValue::Home::kInput, .index = i, .bytes = input.bytes});
    }
  }
  for (uint32_t i = 0; i < NodeCount(); ++i) {
    NodeState& state = states_[i];
    if (IsConstant(i)) {
      state.values = {AddValue({.home = GraphValue::Home::kConstant})};
      graph_.values.back().constant = std::move(description_.nodes[i].constant);
      continue;
    }
    for (const NamedTensor& output : state.outputs) {
      state.values.push_back(output.tensor == nullptr ? kNoValue
                                                      : AddValue({.bytes = output.tensor->total_bytes}));
    }
  }
  // No more than elements are read: TotalTensorSizeInBytes may be anything beyond that.
  for (const GraphEdgeDescription& edge : description_.intermediate_edges) {
    if (!IsConstant(edge.from.index)) continue;
    GraphValue& value = graph_.values[states_[edge.from.index].values[0]];
    const TensorDesc& tensor = *states_[edge.to.index].inputs[edge.to.port].tensor;
    value.bytes = std::max(value.bytes, MinimumTotalBytes(tensor));
  }
  for (GraphValue& value : graph_.values) {
    if (value.home == GraphValue::Home::kConstant) value.constant.resize(value.bytes);
  }
}

void Builder::MakeNodes() {
  for (const uint32_t i : order_) {
    const NodeState& state = states_[i];
    GraphNode node;
    node.name = NodeName(i);
    for (const Feed& feed : state.feeds) {
      GraphOperand operand;
      if (feed.kind == Feed::Kind::kInputEdge) {
        operand.value = input_values_[description_.input_edges[feed.edge].from.index];
      } else if (feed.kind == Feed::Kind::kIntermediateEdge) {
        const GraphPort& from = description_.intermediate_edges[feed.edge].from;
        operand.value = states_[from.index].values[from.port];
      }
      node.inputs.push_back(operand);
    }
    for (const uint32_t value : state.values) node.outputs.push_back({value});
    node.work = GraphOperator{description_.nodes[i].op, description_.nodes[i].desc};
    graph_.nodes.push_back(std::move(node));
  }
  // A node writes to its first graph output; the others are copies of that.
  for (const GraphEdgeDescription& edge : description_.output_edges) {
    GraphValue& value = graph_.values[states_[edge.from.index].values[edge.from.port]];
    if (value.home == GraphValue::Home::kOutput) {
      AddCopy(edge.from.index, edge.from.port, edge.to.index);
    } else {
      value.home = GraphValue::Home::kOutput;
      value.index = edge.to.index;
    }
  }
}

// Element by element: what lies between them is not ours to write.
void Builder::AddCopy(uint32_t from_node, uint32_t output, uint32_t graph_output) {
  const TensorDesc& tensor = *states_[from_node].outputs[output].tensor;
  GraphNode copy;
  copy.name = StrCat("copy of ", NodeName(from_node), " for graph output ", graph_output);
  copy.work = CopyOf(tensor);
  copy.inputs = {{states_[from_node].values[output]}};
  copy.outputs = {
      {AddValue({.home = GraphValue::Home::kOutput, .index = graph_output, .bytes = tensor.total_bytes})}};
  graph_.nodes.push_back(std::move(copy));
}

}  // namespace

Status BuildGraph(GraphDescription description, Graph* graph) {
  return Builder(std::move(description), graph).Build();
}

}  // namespace anydml
