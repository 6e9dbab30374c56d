// Joins chains and trees of element-wise operators into one element program, which stores only the results
// that other nodes read.
#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>

#include "graph/passes/common_loops.h"
#include "graph/passes/join_elements.h"
#include "graph/passes/passes.h"
#include "ops/element/operators.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// Whether neighbouring elements are found along the same loops.
bool LieInSameOrder(const ElementProblem& problem, const ElementOperand& a, const ElementOperand& b) {
  for (uint32_t d = 0; d < problem.rank; ++d) {
    for (uint32_t e = d + 1; e < problem.rank; ++e) {
      if ((a.strides[d] < a.strides[e]) != (b.strides[d] < b.strides[e])) return false;
    }
  }
  return true;
}

class Fusing {
 public:
  Fusing(const LowerContext& context, Graph* graph)
      : context_(context), graph_(*graph), uses_(FindUses(*graph)) {}

  void Run() {
    FindFollowers();
    MakeGroups();
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      if (groups_[node].members.empty()) continue;
      for (const GraphOperand& input : graph_.nodes[node].inputs) {
        if (input.present()) TryToJoin(input.value, node);
      }
    }
    Rewrite();
  }

 private:
  struct Member {
    uint32_t node;
    ElementWork work;
  };
  struct Group {
    std::vector<uint32_t> nodes;  // ascending; empty: the group was joined to another
    std::vector<Member> members;  // the same nodes, if they are element-wise
    ElementWork joined;           // of a group with more than one member
  };

  void FindFollowers();
  void MakeGroups();
  void TryToJoin(uint32_t value, uint32_t reader);
  bool IsBetween(uint32_t first, uint32_t second, uint32_t newest);
  std::optional<ElementWork> Join(const Group& group) const;
  std::vector<const ElementWork*> InOrder(const Group& group) const;
  bool IsTaken(const ElementProblem& problem) const;
  std::vector<uint32_t> OrderOfGroups() const;
  void Rewrite();

  static const Member* FindMember(const Group& group, uint32_t node) {
    for (const Member& member : group.members) {
      if (member.node == node) return &member;
    }
    return nullptr;
  }

  const LowerContext& context_;
  Graph& graph_;
  const std::vector<GraphUse> uses_;
  std::vector<std::vector<uint32_t>> followers_;  // for each node: nodes that must run later
  std::vector<Group> groups_;                     // initially one per node
  std::vector<uint32_t> group_of_;
};

// Users of a value stay on their side of its writers, and writers of one value keep their order. Orders that
// follow from other followers are omitted: a value with many writers would need one for each pair.
void Fusing::FindFollowers() {
  followers_.resize(graph_.nodes.size());
  for (const GraphUse& use : uses_) {
    std::vector<uint32_t> users;
    std::set_union(use.readers.begin(), use.readers.end(), use.writers.begin(), use.writers.end(),
                   std::back_inserter(users));
    std::vector<uint32_t> latest;  // the latest writer, then the readers of its result
    bool is_written = false;
    for (const uint32_t user : users) {
      if (!std::binary_search(use.writers.begin(), use.writers.end(), user)) {
        if (is_written) followers_[latest[0]].push_back(user);
        latest.push_back(user);
        continue;
      }
      // All readers are between the two writers; if there are none, the second writer follows the first.
      const size_t first = is_written && latest.size() > 1 ? 1 : 0;
      for (size_t i = first; i < latest.size(); ++i) followers_[latest[i]].push_back(user);
      latest = {user};
      is_written = true;
    }
  }
}

void Fusing::MakeGroups() {
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    Group& group = groups_.emplace_back();
    group.nodes = {i};
    group_of_.push_back(i);
    const GraphOperator* const op = node.op();
    if (op != nullptr ? !IsElementWise(op->desc) : node.elements() == nullptr) continue;
    ElementWork work = {op != nullptr ? BuildElementProblem(op->desc) : *node.elements(), node.inputs,
                        node.outputs};
    Simplify(&work.problem);
    group.members.push_back({i, std::move(work)});
  }
}

// Whether a node outside depends on one of the two groups and the other depends on it. Nodes after `newest`
// are not in joined groups yet and lead only to such nodes.
bool Fusing::IsBetween(uint32_t first, uint32_t second, uint32_t newest) {
  std::vector<char> seen(groups_.size());
  std::vector<uint32_t> open = {first, second};
  while (!open.empty()) {
    const uint32_t group = open.back();
    open.pop_back();
    for (const uint32_t node : groups_[group].nodes) {
      for (const uint32_t follower : followers_[node]) {
        const uint32_t next = group_of_[follower];
        if (next == first || next == second) {
          if (group != first && group != second) return true;
        } else if (follower < newest && seen[next] == 0) {
          seen[next] = 1;
          open.push_back(next);
        }
      }
    }
  }
  return false;
}

// Joins the groups of the value's writer and of a reader, if possible.
void Fusing::TryToJoin(uint32_t value, uint32_t reader) {
  if (uses_[value].writers.size() != 1) return;
  const uint32_t writer = uses_[value].writers[0];
  if (writer >= reader) return;  // it reads the client's data
  const uint32_t first = group_of_[writer], second = group_of_[reader];
  if (first == second || groups_[first].members.empty()) return;
  const ElementWork& from = FindMember(groups_[first], writer)->work;
  const ElementWork& to = FindMember(groups_[second], reader)->work;
  const auto is_value = [&](const GraphOperand& operand) { return operand.value == value; };
  const auto output = std::find_if(from.outputs.begin(), from.outputs.end(), is_value) - from.outputs.begin();
  const auto input = std::find_if(to.inputs.begin(), to.inputs.end(), is_value) - to.inputs.begin();
  CommonLoops loops;
  if (!FindCommonLoops(LoopWalk(from.problem, from.problem.outputs[static_cast<size_t>(output)]),
                       LoopWalk(to.problem, to.problem.inputs[static_cast<size_t>(input)]), &loops) ||
      IsBetween(first, second, reader)) {
    return;
  }
  Group both;
  both.members = groups_[first].members;
  for (Member& member : both.members) SeeFrom(loops.first, loops.sizes, &member.work.problem);
  for (Member member : groups_[second].members) {
    SeeFrom(loops.second, loops.sizes, &member.work.problem);
    both.members.push_back(std::move(member));
  }
  std::sort(both.members.begin(), both.members.end(),
            [](const Member& a, const Member& b) { return a.node < b.node; });
  for (const Member& member : both.members) both.nodes.push_back(member.node);
  std::optional<ElementWork> joined = Join(both);
  if (!joined.has_value()) return;
  both.joined = *std::move(joined);
  for (const uint32_t node : both.nodes) group_of_[node] = second;
  groups_[first] = {};
  groups_[second] = std::move(both);
}

// Depth first, the longest branch first, so that few registers are in use at a time.
std::vector<const ElementWork*> Fusing::InOrder(const Group& group) const {
  const size_t count = group.members.size();
  std::vector<std::vector<size_t>> needs(count);  // members
  std::vector<size_t> height(count);
  std::vector<char> is_needed(count);
  for (size_t i = 0; i < count; ++i) {
    for (const GraphOperand& input : group.members[i].work.inputs) {
      if (!input.present() || uses_[input.value].writers.size() != 1) continue;
      const uint32_t writer = uses_[input.value].writers[0];
      for (size_t j = 0; j < i; ++j) {
        if (group.members[j].node != writer) continue;
        needs[i].push_back(j);
        height[i] = std::max(height[i], height[j] + 1);
        is_needed[j] = 1;
      }
    }
    std::stable_sort(needs[i].begin(), needs[i].end(),
                     [&](size_t a, size_t b) { return height[a] > height[b]; });
  }
  std::vector<const ElementWork*> order;
  std::vector<char> done(count);
  const std::function<void(size_t)> visit = [&](size_t i) {
    if (done[i] != 0) return;
    done[i] = 1;
    for (const size_t need : needs[i]) visit(need);
    order.push_back(&group.members[i].work);
  };
  for (size_t i = 0; i < count; ++i) {
    if (is_needed[i] == 0) visit(i);
  }
  return order;
}

// Whether a kernel takes the problem.
bool Fusing::IsTaken(const ElementProblem& problem) const {
  const DeviceTraits& device = *context_.device;
  if (TakesEverything<ElementProblem>(device)) return (problem.data_types() & ~device.data_types) == 0;
  LoweredOperator lowered;
  return ChooseKernel(problem, context_.ForPart(), &lowered).ok();
}

std::optional<ElementWork> Fusing::Join(const Group& group) const {
  const auto has = [&](uint32_t node) { return FindMember(group, node) != nullptr; };
  for (const Member& member : group.members) {
    for (const GraphOperand& input : member.work.inputs) {
      if (!input.present()) continue;
      const auto& writers = uses_[input.value].writers;
      // The same program would write the value in parts, or after the read.
      const bool is_whole = writers.size() == 1 && writers[0] < member.node;
      if (!is_whole && std::any_of(writers.begin(), writers.end(), has)) return {};
    }
  }
  const auto is_needed = [&](uint32_t value) {
    if (graph_.values[value].home != GraphValue::Home::kTemporary) return true;
    const auto& readers = uses_[value].readers;
    return uses_[value].writers.size() > 1 || !std::all_of(readers.begin(), readers.end(), has);
  };
  std::optional<ElementWork> joined = JoinElements(InOrder(group), is_needed);
  if (!joined.has_value()) return {};
  for (const ElementOperand& output : joined->problem.outputs) {
    if (!LieInSameOrder(joined->problem, joined->problem.outputs[0], output)) return {};
  }
  if (!IsTaken(joined->problem)) return {};
  return joined;
}

// Groups run as soon as they can; among those that can, the one whose last node comes first.
std::vector<uint32_t> Fusing::OrderOfGroups() const {
  std::vector<uint32_t> waiting(groups_.size());
  std::vector<std::vector<uint32_t>> followers(groups_.size());
  for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
    for (const uint32_t follower : followers_[node]) {
      if (group_of_[follower] == group_of_[node]) continue;
      ++waiting[group_of_[follower]];
      followers[group_of_[node]].push_back(group_of_[follower]);
    }
  }
  using Entry = std::pair<uint32_t, uint32_t>;  // last node, group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto add = [&](uint32_t group) { ready.emplace(groups_[group].nodes.back(), group); };
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (waiting[i] == 0 && !groups_[i].nodes.empty()) add(i);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (const uint32_t follower : followers[group]) {
      if (--waiting[follower] == 0) add(follower);
    }
  }
  return order;
}

void Fusing::Rewrite() {
  std::vector<GraphNode> nodes;
  for (const uint32_t number : OrderOfGroups()) {
    Group& group = groups_[number];
    if (group.nodes.size() == 1) {
      nodes.push_back(std::move(graph_.nodes[group.nodes[0]]));
      continue;
    }
    GraphNode node;
    for (const uint32_t member : group.nodes) {
      node.name += StrCat(node.name.empty() ? "" : " + ", graph_.nodes[member].name);
    }
    graph_.log.push_back(StrCat("fuse: ", node.name, " are one element program"));
    node.inputs = std::move(group.joined.inputs);
    node.outputs = std::move(group.joined.outputs);
    node.work = std::move(group.joined.problem);
    nodes.push_back(std::move(node));
  }
  graph_.nodes = std::move(nodes);
}

}  // namespace

Status FuseElements(const LowerContext& context, Graph* graph) {
  Fusing(context, graph).Run();
  return {};
}

}  // namespace anydml
