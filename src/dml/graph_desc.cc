#include "dml/graph_desc.h"

#include <cstring>
#include <utility>

#include "dml/device.h"
#include "dml/operator.h"
#include "dml/raw_enum.h"

namespace anydml::dml {
namespace {

constexpr FeatureLevel kGraphLevel = 0x2100;
constexpr FeatureLevel kConstantLevel = 0x6200;

std::string NameOf(const char* name) { return name != nullptr ? name : ""; }

std::string LevelName(FeatureLevel level) { return StrCat(level >> 12, ".", level >> 8 & 0xF); }

Status ReadOperatorNode(const Device* device, const std::string& where,
                        const DML_OPERATOR_GRAPH_NODE_DESC& desc, GraphNodeDescription* out) {
  if (desc.Operator == nullptr) return InvalidArgument(where, ": Operator is null");
  const auto* op = ImplementationOf<Operator>(desc.Operator);
  if (op == nullptr || op->device() != device) {
    return InvalidArgument(where, ": Operator belongs to another device");
  }
  out->op = &op->implementation();
  out->desc = op->desc();
  return {};
}

Status ReadConstantNode(const Device* device, const std::string& where,
                        const DML_CONSTANT_DATA_GRAPH_NODE_DESC& desc, GraphNodeDescription* out) {
  const FeatureLevel level = device->state().level();
  if (level < kConstantLevel) {
    return InvalidArgument(where, ": CONSTANT needs feature level ", LevelName(kConstantLevel),
                           "; the device has ", LevelName(level));
  }
  if (desc.Data == nullptr) return InvalidArgument(where, ": Data is null");
  if (desc.DataSize == 0) return InvalidArgument(where, ": DataSize is 0");
  out->constant = {static_cast<const std::byte*>(desc.Data), desc.DataSize};
  return {};
}

Status ReadNode(const Device* device, uint32_t index, const DML_GRAPH_NODE_DESC& node,
                GraphNodeDescription* out) {
  const std::string where = StrCat("node ", index);
  const uint32_t type = RawEnum(node.Type);
  if (type != DML_GRAPH_NODE_TYPE_OPERATOR && type != DML_GRAPH_NODE_TYPE_CONSTANT) {
    return InvalidArgument(where, ": Type is ", type, "; allowed are OPERATOR (1) and, from feature level ",
                           LevelName(kConstantLevel), ", CONSTANT (2)");
  }
  if (node.Desc == nullptr) return InvalidArgument(where, ": Desc is null");
  const auto named = [&](const char* name) {
    out->name = NameOf(name);
    return out->name.empty() ? where : StrCat(where, " \"", out->name, "\"");
  };
  if (type == DML_GRAPH_NODE_TYPE_OPERATOR) {
    const auto& desc = *static_cast<const DML_OPERATOR_GRAPH_NODE_DESC*>(node.Desc);
    return ReadOperatorNode(device, named(desc.Name), desc, out);
  }
  const auto& desc = *static_cast<const DML_CONSTANT_DATA_GRAPH_NODE_DESC*>(node.Desc);
  return ReadConstantNode(device, named(desc.Name), desc, out);
}

GraphEdgeDescription ReadEdge(const DML_INPUT_GRAPH_EDGE_DESC& edge) {
  return {NameOf(edge.Name), {edge.GraphInputIndex}, {edge.ToNodeIndex, edge.ToNodeInputIndex}};
}
GraphEdgeDescription ReadEdge(const DML_INTERMEDIATE_GRAPH_EDGE_DESC& edge) {
  return {NameOf(edge.Name),
          {edge.FromNodeIndex, edge.FromNodeOutputIndex},
          {edge.ToNodeIndex, edge.ToNodeInputIndex}};
}
GraphEdgeDescription ReadEdge(const DML_OUTPUT_GRAPH_EDGE_DESC& edge) {
  return {NameOf(edge.Name), {edge.FromNodeIndex, edge.FromNodeOutputIndex}, {edge.GraphOutputIndex}};
}

struct EdgeKind {
  uint32_t type;
  const char* type_name;  // "INPUT"
  const char* array;      // "InputEdges"
  const char* name;       // "input"
};

std::string TypeName(uint32_t type) {
  constexpr const char* kNames[] = {"INVALID", "INPUT", "OUTPUT", "INTERMEDIATE"};
  return type < std::size(kNames) ? kNames[type] : StrCat(type);
}

Status CheckArray(const char* name, const void* array, uint32_t count) {
  if (array != nullptr || count == 0) return {};
  const bool nodes = std::strcmp(name, "Nodes") == 0;
  const std::string singular(name, std::strlen(name) - 1);
  return InvalidArgument(name, " is null but ", nodes ? "NodeCount" : singular + "Count", " is ", count);
}

template <typename Edge>
Status ReadEdges(const EdgeKind& kind, uint32_t count, const DML_GRAPH_EDGE_DESC* edges,
                 std::vector<GraphEdgeDescription>* out) {
  ANYDML_RETURN_IF_ERROR(CheckArray(kind.array, edges, count));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t type = RawEnum(edges[i].Type);
    if (type != kind.type) {
      return InvalidArgument(kind.name, " edge ", i, ": Type is ", TypeName(type), "; elements of ",
                             kind.array, " must be ", kind.type_name);
    }
    if (edges[i].Desc == nullptr) return InvalidArgument(kind.name, " edge ", i, ": Desc is null");
    out->push_back(ReadEdge(*static_cast<const Edge*>(edges[i].Desc)));
  }
  return {};
}

}  // namespace

Status ReadGraphDesc(const Device* device, const DML_GRAPH_DESC& desc, GraphDescription* out) {
  const FeatureLevel level = device->state().level();
  if (level < kGraphLevel) {
    return InvalidArgument("graphs need feature level ", LevelName(kGraphLevel), "; the device has ",
                           LevelName(level));
  }
  out->input_count = desc.InputCount;
  out->output_count = desc.OutputCount;
  ANYDML_RETURN_IF_ERROR(CheckArray("Nodes", desc.Nodes, desc.NodeCount));
  for (uint32_t i = 0; i < desc.NodeCount; ++i) {
    ANYDML_RETURN_IF_ERROR(ReadNode(device, i, desc.Nodes[i], &out->nodes.emplace_back()));
  }
  constexpr EdgeKind kInput = {DML_GRAPH_EDGE_TYPE_INPUT, "INPUT", "InputEdges", "input"};
  constexpr EdgeKind kOutput = {DML_GRAPH_EDGE_TYPE_OUTPUT, "OUTPUT", "OutputEdges", "output"};
  constexpr EdgeKind kIntermediate = {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, "INTERMEDIATE", "IntermediateEdges",
                                      "intermediate"};
  ANYDML_RETURN_IF_ERROR(
      ReadEdges<DML_INPUT_GRAPH_EDGE_DESC>(kInput, desc.InputEdgeCount, desc.InputEdges, &out->input_edges));
  ANYDML_RETURN_IF_ERROR(ReadEdges<DML_OUTPUT_GRAPH_EDGE_DESC>(kOutput, desc.OutputEdgeCount,
                                                               desc.OutputEdges, &out->output_edges));
  return ReadEdges<DML_INTERMEDIATE_GRAPH_EDGE_DESC>(kIntermediate, desc.IntermediateEdgeCount,
                                                     desc.IntermediateEdges, &out->intermediate_edges);
}

}  // namespace anydml::dml
