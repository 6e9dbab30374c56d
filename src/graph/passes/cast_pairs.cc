#include "graph/passes/cast_pairs.h"

#include <algorithm>
#include <utility>

#include "graph/passes/passes.h"
#include "graph/passes/view.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// The number of bits within which a type represents every integer exactly.
struct Digits {
  bool is_float;
  bool is_signed;
  uint32_t count;
};

Digits DigitsOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {true, true, 11};
    case DataType::kFloat32:
      return {true, true, 24};
    case DataType::kFloat64:
      return {true, true, 53};
    case DataType::kInt4:
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
      return {false, true, BitSize(type) - 1};
    default:
      return {false, false, BitSize(type)};
  }
}

bool HasAllValuesOf(DataType wide, DataType narrow) {
  const Digits a = DigitsOf(wide), b = DigitsOf(narrow);
  return (a.is_float || !b.is_float) && (a.is_signed || !b.is_signed) && a.count >= b.count;
}

bool IsCast(const GraphNode& node) {
  return node.op() != nullptr && node.op()->op->type == static_cast<uint32_t>(OperatorType::kCast);
}

// As if each element were one byte, since the two sides of a CAST have elements of different sizes.
Places InElements(const TensorDesc& tensor, uint64_t offset) {
  TensorDesc bytes = tensor;
  bytes.type = DataType::kUInt8;
  return PlacesOf(bytes, offset * 8 / BitSize(tensor.type));
}

// Redirects `second` to read the input of `first`.
bool Shorten(const Graph& graph, const GraphNode& first, GraphNode* second) {
  const auto from = CastDesc::From(first.op()->desc), to = CastDesc::From(second->op()->desc);
  if (from.input.type != to.output.type || from.output.type != to.input.type) return false;
  // A CAST between floating-point types canonicalises NaNs.
  if (DigitsOf(from.input.type).is_float) return false;
  if (BitSize(from.input.type) < 8 || !HasAllValuesOf(from.output.type, from.input.type)) return false;
  const auto places = Transfer(InElements(from.output, first.outputs[0].offset),
                               InElements(from.input, first.inputs[0].offset),
                               InElements(to.input, second->inputs[0].offset));
  TensorDesc input = to.input;
  input.type = DataType::kUInt8;
  uint64_t offset;
  if (!places.has_value() || !SetPlaces(*places, &input, &offset)) return false;
  input.type = from.input.type;
  input.total_bytes = MinimumTotalBytes(input);
  input.owned_by_dml = from.input.owned_by_dml;
  offset *= BitSize(input.type) / 8;
  const GraphOperand operand{first.inputs[0].value, offset};
  const uint64_t bytes = graph.values[operand.value].bytes;
  if (offset > bytes || input.total_bytes > bytes - offset) return false;

  const auto type = static_cast<uint32_t>(OperatorType::kElementWiseIdentity);
  OperatorDesc desc{FindOperator(type), {input, to.output, std::monostate{}}};
  second->work = GraphOperator{FindImplementation(type), std::move(desc)};
  second->inputs = {operand};
  return true;
}

}  // namespace

void RemoveCastPairs(Graph* graph) {
  const auto uses = FindUses(*graph);
  std::vector<size_t> readers(uses.size());
  for (size_t i = 0; i < uses.size(); ++i) readers[i] = uses[i].readers.size();
  for (GraphNode& node : graph->nodes) {
    if (!IsCast(node)) continue;
    const uint32_t between = node.inputs[0].value;
    if (uses[between].writers.size() != 1) continue;
    GraphNode& first = graph->nodes[uses[between].writers[0]];
    if (!IsCast(first) || !Shorten(*graph, first, &node)) continue;
    graph->log.push_back(StrCat(first.name, " and ", node.name, ": the second undoes the first"));
    ++readers[node.inputs[0].value];
    if (--readers[between] == 0 && graph->values[between].home == GraphValue::Home::kTemporary) {
      --readers[first.inputs[0].value];
      first.outputs[0] = {};
    }
  }
  RemoveEmptyNodes(graph);
}

}  // namespace anydml
