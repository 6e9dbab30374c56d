// Removes nodes that only move elements: their readers read the source instead, or the writer of the source
// writes to their output instead.
#include <algorithm>
#include <utility>

#include "graph/passes/passes.h"
#include "graph/passes/rebind_tensors.h"
#include "ops/element/operators.h"
#include "ops/move/maps.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

OperatorType TypeOf(const GraphNode& node) {
  return node.op() == nullptr ? OperatorType{} : static_cast<OperatorType>(node.op()->op->type);
}

// A slice: `size` elements, every step-th one from `start` on.
void Slice(uint64_t size, int64_t start, int64_t step, int64_t* offset, Places::Loop* loop) {
  *offset += start * loop->stride;
  *loop = {size, size == 1 ? 0 : step * loop->stride};
}

// The parts of a whole that follow each other along an axis.
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

// For a node that only moves elements of its input: the places in the input of each output's elements. Empty
// for other nodes.
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

// Nodes keep their indices during folding; copies are appended and sorted in at the end.
class ViewFolding {
 public:
  ViewFolding(const LowerContext& context, Graph* graph)
      : context_(context), graph_(*graph), uses_(FindUses(*graph)), copies_(graph->nodes.size()) {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) position_.push_back(i);
  }

  void Run() {
    const auto count = static_cast<uint32_t>(graph_.nodes.size());
    for (uint32_t i = 0; i < count; ++i) FoldView(i);
    for (uint32_t i = 0; i < count; ++i) FoldJoin(i);
    PutInOrder();
  }

 private:
  struct Replacement {
    bool is_replaced = false;
    std::vector<uint32_t> by;  // copies
  };

  void FoldView(uint32_t i);
  void FoldJoin(uint32_t i);
  bool ReadSource(uint32_t i, const Detour& detour);
  bool RedirectUsers(uint32_t except, const Detour& detour);
  void Replace(uint32_t i, std::vector<GraphNode> nodes);
  void PutInOrder();

  // Whether `nodes` has one before node i; and whether it has one from i on.
  bool AnyBefore(const std::vector<uint32_t>& nodes, uint32_t i) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return position_[node] < i; });
  }
  bool AnyFrom(const std::vector<uint32_t>& nodes, uint32_t i) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return position_[node] >= i; });
  }
  void AddUses(uint32_t number) {
    const GraphNode& node = graph_.nodes[number];
    for (const GraphOperand& input : node.inputs) {
      if (input.present()) Add(&uses_[input.value].readers, number);
    }
    for (const GraphOperand& output : node.outputs) {
      if (output.present()) Add(&uses_[output.value].writers, number);
    }
  }
  void RemoveUses(uint32_t number) {
    const GraphNode& node = graph_.nodes[number];
    for (const GraphOperand& input : node.inputs) {
      if (input.present()) std::erase(uses_[input.value].readers, number);
    }
    for (const GraphOperand& output : node.outputs) {
      if (output.present()) std::erase(uses_[output.value].writers, number);
    }
  }
  static void Add(std::vector<uint32_t>* nodes, uint32_t node) {
    if (std::find(nodes->begin(), nodes->end(), node) == nodes->end()) nodes->push_back(node);
  }

  const LowerContext& context_;
  Graph& graph_;
  std::vector<GraphUse> uses_;       // kept up to date, in no order
  std::vector<uint32_t> position_;   // of each node; a copy has the position of the node that it replaces
  std::vector<Replacement> copies_;  // of the original nodes
};

void ViewFolding::Replace(uint32_t i, std::vector<GraphNode> nodes) {
  RemoveUses(i);
  copies_[i].is_replaced = true;
  for (GraphNode& node : nodes) {
    const auto number = static_cast<uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
    position_.push_back(i);
    copies_[i].by.push_back(number);
    AddUses(number);
  }
}

void ViewFolding::PutInOrder() {
  std::vector<GraphNode> nodes;
  for (uint32_t i = 0; i < copies_.size(); ++i) {
    if (!copies_[i].is_replaced) nodes.push_back(std::move(graph_.nodes[i]));
    for (const uint32_t copy : copies_[i].by) nodes.push_back(std::move(graph_.nodes[copy]));
  }
  graph_.nodes = std::move(nodes);
}

// Redirects all users of the value that the detour avoids, except node `except`; or none of them.
bool ViewFolding::RedirectUsers(uint32_t except, const Detour& detour) {
  std::vector<uint32_t> users;
  for (const auto* nodes : {&uses_[detour.from].readers, &uses_[detour.from].writers}) {
    for (const uint32_t node : *nodes) {
      if (node != except) Add(&users, node);
    }
  }
  if (!RedirectAll(context_, detour, users, &graph_)) return false;
  std::erase_if(uses_[detour.from].readers, [&](uint32_t node) { return node != except; });
  std::erase_if(uses_[detour.from].writers, [&](uint32_t node) { return node != except; });
  for (const uint32_t user : users) AddUses(user);
  return true;
}

// Redirects the readers of node i's output to its source; true if none remain.
bool ViewFolding::ReadSource(uint32_t i, const Detour& detour) {
  if (graph_.values[detour.from].home != Home::kTemporary) return false;
  // Attention reads the old contents of a graph output and overwrites them later.
  const auto& writers = uses_[detour.from].writers;
  const auto is_other = [&](uint32_t node) { return node != i; };
  if (AnyFrom(uses_[detour.to].writers, i) || std::any_of(writers.begin(), writers.end(), is_other)) {
    return false;
  }
  const std::vector<uint32_t> readers = std::move(uses_[detour.from].readers);
  std::vector<uint32_t> left;
  for (const uint32_t r : readers) {
    GraphNode reader = graph_.nodes[r];
    if (r != i && Redirect(context_, graph_, detour, &reader)) {
      graph_.nodes[r] = std::move(reader);
      AddUses(r);
    } else {
      left.push_back(r);
    }
  }
  uses_[detour.from].readers = std::move(left);
  return std::none_of(uses_[detour.from].readers.begin(), uses_[detour.from].readers.end(), is_other);
}

void ViewFolding::FoldView(uint32_t i) {
  const std::vector<Places> views = ViewsOf(graph_.nodes[i]);
  if (views.empty() || views[0].element_bytes == 0) return;
  const GraphNode node = graph_.nodes[i];  // a copy, because the following steps change nodes
  const auto tensors = node.op()->desc.outputs();
  const uint32_t source = node.inputs[0].value;
  std::vector<GraphNode> copies;
  for (size_t o = 0; o < views.size(); ++o) {
    const GraphOperand& output = node.outputs[o];
    const Places written = PlacesOf(*tensors[o], output.offset);
    if (ReadSource(i, {output.value, source, written, views[o]})) continue;
    // Otherwise the writer of the source may write to the graph output directly.
    if (views.size() == 1 && graph_.values[source].home == Home::kTemporary &&
        !AnyFrom(uses_[source].writers, i) && !AnyBefore(uses_[output.value].readers, i) &&
        !AnyBefore(uses_[output.value].writers, i) &&
        RedirectUsers(i, {source, output.value, views[o], written})) {
      continue;
    }
    copies.push_back(MakeCopy(StrCat("part ", o, " of ", node.name), tensors[o]->type, source, views[o],
                              output.value, written));
  }
  if (copies.size() == views.size()) return;
  graph_.log.push_back(
      copies.empty() ? StrCat(node.name, ": a view, nothing is moved")
                     : StrCat(node.name, ": a view but for ", copies.size(), " of ", views.size(), " parts"));
  Replace(i, std::move(copies));
}

void ViewFolding::FoldJoin(uint32_t i) {
  if (copies_[i].is_replaced || TypeOf(graph_.nodes[i]) != OperatorType::kJoin) return;
  const GraphNode node = graph_.nodes[i];
  const auto join = JoinDesc::From(node.op()->desc);
  const uint32_t target = node.outputs[0].value;
  const auto parts = PartsOf(PlacesOf(join.output, node.outputs[0].offset), join.axis, join.inputs);
  if (parts[0].element_bytes == 0) return;
  std::vector<GraphNode> copies;
  for (size_t k = 0; k < parts.size(); ++k) {
    const GraphOperand& input = node.inputs[k];
    const auto same = [&](const GraphOperand& other) { return other.value == input.value; };
    const Places read = PlacesOf(join.inputs[k], input.offset);
    if (graph_.values[input.value].home == Home::kTemporary &&
        std::count_if(node.inputs.begin(), node.inputs.end(), same) == 1 &&
        RedirectUsers(i, {input.value, target, read, parts[k]})) {
      continue;
    }
    copies.push_back(MakeCopy(StrCat("part ", k, " of ", node.name), join.output.type, input.value, read,
                              target, parts[k]));
  }
  if (copies.size() == parts.size()) return;
  graph_.log.push_back(StrCat(node.name, ": ", parts.size() - copies.size(), " of ", parts.size(),
                              " parts are written where they are joined"));
  Replace(i, std::move(copies));
}

}  // namespace

Status FoldViews(const LowerContext& context, Graph* graph) {
  ViewFolding(context, graph).Run();
  return {};
}

}  // namespace anydml
