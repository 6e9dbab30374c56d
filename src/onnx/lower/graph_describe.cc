// Describes a builder's nodes as DirectML graphs.
#include <algorithm>

#include "onnx/lower/graph_builder.h"

namespace anydml::onnx {
namespace {

// Initialisation packs owned constants; a small constant is not worth a binding.
constexpr size_t kSmallConstant = 64;
// A node that reads this much is a product or a convolution, with which earlier nodes are not fused.
constexpr uint64_t kHeavyBytes = 32 << 10;

}  // namespace

std::vector<bool> GraphBuilder::NeededNodes(std::span<const Source> outputs) const {
  std::vector<bool> needed(nodes_.size(), false);
  for (const Source& source : outputs) needed[source.index] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {  // a node's inputs precede it
    if (!needed[i]) continue;
    for (const Source& source : nodes_[i].inputs) {
      if (source.kind == Source::Kind::kNode) needed[source.index] = true;
    }
  }
  return needed;
}

uint64_t GraphBuilder::NewWeightBytes(const Node& node, std::set<uint32_t>* seen) const {
  uint64_t bytes = 0;
  for (const Source& source : node.inputs) {
    if (source.kind == Source::Kind::kConstant && seen->insert(source.index).second)
      bytes += constants_[source.index].data.size();
  }
  return bytes;
}

uint64_t GraphBuilder::WeightBytes(std::span<const Source> outputs) const {
  const std::vector<bool> needed = NeededNodes(outputs);
  std::set<uint32_t> seen;
  uint64_t bytes = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (needed[i]) bytes += NewWeightBytes(nodes_[i], &seen);
  }
  return bytes;
}

// How many tensors nodes before i write and nodes from i on read.
std::vector<uint32_t> GraphBuilder::LiveAt(std::span<const Source> outputs,
                                           const std::vector<bool>& needed) const {
  std::map<Source, size_t> last;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!needed[i]) continue;
    for (const Source& source : nodes_[i].inputs) {
      if (source.kind == Source::Kind::kNode) last[source] = i;
    }
  }
  for (const Source& source : outputs) last.erase(source);  // written there in any case
  std::vector<uint32_t> changes(nodes_.size() + 2, 0);
  for (const auto& [source, reader] : last) {
    ++changes[source.index + 1];
    --changes[reader + 1];
  }
  for (size_t i = 1; i < changes.size(); ++i) changes[i] += changes[i - 1];
  return changes;
}

std::vector<GraphBuilder::Range> GraphBuilder::Cut(std::span<const Source> outputs,
                                                   uint64_t weight_bytes) const {
  const std::vector<bool> needed = NeededNodes(outputs);
  const std::vector<uint32_t> live = LiveAt(outputs, needed);
  std::vector<Range> ranges;
  std::set<uint32_t> before;  // weights of earlier ranges: shared ones do not cut again
  for (size_t begin = 0; begin < nodes_.size();) {
    std::set<uint32_t> seen = before;
    uint64_t bytes = 0, best = UINT64_MAX;
    size_t end = begin, cut = nodes_.size();
    for (; end < nodes_.size(); ++end) {
      std::set<uint32_t> own;
      const bool heavy = needed[end] && NewWeightBytes(nodes_[end], &own) >= kHeavyBytes;
      const uint64_t score = 2 * uint64_t{live[end]} + (heavy ? 0 : 1);
      if (end > begin && bytes >= weight_bytes / 2 && score <= best) {
        best = score;
        cut = end;
      }
      if (needed[end]) bytes += NewWeightBytes(nodes_[end], &seen);
      if (bytes > weight_bytes) break;
    }
    if (end == nodes_.size()) {
      cut = end;
    } else if (best == UINT64_MAX) {
      cut = std::max(end, begin + 1);
    }
    ranges.push_back({begin, cut});
    for (; begin < cut; ++begin) {
      if (needed[begin]) NewWeightBytes(nodes_[begin], &before);
    }
  }
  return ranges;
}

void GraphBuilder::ReleaseConstants(std::span<const Source> outputs, size_t end) {
  const std::vector<bool> needed = NeededNodes(outputs);
  std::vector<bool> later(constants_.size(), false);
  for (size_t i = end; i < nodes_.size(); ++i) {
    for (const Source& source : nodes_[i].inputs) {
      if (needed[i] && source.kind == Source::Kind::kConstant) later[source.index] = true;
    }
  }
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (!later[i]) constants_[i] = {};
  }
}

bool GraphBuilder::IsOwned(const Source& source) const {
  return source.kind == Source::Kind::kConstant && source.output == 0 &&
         (constants_[source.index].data.size() > kSmallConstant || !maker_.has_constant_nodes());
}

std::vector<Source> GraphBuilder::OutputsOf(const Range& range, std::span<const Source> outputs,
                                            const std::vector<bool>& needed) const {
  std::vector<Source> found;
  std::set<Source> known;
  const auto add = [&](const Source& source) {
    const bool inside =
        source.kind == Source::Kind::kNode && source.index >= range.begin && source.index < range.end;
    if (inside && known.insert(source).second) found.push_back(source);
  };
  for (const Source& source : outputs) add(source);
  for (size_t i = range.end; i < nodes_.size(); ++i) {
    if (!needed[i]) continue;
    for (const Source& source : nodes_[i].inputs) add(source);
  }
  return found;
}

void GraphBuilder::Describe(std::span<const Source> outputs, const Range& range, Description* out) const {
  const std::vector<bool> needed = NeededNodes(outputs);
  out->outputs = OutputsOf(range, outputs, needed);
  std::vector<UINT> numbers(nodes_.size(), 0);
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!needed[i]) continue;
    numbers[i] = static_cast<UINT>(out->nodes.size());
    const auto& op = out->operators.emplace_back(
        DML_OPERATOR_GRAPH_NODE_DESC{nodes_[i].op.Get(), nodes_[i].origin.c_str()});
    out->nodes.push_back({DML_GRAPH_NODE_TYPE_OPERATOR, &op});
  }

  std::map<Source, UINT> graph_inputs, constant_nodes;
  const auto connect_input = [&](const Source& source, UINT node, UINT slot) {
    const auto [found, added] = graph_inputs.try_emplace(source, static_cast<UINT>(out->inputs.size()));
    if (added) {
      const bool constant = source.kind == Source::Kind::kConstant;
      const bool given = source.kind == Source::Kind::kInput;
      out->inputs.push_back({given ? inputs_[source.index] : kAbsent,
                             constant ? &constants_[source.index] : nullptr,
                             constant || given ? Source{} : source});
    }
    out->input_edges.push_back({found->second, node, slot, nullptr});
  };
  const auto connect_constant = [&](const Source& source, UINT node, UINT slot) {
    const auto [found, added] = constant_nodes.try_emplace(source, static_cast<UINT>(out->nodes.size()));
    if (added) {
      const Tensor& tensor = constants_[source.index];
      const auto& desc = out->constants.emplace_back(
          DML_CONSTANT_DATA_GRAPH_NODE_DESC{tensor.data.data(), tensor.data.size(), nullptr});
      out->nodes.push_back({DML_GRAPH_NODE_TYPE_CONSTANT, &desc});
    }
    out->intermediate_edges.push_back({found->second, 0, node, slot, nullptr});
  };
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!needed[i]) continue;
    for (UINT slot = 0; slot < nodes_[i].inputs.size(); ++slot) {
      const Source& source = nodes_[i].inputs[slot];
      if (source.kind == Source::Kind::kNode && source.index >= range.begin) {
        out->intermediate_edges.push_back({numbers[source.index], source.output, numbers[i], slot, nullptr});
      } else if (source.kind == Source::Kind::kConstant && !IsOwned(source)) {
        connect_constant(source, numbers[i], slot);
      } else if (source.kind != Source::Kind::kNone) {
        connect_input(source, numbers[i], slot);
      }
    }
  }
  for (UINT i = 0; i < out->outputs.size(); ++i) {
    const Source& source = out->outputs[i];
    out->output_edges.push_back({numbers[source.index], source.output, i, nullptr});
  }

  for (const auto& edge : out->input_edges) out->inputs_desc.push_back({DML_GRAPH_EDGE_TYPE_INPUT, &edge});
  for (const auto& edge : out->intermediate_edges) {
    out->intermediates_desc.push_back({DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edge});
  }
  for (const auto& edge : out->output_edges) out->outputs_desc.push_back({DML_GRAPH_EDGE_TYPE_OUTPUT, &edge});
  out->desc.InputCount = static_cast<UINT>(out->inputs.size());
  out->desc.OutputCount = static_cast<UINT>(out->outputs.size());
  out->desc.NodeCount = static_cast<UINT>(out->nodes.size());
  out->desc.Nodes = out->nodes.data();
  out->desc.InputEdgeCount = static_cast<UINT>(out->inputs_desc.size());
  out->desc.InputEdges = out->inputs_desc.data();
  out->desc.OutputEdgeCount = static_cast<UINT>(out->outputs_desc.size());
  out->desc.OutputEdges = out->outputs_desc.data();
  out->desc.IntermediateEdgeCount = static_cast<UINT>(out->intermediates_desc.size());
  out->desc.IntermediateEdges = out->intermediates_desc.data();
}

}  // namespace anydml::onnx
