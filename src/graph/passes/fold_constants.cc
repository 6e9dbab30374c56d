// Runs nodes whose inputs are all known while the graph is compiled.
#include <algorithm>
#include <utility>

#include "graph/passes/cast_pairs.h"
#include "graph/passes/passes.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

// A larger result is computed faster than it is read from memory.
constexpr uint64_t kMostElements = uint64_t{1} << 20;
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

class ErrorFlag final : public DataErrorSink {
 public:
  void ReportDataError(const std::string&) override { raised_ = true; }
  bool raised() const { return raised_; }

 private:
  bool raised_ = false;
};

bool MayFold(const Graph& graph, const std::vector<GraphUse>& uses, const GraphNode& node) {
  if (node.op() == nullptr) return false;
  for (const GraphOperand& input : node.inputs) {
    if (input.present() && graph.values[input.value].home != Home::kConstant) return false;
  }
  uint64_t bytes = 0;
  for (const GraphOperand& output : node.outputs) {
    if (!output.present()) continue;
    const GraphValue& value = graph.values[output.value];
    if (value.home != Home::kTemporary || value.bytes > kMostBytes) return false;
    if (uses[output.value].writers.size() != 1) return false;  // other writers may fill parts of it
    bytes += value.bytes;
  }
  return bytes <= kMostBytes;
}

// Computes the results on the host; false if the graph's backend might give other results, or would report an
// error in the data.
bool Compute(const LowerContext& context, Graph* graph, const GraphNode& node,
             std::vector<std::vector<std::byte>>* results) {
  const bool is_host = context.device->is_host;
  const LowerContext host = is_host ? context : HostContextOf(context);
  LoweredOperator lowered;
  if (!LowerOperator(*node.op()->op, node.op()->desc, host, &lowered).ok()) return false;
  if ((!is_host && !lowered.exactness.exact()) || lowered.kernel->persistent_bytes() != 0) return false;
  if (lowered.kernel->temporary_bytes() > kMostBytes) return false;
  for (const TensorDesc* tensor : node.op()->desc.inputs()) {
    // With strides of 0, a few bytes may be read as many elements.
    if (tensor != nullptr && ElementCount(*tensor) > kMostElements) return false;
  }

  std::vector<Buffer> inputs, outputs;
  for (const GraphOperand& input : node.inputs) {
    Buffer& buffer = inputs.emplace_back();
    if (!input.present()) continue;
    auto& constant = graph->values[input.value].constant;
    buffer = {constant.data() + input.offset, constant.size() - input.offset};
  }
  for (const GraphOperand& output : node.outputs) {
    auto& result = results->emplace_back(output.present() ? graph->values[output.value].bytes : 0);
    outputs.push_back(output.present() ? Buffer{result.data(), result.size()} : Buffer{});
  }
  ErrorFlag errors;
  std::vector<std::max_align_t> scratch(lowered.kernel->temporary_bytes() / sizeof(std::max_align_t) + 1);
  KernelArguments arguments;
  arguments.inputs = inputs;
  arguments.outputs = outputs;
  arguments.temporary = {reinterpret_cast<std::byte*>(scratch.data()),
                         scratch.size() * sizeof(std::max_align_t)};
  arguments.data_errors = &errors;
  return lowered.kernel->Run(arguments).ok() && !errors.raised();
}

// Frees constants that nothing reads any more.
void DropUnread(Graph* graph) {
  const auto uses = FindUses(*graph);
  for (size_t i = 0; i < uses.size(); ++i) {
    GraphValue& value = graph->values[i];
    if (value.home != Home::kConstant || !uses[i].readers.empty()) continue;
    value.constant.clear();
    value.bytes = 0;
  }
}

}  // namespace

Status FoldConstants(const LowerContext& context, Graph* graph) {
  RemoveCastPairs(graph);
  // Whoever forces an implementation wants to run it.
  if (!context.implementation.empty()) return {};
  const auto uses = FindUses(*graph);
  for (GraphNode& node : graph->nodes) {
    std::vector<std::vector<std::byte>> results;
    if (!MayFold(*graph, uses, node) || !Compute(context, graph, node, &results)) continue;
    graph->log.push_back(node.name + ": known when the graph is compiled");
    for (size_t o = 0; o < results.size(); ++o) {
      if (!node.outputs[o].present()) continue;
      GraphValue& value = graph->values[node.outputs[o].value];
      value.home = Home::kConstant;
      value.constant = std::move(results[o]);
      node.outputs[o] = {};
    }
  }
  RemoveEmptyNodes(graph);
  DropUnread(graph);
  return {};
}

}  // namespace anydml
