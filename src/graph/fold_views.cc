// Nodes that only move elements: whoever reads what they write reads what they read, or whoever writes what
// they read writes what they write.
#include <algorithm>
#include <utility>

#include "graph/passes.h"
#include "graph/redirect.h"
#include "ops/element/operators.h"
#include "ops/move/maps.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

OperatorType TypeOf(const GraphNode& node) {
  return node.op() == nullptr ? OperatorType{} : static_cast<OperatorType>(node.op()->op->type);
}

// Every step-th element from `start` on, `size` of them.
void Slice(uint64_t size, int64_t start, int64_t step, int64_t* offset, Places::Loop* loop) {
  *offset += start * loop->stride;
  *loop = {size, size == 1 ? 0 : step * loop->stride};
}

// Parts of a whole, one after the other along an axis.
std::vector<Places> PartsOf(const Places& whole, uint32_t axis, std::span<const TensorDesc> parts) {
  std::vector<Places> places;
  int64_t start = 0;
  for (const TensorDesc& part : parts) {
    places.push_back(whole);
    Slice(part.sizes[axis], start, 1, &places.back().offset, &places.back().loops[axis]);
    start += part.sizes[axis];
  }
  return places;
}

Places WindowOf(const SliceDesc& slice, Places places) {
  for (uint32_t d = 0; d < slice.input.rank; ++d) {
    Slice(slice.output.sizes[d], slice.offsets[d], slice.strides[d], &places.offset, &places.loops[d]);
  }
  return places;
}

Places WindowOf(const Slice1Desc& slice, Places places) {
  for (uint32_t d = 0; d < slice.input.rank; ++d) {
    const int32_t step = slice.input_window_strides[d];
    const int64_t start = WindowStart(slice.input_window_offsets[d], slice.input_window_sizes[d], step);
    Slice(slice.output.sizes[d], start, step, &places.offset, &places.loops[d]);
  }
  return places;
}

// Of a node that only moves elements of its input: where each output's are there. Empty for others.
std::vector<Places> ViewsOf(const GraphNode& node) {
  if (node.op() == nullptr) return {};
  const OperatorDesc& desc = node.op()->desc;
  const auto input = [&] { return PlacesOf(*desc.inputs()[0], node.inputs[0].offset); };
  switch (TypeOf(node)) {
    case OperatorType::kElementWiseIdentity:
    case OperatorType::kActivationIdentity:
    case OperatorType::kCast:
      if (!IsMove(BuildElementProblem(desc))) return {};
      return {input()};
    case OperatorType::kSlice:
      return {WindowOf(SliceDesc::From(desc), input())};
    case OperatorType::kSlice1:
      return {WindowOf(Slice1Desc::From(desc), input())};
    case OperatorType::kSplit: {
      const auto split = SplitDesc::From(desc);
      return PartsOf(input(), split.axis, split.outputs);
    }
    default:
      return {};
  }
}

class ViewFolding {
 public:
  ViewFolding(const LowerContext& context, Graph* graph) : context_(context), graph_(*graph) {}

  void Run() {
    for (size_t i = 0; i < graph_.nodes.size();) i = FoldView(i);
    for (size_t i = 0; i < graph_.nodes.size();) i = FoldJoin(i);
  }

 private:
  // Both return the index of the node that comes next.
  size_t FoldView(size_t i);
  size_t FoldJoin(size_t i);
  bool ReadSource(size_t i, const Detour& detour);
  // By the nodes from `first` up to `end`.
  bool IsRead(uint32_t value, size_t first, size_t end) const {
    return Has(
        value, first, end, [](const GraphNode& node) -> auto& { return node.inputs; });
  }
  bool IsWritten(uint32_t value, size_t first, size_t end) const {
    return Has(
        value, first, end, [](const GraphNode& node) -> auto& { return node.outputs; });
  }
  template <typename Operands>
  bool Has(uint32_t value, size_t first, size_t end, const Operands& operands) const {
    for (size_t i = first; i < end; ++i) {
      for (const GraphOperand& operand : operands(graph_.nodes[i])) {
        if (operand.value == value) return true;
      }
    }
    return false;
  }
  size_t Replace(size_t i, std::vector<GraphNode> nodes);

  const LowerContext& context_;
  Graph& graph_;
};

size_t ViewFolding::Replace(size_t i, std::vector<GraphNode> nodes) {
  const auto at = graph_.nodes.erase(graph_.nodes.begin() + static_cast<ptrdiff_t>(i));
  graph_.nodes.insert(at, std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  return i + nodes.size();  // moved from, but still as many
}

// Whether nobody reads any more what node i writes.
bool ViewFolding::ReadSource(size_t i, const Detour& detour) {
  if (graph_.values[detour.from].home != Home::kTemporary) return false;
  // Attention reads what is in a graph output already, and writes there later.
  const size_t end = graph_.nodes.size();
  if (IsWritten(detour.to, i, end) || IsWritten(detour.from, 0, i) || IsWritten(detour.from, i + 1, end)) {
    return false;
  }
  bool all = true;
  for (size_t r = 0; r < graph_.nodes.size(); ++r) {
    if (r == i || !IsRead(detour.from, r, r + 1)) continue;
    GraphNode reader = graph_.nodes[r];
    if (Redirect(context_, graph_, detour, &reader)) {
      graph_.nodes[r] = std::move(reader);
    } else {
      all = false;
    }
  }
  return all;
}

size_t ViewFolding::FoldView(size_t i) {
  const std::vector<Places> views = ViewsOf(graph_.nodes[i]);
  if (views.empty() || views[0].element_bytes == 0) return i + 1;
  const GraphNode node = graph_.nodes[i];  // as it was: what follows changes nodes
  const auto tensors = node.op()->desc.outputs();
  const uint32_t source = node.inputs[0].value;
  const size_t end = graph_.nodes.size();
  std::vector<GraphNode> copies;
  for (size_t o = 0; o < views.size(); ++o) {
    const GraphOperand& output = node.outputs[o];
    const Places written = PlacesOf(*tensors[o], output.offset);
    if (ReadSource(i, {output.value, source, written, views[o]})) continue;
    // Perhaps the graph output is written by whoever writes the source.
    if (views.size() == 1 && graph_.values[source].home == Home::kTemporary && !IsWritten(source, i, end) &&
        !IsRead(output.value, 0, i) && !IsWritten(output.value, 0, i) &&
        RedirectAll(context_, {source, output.value, views[o], written}, static_cast<uint32_t>(i), &graph_)) {
      continue;
    }
    copies.push_back(MakeCopy(StrCat("part ", o, " of ", node.name), tensors[o]->type, source, views[o],
                              output.value, written));
  }
  if (copies.size() == views.size()) return i + 1;
  graph_.log.push_back(
      copies.empty() ? StrCat(node.name, ": a view, nothing is moved")
                     : StrCat(node.name, ": a view but for ", copies.size(), " of ", views.size(), " parts"));
  return Replace(i, std::move(copies));
}

size_t ViewFolding::FoldJoin(size_t i) {
  if (TypeOf(graph_.nodes[i]) != OperatorType::kJoin) return i + 1;
  const GraphNode node = graph_.nodes[i];
  const auto join = JoinDesc::From(node.op()->desc);
  const uint32_t target = node.outputs[0].value;
  const auto parts = PartsOf(PlacesOf(join.output, node.outputs[0].offset), join.axis, join.inputs);
  if (parts[0].element_bytes == 0) return i + 1;
  std::vector<GraphNode> copies;
  for (size_t k = 0; k < parts.size(); ++k) {
    const GraphOperand& input = node.inputs[k];
    const auto same = [&](const GraphOperand& other) { return other.value == input.value; };
    const Places read = PlacesOf(join.inputs[k], input.offset);
    if (graph_.values[input.value].home == Home::kTemporary &&
        std::count_if(node.inputs.begin(), node.inputs.end(), same) == 1 &&
        RedirectAll(context_, {input.value, target, read, parts[k]}, static_cast<uint32_t>(i), &graph_)) {
      continue;
    }
    copies.push_back(MakeCopy(StrCat("part ", k, " of ", node.name), join.output.type, input.value, read,
                              target, parts[k]));
  }
  if (copies.size() == parts.size()) return i + 1;
  graph_.log.push_back(StrCat(node.name, ": ", parts.size() - copies.size(), " of ", parts.size(),
                              " parts are written where they are joined"));
  return Replace(i, std::move(copies));
}

}  // namespace

Status FoldViews(const LowerContext& context, Graph* graph) {
  ViewFolding(context, graph).Run();
  return {};
}

}  // namespace anydml
