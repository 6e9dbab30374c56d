#include "graph/passes/rebind_tensors.h"

#include <algorithm>
#include <utility>

#include "ops/element/builder.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

// Element programs and copies, too, look at addresses before they rely on them.
bool IsFlexible(const GraphNode& node) {
  return node.elements() != nullptr || node.op()->op->traits.strides == Strides::kDoNotMatter;
}

// The client's bindings are aligned only to the elements of the tensors that they are bound to; CPUs need no
// more.
bool IsAligned(const LowerContext& context, const Graph& graph, const GraphNode& node,
               const GraphOperand& operand, DataType type) {
  const GraphValue& value = graph.values[operand.value];
  const uint32_t bytes = BitSize(type) / 8;
  if (value.home == Home::kInput && graph.inputs[value.index].element_bytes < bytes) return false;
  if (value.home == Home::kOutput && graph.outputs[value.index].element_bytes < bytes) return false;
  return IsFlexible(node) || operand.offset % context.device->unit_bytes == 0;
}

bool RedirectOperand(const LowerContext& context, const Graph& graph, const Detour& detour, FieldKind kind,
                     size_t number, GraphNode* node) {
  GraphOperand& operand = (kind == FieldKind::kInput ? node->inputs : node->outputs)[number];
  const GraphValue& value = graph.values[detour.to];
  if (GraphOperator* const op = node->op()) {
    TensorDesc& tensor = *TensorsOf(op, kind)[number];
    const auto places = Transfer(detour.here, detour.there, PlacesOf(tensor, operand.offset));
    if (!places.has_value() || !SetPlaces(*places, &tensor, &operand.offset)) return false;
    // The size of a tensor is rounded up beyond its last element.
    if (operand.offset > value.bytes || tensor.total_bytes > value.bytes - operand.offset) return false;
    tensor.owned_by_dml = kind == FieldKind::kInput && op->desc.schema->owned_by_dml &&
                          value.home == Home::kInput && graph.inputs[value.index].owned;
    operand.value = detour.to;
    return IsAligned(context, graph, *node, operand, tensor.type);
  }
  if (node->elements() == nullptr) return false;
  ElementProblem& problem = *node->elements();
  ElementOperand& tensor = (kind == FieldKind::kInput ? problem.inputs : problem.outputs)[number];
  const auto places = Transfer(detour.here, detour.there, PlacesOf(problem, tensor, operand.offset));
  if (!places.has_value() || !SetPlaces(*places, &tensor, &operand.offset)) return false;
  operand.value = detour.to;
  return IsAligned(context, graph, *node, operand, tensor.type);
}

// Whether both tensors visit the elements in the same order of memory, with the same smallest step.
bool SameOrder(const TensorDesc& a, const TensorDesc& b) {
  for (uint32_t d = 0; d < a.rank; ++d) {
    bool smallest = true;
    for (uint32_t e = 0; e < a.rank; ++e) {
      if (a.sizes[d] == 1 || a.sizes[e] == 1) continue;
      if ((a.strides[d] < a.strides[e]) != (b.strides[d] < b.strides[e])) return false;
      smallest &= a.strides[d] <= a.strides[e];
    }
    if (a.sizes[d] > 1 && smallest && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

template <typename Agree>
bool AllTensors(const OperatorDesc& a, const OperatorDesc& b, const Agree& agree) {
  const auto all = [&](const std::vector<const TensorDesc*>& x, const std::vector<const TensorDesc*>& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] != nullptr && !agree(*x[i], *y[i])) return false;
    }
    return true;
  };
  return all(a.inputs(), b.inputs()) && all(a.outputs(), b.outputs());
}

// Whether the operator accepts the new tensors, and is as fast with them.
bool Takes(const LowerContext& context, const GraphNode& before, const GraphNode& after) {
  if (after.op() == nullptr) return true;
  const Operator& op = *after.op()->op;
  const OperatorDesc &old_desc = before.op()->desc, &new_desc = after.op()->desc;
  if (AllTensors(old_desc, new_desc, SameLayout)) return true;
  const Strides strides = op.traits.strides;
  if (strides == Strides::kRestricted || !op.check(new_desc, context.level).ok()) return false;
  if (IsFlexible(after)) return true;
  const auto same_order = [&](const TensorDesc& a, const TensorDesc& b) { return SameOrder(a, b); };
  const bool is_same_order = strides == Strides::kMatterInOutput
                                 ? SameOrder(*old_desc.outputs()[0], *new_desc.outputs()[0])
                                 : AllTensors(old_desc, new_desc, same_order);
  if (!is_same_order) return false;
  LoweredOperator old_choice, new_choice;
  return LowerOperator(op, old_desc, context.ForPart(), &old_choice).ok() &&
         LowerOperator(op, new_desc, context.ForPart(), &new_choice).ok() &&
         old_choice.implementation == new_choice.implementation;
}

}  // namespace

std::vector<TensorDesc*> TensorsOf(OperatorDesc* desc, FieldKind kind) {
  std::vector<TensorDesc*> tensors;
  for (size_t i = 0; i < desc->fields.size(); ++i) {
    const FieldSchema& field = desc->schema->fields[i];
    if (field.kind != kind) continue;
    if (field.type == FieldType::kTensor) {
      tensors.push_back(std::get_if<TensorDesc>(&desc->fields[i]));
    } else if (auto* array = std::get_if<std::vector<TensorDesc>>(&desc->fields[i])) {
      for (TensorDesc& tensor : *array) tensors.push_back(&tensor);
    }
  }
  return tensors;
}

std::vector<TensorDesc*> TensorsOf(GraphOperator* op, FieldKind kind) {
  std::vector<TensorDesc*> tensors = TensorsOf(&op->desc, kind);
  if (!op->tail || kind != FieldKind::kInput) return tensors;
  for (auto& tensor : op->tail->tensors) tensors.push_back(tensor ? &*tensor : nullptr);
  return tensors;
}

bool MoveTensors(const LowerContext& context, const Graph& graph, const Detour& detour, GraphNode* node) {
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    if (node->inputs[i].value != detour.from) continue;
    if (!RedirectOperand(context, graph, detour, FieldKind::kInput, i, node)) return false;
  }
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    if (node->outputs[i].value != detour.from) continue;
    if (!RedirectOperand(context, graph, detour, FieldKind::kOutput, i, node)) return false;
  }
  return true;
}

bool Redirect(const LowerContext& context, const Graph& graph, const Detour& detour, GraphNode* node) {
  const GraphNode before = *node;
  return MoveTensors(context, graph, detour, node) && Takes(context, before, *node);
}

bool RedirectAll(const LowerContext& context, const Detour& detour, std::span<const uint32_t> nodes,
                 Graph* graph) {
  std::vector<GraphNode> changed;
  for (const uint32_t node : nodes) {
    changed.push_back(graph->nodes[node]);
    if (!Redirect(context, *graph, detour, &changed.back())) return false;
  }
  for (size_t i = 0; i < nodes.size(); ++i) graph->nodes[nodes[i]] = std::move(changed[i]);
  return true;
}

GraphNode MakeCopy(std::string name, DataType type, uint32_t from, const Places& source, uint32_t to,
                   const Places& target) {
  ElementProblem problem;
  problem.rank = static_cast<uint32_t>(target.loops.size());
  for (uint32_t d = 0; d < problem.rank; ++d) problem.sizes[d] = target.loops[d].size;
  GraphNode node;
  node.name = std::move(name);
  node.inputs = {{from}};
  node.outputs = {{to}};
  problem.inputs = {{.type = BitsOf(type)}};
  problem.outputs = {{.type = BitsOf(type)}};
  SetPlaces(source, &problem.inputs[0], &node.inputs[0].offset);
  SetPlaces(target, &problem.outputs[0], &node.outputs[0].offset);
  const Class as = ClassOf(problem.inputs[0].type);
  problem.program.Store(0, problem.program.Load(0, as), as);
  node.work = std::move(problem);
  return node;
}

}  // namespace anydml
