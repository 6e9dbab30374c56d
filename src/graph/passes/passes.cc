#include "graph/passes/passes.h"

#include <algorithm>

#include "ops/element/operators.h"

namespace anydml {
namespace {

// Whether the comma-separated list contains the word.
bool Has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

std::span<const GraphPass> GraphPasses() {
  static constexpr GraphPass kPasses[] = {
      {"fold", FoldConstants},         {"views", FoldViews},
      {"products", JoinProducts},      {"attention", FuseAttention},
      {"activation", FuseActivations}, {"tails", FuseTails},
      {"fuse", FuseElements},          {"prologue", FusePrologues},
      {"layouts", ChooseLayouts},
  };
  return kPasses;
}

Status RunPasses(const LowerContext& context, std::string_view without, Graph* graph) {
  if (Has(without, "all")) return {};
  for (const GraphPass& pass : GraphPasses()) {
    if (!Has(without, pass.name)) ANYDML_RETURN_IF_ERROR(pass.run(context, graph));
  }
  return {};
}

std::vector<GraphUse> FindUses(const Graph& graph) {
  std::vector<GraphUse> uses(graph.values.size());
  const auto add = [](std::vector<uint32_t>* nodes, uint32_t node) {
    if (nodes->empty() || nodes->back() != node) nodes->push_back(node);
  };
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    for (const GraphOperand& input : graph.nodes[i].inputs) {
      if (input.present()) add(&uses[input.value].readers, i);
    }
    for (const GraphOperand& output : graph.nodes[i].outputs) {
      if (output.present()) add(&uses[output.value].writers, i);
    }
  }
  return uses;
}

bool IsElementWise(const OperatorDesc& desc) {
  const auto types = ElementOperatorTypes();
  return std::find(types.begin(), types.end(), static_cast<OperatorType>(desc.schema->type)) != types.end();
}

void RemoveEmptyNodes(Graph* graph) {
  std::erase_if(graph->nodes, [](const GraphNode& node) {
    return std::none_of(node.outputs.begin(), node.outputs.end(),
                        [](const GraphOperand& output) { return output.present(); });
  });
}

}  // namespace anydml
