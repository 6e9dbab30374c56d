#include "graph/construct/checked_graph.h"

#include <algorithm>
#include <optional>

namespace anydml {
namespace {

using Feed = GraphFeed;

std::string Quoted(const std::string& name) { return name.empty() ? "" : StrCat(" \"", name, "\""); }

// Bytes from the first to the last element, not rounded up; saturates.
uint64_t ElementBytes(const TensorDesc& tensor) {
  const uint64_t span = ElementSpan(tensor), bits = BitSize(tensor.type);
  return span > (UINT64_MAX - 7) / bits ? UINT64_MAX : (span * bits + 7) / 8;
}

class Checker {
 public:
  explicit Checker(CheckedGraph* checked) : checked_(*checked) {}

  Status Check() {
    ANYDML_RETURN_IF_ERROR(CheckCounts());
    CollectTensors();
    ANYDML_RETURN_IF_ERROR(ConnectInputEdges());
    ANYDML_RETURN_IF_ERROR(ConnectIntermediateEdges());
    ANYDML_RETURN_IF_ERROR(ConnectOutputEdges());
    ANYDML_RETURN_IF_ERROR(CheckAllConnected());
    ANYDML_RETURN_IF_ERROR(OrderNodes(&checked_));
    ANYDML_RETURN_IF_ERROR(CheckSizes());
    return CheckOwned();
  }

 private:
  std::string NodeName(uint32_t node) const { return checked_.NodeName(node); }
  std::string InputName(uint32_t node, uint32_t input) const {
    return StrCat("input ", input, " (", checked_.nodes[node].inputs[input].name, ") of ", NodeName(node));
  }
  static std::string EdgeName(const char* kind, uint32_t i, const GraphEdgeDescription& edge) {
    return StrCat(kind, " edge ", i, Quoted(edge.name));
  }
  std::string FeedName(const Feed& feed) const {
    if (feed.kind == Feed::Kind::kInputEdge) {
      return EdgeName("input", feed.edge, checked_.description.input_edges[feed.edge]);
    }
    return EdgeName("intermediate", feed.edge, checked_.description.intermediate_edges[feed.edge]);
  }
  bool IsConstant(uint32_t node) const { return checked_.IsConstant(node); }
  uint32_t NodeCount() const { return checked_.node_count(); }

  Status CheckCounts() const;
  void CollectTensors();
  Status CheckTarget(const std::string& edge, const GraphPort& to) const;
  Status CheckSource(const std::string& edge, const GraphPort& from) const;
  Status Connect(const GraphPort& to, Feed feed);
  Status ConnectInputEdges();
  Status ConnectIntermediateEdges();
  Status ConnectOutputEdges();
  Status CheckAllConnected() const;
  Status CheckSizes() const;
  Status CheckConstant(const std::string& edge, const GraphPort& from, const GraphPort& to) const;
  Status CheckOwned() const;

  CheckedGraph& checked_;
  std::vector<Feed> output_feeds_;
};

Status Checker::CheckCounts() const {
  if (checked_.description.nodes.empty())
    return InvalidArgument("NodeCount is 0; a graph needs at least one operator");
  if (checked_.description.output_count == 0)
    return InvalidArgument("OutputCount is 0; a graph needs at least one output");
  if (checked_.description.output_edges.empty()) {
    return InvalidArgument("there is no output edge; a graph needs at least one output");
  }
  // Every input and output is a binding; no real graph has a million.
  constexpr uint32_t kMost = 1 << 20;
  if (checked_.description.input_count > kMost) {
    return InvalidArgument("InputCount is ", checked_.description.input_count, "; allowed are at most ",
                           kMost);
  }
  if (checked_.description.output_count > kMost) {
    return InvalidArgument("OutputCount is ", checked_.description.output_count, "; allowed are at most ",
                           kMost);
  }
  return {};
}

void Checker::CollectTensors() {
  checked_.nodes.resize(NodeCount());
  for (uint32_t i = 0; i < NodeCount(); ++i) {
    const GraphNodeDescription& node = checked_.description.nodes[i];
    CheckedGraph::Node& state = checked_.nodes[i];
    if (node.op != nullptr) {
      state.inputs = NamedTensors(node.desc, FieldKind::kInput);
      state.outputs = NamedTensors(node.desc, FieldKind::kOutput);
    }
    state.feeds.resize(state.inputs.size());
  }
  output_feeds_.resize(checked_.description.output_count);
  checked_.inputs.resize(checked_.description.input_count);
  checked_.outputs.resize(checked_.description.output_count);
}

Status Checker::CheckTarget(const std::string& edge, const GraphPort& to) const {
  if (to.index >= NodeCount()) {
    return InvalidArgument(edge, ": ToNodeIndex is ", to.index, " but the graph has ", NodeCount(), " nodes");
  }
  if (IsConstant(to.index)) {
    return InvalidArgument(edge, ": ", NodeName(to.index),
                           " is a constant; it has one output (0) and no inputs");
  }
  const CheckedGraph::Node& node = checked_.nodes[to.index];
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

Status Checker::CheckSource(const std::string& edge, const GraphPort& from) const {
  if (from.index >= NodeCount()) {
    return InvalidArgument(edge, ": FromNodeIndex is ", from.index, " but the graph has ", NodeCount(),
                           " nodes");
  }
  if (IsConstant(from.index)) {
    if (from.port == 0) return {};
    return InvalidArgument(edge, ": FromNodeOutputIndex is ", from.port, " but ", NodeName(from.index),
                           " is a constant; it has one output (0) and no inputs");
  }
  const CheckedGraph::Node& node = checked_.nodes[from.index];
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

Status Checker::Connect(const GraphPort& to, Feed feed) {
  Feed& slot = checked_.nodes[to.index].feeds[to.port];
  if (slot.kind != Feed::Kind::kNobody) {
    return InvalidArgument(InputName(to.index, to.port), " is fed twice: by ", FeedName(slot), " and ",
                           FeedName(feed));
  }
  slot = feed;
  return {};
}

Status Checker::ConnectInputEdges() {
  for (uint32_t i = 0; i < checked_.description.input_edges.size(); ++i) {
    const GraphEdgeDescription& edge = checked_.description.input_edges[i];
    const std::string name = EdgeName("input", i, edge);
    if (edge.from.index >= checked_.description.input_count) {
      return InvalidArgument(name, ": GraphInputIndex is ", edge.from.index, " but InputCount is ",
                             checked_.description.input_count);
    }
    ANYDML_RETURN_IF_ERROR(CheckTarget(name, edge.to));
    ANYDML_RETURN_IF_ERROR(Connect(edge.to, {Feed::Kind::kInputEdge, i}));
    const TensorDesc& tensor = *checked_.nodes[edge.to.index].inputs[edge.to.port].tensor;
    GraphInput& input = checked_.inputs[edge.from.index];
    input.connected = true;
    input.owned = tensor.owned_by_dml;
    input.bytes = std::max(input.bytes, tensor.total_bytes);
    input.alignment = std::max(input.alignment, tensor.alignment);
    input.element_bytes = std::max<uint32_t>(input.element_bytes, (BitSize(tensor.type) + 7) / 8);
  }
  return {};
}

Status Checker::ConnectIntermediateEdges() {
  for (uint32_t i = 0; i < checked_.description.intermediate_edges.size(); ++i) {
    const GraphEdgeDescription& edge = checked_.description.intermediate_edges[i];
    const std::string name = EdgeName("intermediate", i, edge);
    ANYDML_RETURN_IF_ERROR(CheckSource(name, edge.from));
    ANYDML_RETURN_IF_ERROR(CheckTarget(name, edge.to));
    ANYDML_RETURN_IF_ERROR(Connect(edge.to, {Feed::Kind::kIntermediateEdge, i}));
  }
  return {};
}

Status Checker::ConnectOutputEdges() {
  for (uint32_t i = 0; i < checked_.description.output_edges.size(); ++i) {
    const GraphEdgeDescription& edge = checked_.description.output_edges[i];
    const std::string name = EdgeName("output", i, edge);
    ANYDML_RETURN_IF_ERROR(CheckSource(name, edge.from));
    if (IsConstant(edge.from.index)) {
      return InvalidArgument(name, ": ", NodeName(edge.from.index),
                             " is a constant, which has no tensor; only operators feed graph outputs");
    }
    if (edge.to.index >= checked_.description.output_count) {
      return InvalidArgument(name, ": GraphOutputIndex is ", edge.to.index, " but OutputCount is ",
                             checked_.description.output_count);
    }
    Feed& feed = output_feeds_[edge.to.index];
    if (feed.kind != Feed::Kind::kNobody) {
      return InvalidArgument("graph output ", edge.to.index, " is fed twice: by output edges ", feed.edge,
                             " and ", i);
    }
    feed = {Feed::Kind::kOutputEdge, i};
    const TensorDesc& tensor = *checked_.nodes[edge.from.index].outputs[edge.from.port].tensor;
    checked_.outputs[edge.to.index] = {.connected = true,
                                       .bytes = tensor.total_bytes,
                                       .alignment = tensor.alignment,
                                       .element_bytes = (BitSize(tensor.type) + 7) / 8};
  }
  return {};
}

Status Checker::CheckAllConnected() const {
  for (uint32_t i = 0; i < NodeCount(); ++i) {
    for (uint32_t j = 0; j < checked_.nodes[i].inputs.size(); ++j) {
      if (checked_.nodes[i].inputs[j].tensor != nullptr &&
          checked_.nodes[i].feeds[j].kind == Feed::Kind::kNobody) {
        return InvalidArgument(InputName(i, j),
                               " is not connected; every tensor that the operator has needs an edge");
      }
    }
  }
  return {};
}

Status Checker::CheckConstant(const std::string& edge, const GraphPort& from, const GraphPort& to) const {
  const TensorDesc& tensor = *checked_.nodes[to.index].inputs[to.port].tensor;
  const uint64_t given = checked_.description.nodes[from.index].constant.size();
  const uint64_t needed = ElementBytes(tensor);
  if (given >= needed && given <= tensor.total_bytes) return {};
  return InvalidArgument(edge, ": the constant of ", NodeName(from.index), " has ", given, " bytes, ",
                         InputName(to.index, to.port), " needs ", needed,
                         given < needed ? "" : StrCat(" and takes at most ", tensor.total_bytes));
}

Status Checker::CheckSizes() const {
  for (uint32_t i = 0; i < checked_.description.intermediate_edges.size(); ++i) {
    const GraphEdgeDescription& edge = checked_.description.intermediate_edges[i];
    const std::string name = EdgeName("intermediate", i, edge);
    if (IsConstant(edge.from.index)) {
      ANYDML_RETURN_IF_ERROR(CheckConstant(name, edge.from, edge.to));
      continue;
    }
    const NamedTensor& from = checked_.nodes[edge.from.index].outputs[edge.from.port];
    const TensorDesc& to = *checked_.nodes[edge.to.index].inputs[edge.to.port].tensor;
    if (from.tensor->total_bytes != to.total_bytes) {
      return InvalidArgument(name, ": output ", edge.from.port, " (", from.name, ") of ",
                             NodeName(edge.from.index), " has TotalTensorSizeInBytes ",
                             from.tensor->total_bytes, ", ", InputName(edge.to.index, edge.to.port), " has ",
                             to.total_bytes, "; they must be equal");
    }
  }
  return {};
}

Status Checker::CheckOwned() const {
  std::vector<std::optional<GraphPort>> first(checked_.description.input_count);
  for (const GraphEdgeDescription& edge : checked_.description.input_edges) {
    const auto owned = [&](const GraphPort& port) {
      return checked_.nodes[port.index].inputs[port.port].tensor->owned_by_dml;
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
  for (uint32_t i = 0; i < checked_.description.intermediate_edges.size(); ++i) {
    const GraphPort& to = checked_.description.intermediate_edges[i].to;
    if (!checked_.nodes[to.index].inputs[to.port].tensor->owned_by_dml) continue;
    return InvalidArgument(InputName(to.index, to.port), " has OWNED_BY_DML but is fed by ",
                           EdgeName("intermediate", i, checked_.description.intermediate_edges[i]),
                           "; the flag is for tensors that come from graph inputs");
  }
  return {};
}

}  // namespace

std::string CheckedGraph::NodeName(uint32_t node) const {
  const GraphNodeDescription& named = description.nodes[node];
  return StrCat("node ", node, Quoted(named.name), " (",
                named.op != nullptr ? named.desc.schema->name : "CONSTANT", ")");
}

Status CheckGraph(CheckedGraph* out) { return Checker(out).Check(); }

}  // namespace anydml
