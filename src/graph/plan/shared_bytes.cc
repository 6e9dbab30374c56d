#include "graph/plan/shared_bytes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/passes/rebind_tensors.h"
#include "graph/plan/lower_node.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

constexpr uint32_t kNoWriter = ~uint32_t{0};
// The limit of operands that the search visits. No real graph comes near; one that is made to be slow is not
// searched further.
constexpr size_t kMostLooks = 1 << 20;

// Searches backwards from an output to the nodes that lead to it.
class SharedSearch {
 public:
  explicit SharedSearch(const Graph& graph)
      : graph_(graph),
        writers_(graph.values.size(), kNoWriter),
        reads_(graph.values.size()),
        seen_(graph.nodes.size(), kNoWriter) {
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      for (const GraphOperand& input : graph.nodes[i].inputs) {
        if (input.present()) ++reads_[input.value];
      }
      for (const GraphOperand& output : graph.nodes[i].outputs) {
        if (output.present()) writers_[output.value] = i;
      }
    }
  }

  // Adds the inputs whose readers all lead to the output's writer, or are it.
  void Find(uint32_t output, std::vector<SharedBytes>* shared) {
    const uint32_t last = writers_[output];
    if (last == kNoWriter) return;
    std::vector<uint32_t> next = {last};
    std::map<uint32_t, uint32_t> reads;  // of graph inputs: reads by nodes that lead to the output
    seen_[last] = output;
    while (!next.empty() && looks_ < kMostLooks) {
      const GraphNode& node = graph_.nodes[next.back()];
      next.pop_back();
      for (const GraphOperand& input : node.inputs) {
        if (!input.present()) continue;
        ++looks_;
        if (graph_.values[input.value].home == Home::kInput) ++reads[input.value];
        const uint32_t writer = writers_[input.value];
        if (writer == kNoWriter || seen_[writer] == output) continue;
        seen_[writer] = output;
        next.push_back(writer);
      }
    }
    if (!next.empty()) return;
    for (const auto& [input, count] : reads) {
      if (count == reads_[input] && MayBeBoundTo(input, output)) shared->push_back(Make(input, output));
    }
  }

 private:
  bool MayBeBoundTo(uint32_t input, uint32_t output) const {
    const GraphInput& from = graph_.inputs[graph_.values[input].index];
    return !from.owned && from.bytes == graph_.outputs[graph_.values[output].index].bytes;
  }

  SharedBytes Make(uint32_t from, uint32_t to) const {
    SharedBytes pair = {graph_.values[from].index, graph_.values[to].index, nullptr};
    const GraphNode& writer = graph_.nodes[writers_[to]];
    const auto is_input = [&](const GraphOperand& operand) { return operand.value == from; };
    if (std::none_of(writer.inputs.begin(), writer.inputs.end(), is_input)) return pair;
    // Keep only the pair among its operands.
    pair.writer = std::make_unique<GraphNode>(writer);
    for (GraphOperand& operand : pair.writer->inputs) operand.value = operand.value == from ? 0 : kNoValue;
    for (GraphOperand& operand : pair.writer->outputs) operand.value = operand.value == to ? 0 : kNoValue;
    return pair;
  }

  const Graph& graph_;
  std::vector<uint32_t> writers_;  // of values
  std::vector<uint32_t> reads_;    // of values: number of operands that read it
  std::vector<uint32_t> seen_;     // of nodes: the output for which it was last visited
  size_t looks_ = 0;
};

// Whether a writer that also reads the input can run in place.
bool MayShareBytes(SharedBytes& shared, const LowerContext& context) {
  if (!shared.writer) return true;
  LoweredOperator lowered;
  if (!LowerNode(*shared.writer, context, &lowered).ok()) return false;
  const auto &inputs = shared.writer->inputs, &outputs = shared.writer->outputs;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    for (uint32_t o = 0; o < outputs.size(); ++o) {
      if (!inputs[i].present() || !outputs[o].present()) continue;
      if (inputs[i].offset != 0 || outputs[o].offset != 0) return false;
      const auto& pairs = lowered.in_place;
      if (std::find(pairs.begin(), pairs.end(), std::pair(i, o)) == pairs.end()) return false;
    }
  }
  return true;
}

// Copies a value of `bytes` bytes, a multiple of 4.
GraphNode MakeByteCopy(std::string name, uint64_t bytes) {
  Places places;
  places.loops = {{bytes / 4, 4}};
  places.element_bytes = 4;
  return MakeCopy(std::move(name), DataType::kUInt32, 0, places, 0, places);
}

}  // namespace

std::vector<SharedBytes> FindSharedBytes(const Graph& graph) {
  std::vector<SharedBytes> shared;
  SharedSearch search(graph);
  for (uint32_t value = 0; value < graph.values.size(); ++value) {
    if (graph.values[value].home == Home::kOutput) search.Find(value, &shared);
  }
  return shared;
}

Status CopySharedInputs(const OrderedGraph& ordered, const LowerContext& context,
                        std::vector<SharedBytes>* shared, LoweredOperator* out,
                        std::vector<GraphKernel::CopiedInput>* copies) {
  constexpr uint64_t kMost = uint64_t{1} << 32;  // below the limit of elements in a tensor
  for (SharedBytes& pair : *shared) {
    const auto [input, output] = std::pair(pair.input, pair.output);
    if (ordered.input_ends[input] <= ordered.output_begins[output]) continue;
    const auto& pairs = out->in_place;
    if (std::find(pairs.begin(), pairs.end(), std::pair(input, output)) != pairs.end()) continue;
    const uint64_t bytes = ordered.graph.inputs[input].bytes;
    if (bytes >= kMost || !MayShareBytes(pair, context)) continue;
    GraphNode copy = MakeByteCopy(StrCat("a copy of graph input ", input), bytes);
    LoweredOperator lowered;
    ANYDML_RETURN_IF_ERROR(LowerNode(copy, context, &lowered));
    if (lowered.kernel->temporary_bytes() != 0 || lowered.kernel->persistent_bytes() != 0) continue;
    copies->push_back({input, output, ordered.output_begins[output], std::move(lowered.kernel), 0, bytes});
    out->in_place.emplace_back(input, output);
  }
  std::stable_sort(copies->begin(), copies->end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  return {};
}

std::vector<size_t> AddLifetimes(std::span<const GraphKernel::CopiedInput> copies,
                                 std::span<const uint32_t> input_ends, std::vector<Lifetime>* lifetimes) {
  constexpr uint64_t kCopyAlignment = 64;  // whole cache lines
  std::vector<size_t> places;
  for (const GraphKernel::CopiedInput& copy : copies) {
    const auto same = std::find_if(copies.begin(), copies.end(),
                                   [&](const auto& other) { return other.input == copy.input; });
    const auto first = static_cast<size_t>(same - copies.begin());
    if (first < places.size()) {
      places.push_back(places[first]);
      continue;
    }
    places.push_back(lifetimes->size());
    lifetimes->push_back({copy.bytes, kCopyAlignment, copy.step, input_ends[copy.input] - 1});
  }
  return places;
}

std::string Explain(const GraphKernel::CopiedInput& copy) {
  return StrCat("graph input ", copy.input, " is copied (", copy.bytes,
                " bytes) in runs where it is bound to the ", "bytes of graph output ", copy.output);
}

}  // namespace anydml
