// Gives tensors between convolutions, and between the operators that connect those, channels-last layouts
// (NHWC, NDHWC): the order in which convolutions read them on GPUs, and on CPUs with wide vectors. Only the
// strides of intermediates change; every operator accepts any.
#include <algorithm>
#include <array>
#include <optional>

#include "graph/passes/passes.h"
#include "graph/passes/rebind_tensors.h"
#include "ops/operator_traits.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

constexpr uint32_t kNone = ~uint32_t{0};
constexpr uint32_t kChannel = 1;  // the channels' dimension
// For a node whose tensors may change one by one, because each change looks at all of them.
constexpr size_t kMostTensors = 64;

enum Layout : uint8_t { kAsGiven, kChannelsLast };

// A node's tensor, in a value whose layout may change.
struct NodeTensor {
  uint32_t value = kNoValue;
  bool is_output = false;
  uint32_t number = 0;
  Places places = {};
  uint64_t bytes = 0;                                  // of all elements; 0 if elements share bytes
  std::array<uint32_t, 2> innermost = {kNone, kNone};  // the dimension with the smallest stride, in either
                                                       // layout
};

// Whether it matters to the node which dimension has the channels.
bool KnowsChannels(const GraphNode& node) {
  if (node.op() == nullptr) return node.elements() == nullptr;
  return node.op()->op->traits.strides != Strides::kDoNotMatter;
}

LayoutPreference PreferenceOf(const GraphNode& node, const DeviceTraits& device) {
  if (!KnowsChannels(node)) return LayoutPreference::kAgreement;
  if (node.op() == nullptr) return LayoutPreference::kAsGiven;
  return node.op()->op->traits.layout(node.op()->desc, device);
}

uint32_t Innermost(const Places& places) {
  uint32_t innermost = kNone;
  for (uint32_t d = 0; d < places.loops.size(); ++d) {
    const Places::Loop& loop = places.loops[d];
    if (loop.size == 1 || loop.stride == 0) continue;
    if (innermost == kNone || loop.stride < places.loops[innermost].stride) innermost = d;
  }
  return innermost;
}

uint64_t BytesOf(const Places& places) {
  uint64_t bytes = places.element_bytes;
  for (const Places::Loop& loop : places.loops) {
    if (loop.size > 1 && loop.stride == 0) return 0;
    bytes *= loop.size;
  }
  return bytes;
}

// The places of the same elements with the second dimension innermost; empty if `places` are not all elements
// of an image, packed, or if the order would not change.
std::optional<Places> ChannelsLast(const Places& places, uint64_t bytes) {
  const size_t rank = places.loops.size();
  if (rank < 4 || rank > 5 || places.offset != 0) return std::nullopt;
  uint64_t expected = places.element_bytes, positions = 1;
  for (size_t d = rank; d-- > 0; expected *= places.loops[d].size) {
    if (places.loops[d].size > 1 && static_cast<uint64_t>(places.loops[d].stride) != expected)
      return std::nullopt;
    if (d > kChannel) positions *= places.loops[d].size;
  }
  const uint64_t channels = places.loops[kChannel].size;
  if ((expected + 3) / 4 * 4 != bytes || channels == 1 || positions == 1) return std::nullopt;
  Places last = places;
  last.loops[kChannel].stride = static_cast<int64_t>(places.element_bytes);
  auto stride = static_cast<int64_t>(places.element_bytes * channels);
  for (size_t d = rank; d-- > 2; stride *= static_cast<int64_t>(places.loops[d].size)) {
    last.loops[d].stride = stride;
  }
  return last;
}

class LayoutChoice {
 public:
  LayoutChoice(const LowerContext& context, Graph* graph)
      : context_(context), graph_(*graph), uses_(FindUses(*graph)) {}

  void Run() {
    FindTensors();
    const auto wants = [](LayoutPreference preference) {
      return preference == LayoutPreference::kChannels || preference == LayoutPreference::kChannelsOnly;
    };
    if (std::none_of(preferences_.begin(), preferences_.end(), wants)) return;
    FindDetours();
    Improve();
    LeaveWhatDoesNotPay();
    Apply();
  }

 private:
  void FindTensors();
  void FindDetours();
  bool CanMove(uint32_t value) const;
  void Improve();
  void LeaveWhatDoesNotPay();
  void Apply();

  // The nodes that read or write the value.
  std::vector<uint32_t> UsersOf(uint32_t value) const {
    std::vector<uint32_t> users = uses_[value].writers;
    users.insert(users.end(), uses_[value].readers.begin(), uses_[value].readers.end());
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return users;
  }
  // The bytes that a node moves across the order of its other tensors.
  uint64_t CostOf(uint32_t node) const;
  uint64_t CostOf(const std::vector<uint32_t>& nodes) const {
    uint64_t cost = 0;
    for (const uint32_t node : nodes) cost += CostOf(node);
    return cost;
  }

  const LowerContext& context_;
  Graph& graph_;
  const std::vector<GraphUse> uses_;
  std::vector<LayoutPreference> preferences_;     // of nodes
  std::vector<std::vector<NodeTensor>> tensors_;  // of nodes
  std::vector<std::optional<Detour>> detours_;    // of values that may become channels-last
  std::vector<Layout> layouts_;                   // of values
};

// The places of a node's inputs or outputs in channels-last order; empty for absent tensors and for those
// whose strides cannot change.
std::vector<std::optional<Places>> PlacesOfTensors(const GraphNode& node, bool is_output) {
  const auto& operands = is_output ? node.outputs : node.inputs;
  std::vector<std::optional<Places>> places(operands.size());
  if (node.op() != nullptr) {
    GraphOperator op = *node.op();
    const auto tensors = TensorsOf(&op, is_output ? FieldKind::kOutput : FieldKind::kInput);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (tensors[i] != nullptr) places[i] = PlacesOf(*tensors[i], operands[i].offset);
    }
  } else if (const ElementProblem* const problem = node.elements()) {
    const auto& tensors = is_output ? problem->outputs : problem->inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      places[i] = PlacesOf(*problem, tensors[i], operands[i].offset);
    }
  }
  return places;
}

void LayoutChoice::FindTensors() {
  tensors_.resize(graph_.nodes.size());
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    preferences_.push_back(PreferenceOf(node, *context_.device));
    for (const bool is_output : {false, true}) {
      const auto& operands = is_output ? node.outputs : node.inputs;
      const auto places = PlacesOfTensors(node, is_output);
      for (uint32_t k = 0; k < operands.size(); ++k) {
        if (!operands[k].present() || !places[k].has_value()) continue;
        const uint32_t innermost = Innermost(*places[k]);
        tensors_[i].push_back({.value = operands[k].value,
                               .is_output = is_output,
                               .number = k,
                               .places = *places[k],
                               .bytes = BytesOf(*places[k]),
                               .innermost = {innermost, innermost}});
      }
    }
  }
}

// Whether all users of the value can take it in the other order.
bool LayoutChoice::CanMove(uint32_t value) const {
  for (const uint32_t user : UsersOf(value)) {
    if (tensors_[user].size() > kMostTensors) return false;
    GraphNode node = graph_.nodes[user];
    if (!MoveTensors(context_, graph_, *detours_[value], &node)) return false;
    if (node.op() != nullptr && !node.op()->op->check(node.op()->desc, context_.level).ok()) return false;
  }
  return true;
}

void LayoutChoice::FindDetours() {
  detours_.resize(graph_.values.size());
  layouts_.assign(graph_.values.size(), kAsGiven);
  for (const bool knows_channels : {true, false}) {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (KnowsChannels(graph_.nodes[i]) != knows_channels) continue;
      for (const NodeTensor& tensor : tensors_[i]) {
        const GraphValue& value = graph_.values[tensor.value];
        if (value.home != Home::kTemporary || detours_[tensor.value].has_value()) continue;
        const auto there = ChannelsLast(tensor.places, value.bytes);
        if (there.has_value()) {
          detours_[tensor.value] = Detour{tensor.value, tensor.value, tensor.places, *there};
        }
      }
    }
  }
  for (uint32_t v = 0; v < graph_.values.size(); ++v) {
    if (detours_[v].has_value() && CanMove(v)) layouts_[v] = kChannelsLast;
  }
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    for (NodeTensor& tensor : tensors_[i]) {
      if (layouts_[tensor.value] == kAsGiven) continue;
      const Detour& detour = *detours_[tensor.value];
      tensor.innermost[kChannelsLast] = Innermost(*Transfer(detour.here, detour.there, tensor.places));
    }
  }
}

uint64_t LayoutChoice::CostOf(uint32_t node) const {
  const auto& tensors = tensors_[node];
  const auto innermost = [&](const NodeTensor& tensor) { return tensor.innermost[layouts_[tensor.value]]; };
  uint64_t cost = 0;
  switch (preferences_[node]) {
    case LayoutPreference::kChannels:
      // Any order can be stored, though not by all kernels.
      for (const NodeTensor& tensor : tensors) {
        if (tensor.number == 0 && innermost(tensor) != kChannel)
          cost += tensor.is_output ? tensor.bytes / 2 : tensor.bytes;
        // The tensor that a tail adds is read in the order in which the output is written.
        if (!tensor.is_output && tensor.number == ConvolutionTail::kAdded &&
            innermost(tensor) != innermost(tensors.back())) {
          cost += tensor.bytes;
        }
      }
      break;
    case LayoutPreference::kChannelsOnly: {
      bool all = true;
      for (const NodeTensor& tensor : tensors) {
        if (tensor.number != 0) continue;
        all = all && innermost(tensor) == kChannel;
        cost += tensor.is_output ? tensor.bytes / 2 : tensor.bytes;
        // For kernels that pack their inputs anyway, planes are faster to pack.
        if (!tensor.is_output && innermost(tensor) == kChannel) cost += tensor.bytes / 4;
      }
      if (all) cost = 0;
      break;
    }
    case LayoutPreference::kAgreement: {
      const auto output = std::find_if(tensors.begin(), tensors.end(),
                                       [](const NodeTensor& tensor) { return tensor.is_output; });
      if (output == tensors.end()) break;
      for (const NodeTensor& tensor : tensors) {
        if (innermost(tensor) != kNone && innermost(tensor) != innermost(*output)) cost += tensor.bytes;
      }
      break;
    }
    case LayoutPreference::kAny:
      break;
    case LayoutPreference::kAsGiven:
      for (const NodeTensor& tensor : tensors) {
        if (layouts_[tensor.value] == kChannelsLast) cost += tensor.bytes;
      }
      break;
  }
  return cost;
}

// Changes one value after the other as long as that saves something.
void LayoutChoice::Improve() {
  constexpr int kMostRounds = 8;
  bool changed = true;
  for (int round = 0; round < kMostRounds && changed; ++round) {
    changed = false;
    for (uint32_t v = 0; v < layouts_.size(); ++v) {
      if (layouts_[v] == kAsGiven) continue;
      const std::vector<uint32_t> users = UsersOf(v);
      const uint64_t before = CostOf(users);
      layouts_[v] = kAsGiven;
      if (CostOf(users) < before) {
        changed = true;
      } else {
        layouts_[v] = kChannelsLast;
      }
    }
  }
}

// Values that nodes connect change together, or not at all.
void LayoutChoice::LeaveWhatDoesNotPay() {
  std::vector<bool> seen(layouts_.size());
  for (uint32_t v = 0; v < layouts_.size(); ++v) {
    if (layouts_[v] == kAsGiven || seen[v]) continue;
    std::vector<uint32_t> values = {v}, users;
    seen[v] = true;
    for (size_t next = 0; next < values.size(); ++next) {
      for (const uint32_t user : UsersOf(values[next])) {
        users.push_back(user);
        for (const NodeTensor& tensor : tensors_[user]) {
          if (layouts_[tensor.value] == kAsGiven || seen[tensor.value]) continue;
          seen[tensor.value] = true;
          values.push_back(tensor.value);
        }
      }
    }
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    const uint64_t with = CostOf(users);
    for (const uint32_t value : values) layouts_[value] = kAsGiven;
    if (CostOf(users) <= with) continue;
    for (const uint32_t value : values) layouts_[value] = kChannelsLast;
  }
}

void LayoutChoice::Apply() {
  for (uint32_t v = 0; v < layouts_.size(); ++v) {
    if (layouts_[v] == kAsGiven) continue;
    // cannot fail: it was tried before
    for (const uint32_t user : UsersOf(v)) MoveTensors(context_, graph_, *detours_[v], &graph_.nodes[user]);
    graph_.log.push_back(StrCat("layouts: channels are neighbours in what ",
                                graph_.nodes[uses_[v].writers[0]].name, " writes"));
  }
}

}  // namespace

Status ChooseLayouts(const LowerContext& context, Graph* graph) {
  LayoutChoice(context, graph).Run();
  return {};
}

}  // namespace anydml
