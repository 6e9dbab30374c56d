// MULTIHEAD_ATTENTION1 with PastSequenceLengths finds the past in its present outputs, which it updates in
// place. In a graph these must be the client's memory.
#include "graph/graph.h"
#include "graph/passes/passes.h"

namespace anydml {
namespace {

bool IsOperator(const GraphNode& node, OperatorType type) {
  return node.op() != nullptr && node.op()->desc.schema->type == static_cast<uint32_t>(type);
}

bool ReadsPresent(const GraphNode& node) {
  return IsOperator(node, OperatorType::kMultiheadAttention1) &&
         node.op()->desc.tensor("PastSequenceLengthsTensor") != nullptr;
}

// The cast in the other direction.
GraphNode Reversed(const GraphNode& cast) {
  GraphNode reversed = cast;
  const TensorDesc input = *cast.op()->desc.tensor("InputTensor");
  const TensorDesc output = *cast.op()->desc.tensor("OutputTensor");
  for (size_t i = 0; i < reversed.op()->desc.fields.size(); ++i) {
    const FieldKind kind = reversed.op()->desc.schema->fields[i].kind;
    reversed.op()->desc.fields[i] = kind == FieldKind::kInput ? output : input;
  }
  std::swap(reversed.inputs, reversed.outputs);
  reversed.name = StrCat("the past, through the reverse of ", cast.name);
  return reversed;
}

}  // namespace

// Clients that keep the past as FLOAT16 put a CAST between the present output and the graph output and expect
// it to vanish. The past must then go through the reverse cast first.
Status ConnectPresentOutputs(Graph* graph) {
  for (uint32_t i = 0; i < graph->nodes.size(); ++i) {
    if (!ReadsPresent(graph->nodes[i])) continue;
    for (uint32_t o = 1; o < graph->nodes[i].outputs.size(); ++o) {
      const GraphOperand present = graph->nodes[i].outputs[o];
      if (!present.present() || graph->values[present.value].home == GraphValue::Home::kOutput) continue;
      const GraphUse use = FindUses(*graph)[present.value];
      const GraphNode* const reader = use.readers.size() == 1 ? &graph->nodes[use.readers[0]] : nullptr;
      if (reader == nullptr || !IsOperator(*reader, OperatorType::kCast) ||
          graph->values[reader->outputs[0].value].home != GraphValue::Home::kOutput) {
        return InvalidArgument(
            graph->nodes[i].name, ": ", o == 1 ? "OutputPresentKeyTensor" : "OutputPresentValueTensor",
            " is read as well as written; it must lead to a graph output, directly or through "
            "one CAST that nobody else shares");
      }
      GraphNode past = Reversed(*reader);
      // A value of its own for the client's contents before anything is written.
      const GraphValue written = graph->values[past.inputs[0].value];
      past.inputs[0].value = static_cast<uint32_t>(graph->values.size());
      graph->values.push_back({.home = written.home, .index = written.index, .bytes = written.bytes});
      graph->nodes.insert(graph->nodes.begin() + i, std::move(past));
      ++i;
    }
  }
  return {};
}

}  // namespace anydml
