// From a graph to its kernel: kernels of the nodes, places of the tensors, initialisation. Longer than most
// files: the steps of one class share its tables.
#include <algorithm>
#include <span>
#include <utility>

#include "graph/graph.h"
#include "graph/passes/passes.h"
#include "graph/passes/rebind_tensors.h"
#include "graph/plan/lower_node.h"
#include "graph/plan/memory_plan.h"
#include "graph/plan/shared_bytes.h"
#include "graph/run/kernel.h"
#include "ops/work.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;
using Place = GraphKernel::Place;

// Tensors may rely on 16 bytes; with 64, vectors do not cross cache lines.
constexpr uint64_t kTensorAlignment = 64;
constexpr uint64_t kScratchAlignment = 256;

constexpr uint32_t kNever = ~uint32_t{0};

class Lowering {
 public:
  Lowering(Graph graph, const LowerContext& context) : graph_(std::move(graph)), context_(context) {}

  Status Run(std::string_view without, LoweredOperator* out, GraphFacts* facts) {
    std::vector<SharedBytes> shared = FindSharedBytes(graph_);
    ANYDML_RETURN_IF_ERROR(RunPasses(context_, without, &graph_));
    ANYDML_RETURN_IF_ERROR(LowerNodes());
    FindLives();
    ShareInPlace();
    const std::vector<uint32_t> input_ends = FindInputEnds(), output_begins = FindOutputBegins();
    FindGraphInPlace(input_ends, out);
    ANYDML_RETURN_IF_ERROR(CopySharedInputs({graph_, input_ends, output_begins}, context_, &shared, out,
                                            &layout_.copied_inputs));
    PlanTemporary(input_ends);
    LayOutPersistent();
    ANYDML_RETURN_IF_ERROR(CheckMemory());
    if (facts != nullptr) *facts = {DescribeSteps(), input_ends, output_begins};
    Finish(out);
    return {};
  }

 private:
  struct Life {
    uint32_t written = kNever;
    uint32_t last = 0;           // the last step that touches it
    uint32_t shares = kNoValue;  // another value, whose bytes it reuses
  };

  uint32_t Steps() const { return static_cast<uint32_t>(graph_.nodes.size()); }
  // The value whose memory it finally uses.
  uint32_t Root(uint32_t value) const {
    while (lives_[value].shares != kNoValue) value = lives_[value].shares;
    return value;
  }

  void OwnConstants(GraphNode& node) const;
  Status LowerNodes();
  void FindLives();
  void ShareInPlace();
  bool MayShare(uint32_t step, uint32_t input, uint32_t output) const;
  void PlanTemporary(std::span<const uint32_t> input_ends);
  std::vector<bool> FindPacked() const;
  void LayOutPersistent();
  Status CheckMemory() const;
  std::vector<uint32_t> FindInputEnds() const;
  std::vector<uint32_t> FindOutputBegins() const;
  void FindGraphInPlace(std::span<const uint32_t> input_ends, LoweredOperator* out) const;
  bool Replaces(uint32_t step, uint32_t input_value, uint32_t output_value) const;
  std::vector<GraphStep> DescribeSteps() const;
  uint64_t WorkBytes() const;
  void FinishPreparations();
  void Finish(LoweredOperator* out);
  Place PlaceOf(const GraphOperand& operand) const;

  Graph graph_;
  const LowerContext& context_;
  std::vector<LoweredOperator> lowered_, lowered_preparations_;
  std::vector<Life> lives_;
  std::vector<uint64_t> offsets_;          // of values, in the temporary or persistent memory
  std::vector<bool> packed_;               // of values: whose offset is a number
  std::vector<uint64_t> scratch_offsets_;  // of nodes
  std::vector<Place> persistent_;          // of nodes
  MemoryPlan plan_;
  GraphKernel::Layout layout_;
};

// Constants, and what preparations make of them, are known at initialisation, so kernels on the host may pack
// them as they pack OWNED_BY_DML inputs.
void Lowering::OwnConstants(GraphNode& node) const {
  GraphOperator* const op = node.op();
  if (op == nullptr || !context_.device->is_host) return;
  const std::vector<TensorDesc*> tensors = TensorsOf(op, FieldKind::kInput);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const GraphOperand& input = node.inputs[i];
    if (!input.present()) continue;
    const Home home = graph_.values[input.value].home;
    if (home == Home::kConstant || home == Home::kPrepared) tensors[i]->owned_by_dml = true;
  }
}

Status Lowering::LowerNodes() {
  for (GraphNode& node : graph_.nodes) {
    OwnConstants(node);
    const Status status = LowerNode(node, context_, &lowered_.emplace_back());
    if (!status.ok()) return Status(status.code(), StrCat(node.name, ": ", status.message()));
  }
  for (GraphNode& node : graph_.preparations) {
    const Status status = LowerNode(node, context_, &lowered_preparations_.emplace_back());
    if (!status.ok()) return Status(status.code(), StrCat(node.name, ": ", status.message()));
  }
  return {};
}

void Lowering::FindLives() {
  lives_.resize(graph_.values.size());
  for (uint32_t step = 0; step < Steps(); ++step) {
    for (const GraphOperand& input : graph_.nodes[step].inputs) {
      if (input.present()) lives_[input.value].last = step;
    }
    for (const GraphOperand& output : graph_.nodes[step].outputs) {
      if (!output.present()) continue;
      Life& life = lives_[output.value];
      life.written = std::min(life.written, step);
      life.last = std::max(life.last, step);
    }
  }
}

bool Lowering::MayShare(uint32_t step, uint32_t input, uint32_t output) const {
  const GraphNode& node = graph_.nodes[step];
  const GraphOperand& from = node.inputs[input];
  const GraphOperand& to = node.outputs[output];
  if (!from.present() || !to.present()) return false;
  const GraphValue& source = graph_.values[from.value];
  const GraphValue& target = graph_.values[to.value];
  if (source.home != Home::kTemporary || target.home != Home::kTemporary) return false;
  if (from.offset != 0 || to.offset != 0 || source.bytes != target.bytes) return false;
  // The node is the value's last reader and the output's first writer.
  if (lives_[Root(from.value)].last != step || lives_[to.value].written != step) return false;
  // The kernel must be able to overwrite every other input that shares those bytes, too.
  const auto& pairs = lowered_[step].in_place;
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].present() || Root(node.inputs[i].value) != Root(from.value)) continue;
    if (node.inputs[i].offset != 0) return false;
    if (std::find(pairs.begin(), pairs.end(), std::pair(i, output)) == pairs.end()) return false;
  }
  return true;
}

void Lowering::ShareInPlace() {
  for (uint32_t step = 0; step < Steps(); ++step) {
    std::vector<uint32_t> taken;  // inputs that this node's outputs replace
    for (const auto& [input, output] : lowered_[step].in_place) {
      if (!MayShare(step, input, output)) continue;
      const uint32_t target = graph_.nodes[step].outputs[output].value;
      const uint32_t root = Root(graph_.nodes[step].inputs[input].value);
      if (lives_[target].shares != kNoValue || std::find(taken.begin(), taken.end(), root) != taken.end())
        continue;
      taken.push_back(root);
      lives_[target].shares = root;
      lives_[root].last = std::max(lives_[root].last, lives_[target].last);
    }
  }
}

void Lowering::PlanTemporary(std::span<const uint32_t> input_ends) {
  std::vector<Lifetime> lifetimes;
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < graph_.values.size(); ++i) {
    const Life& life = lives_[i];
    const GraphValue& value = graph_.values[i];
    if (value.home != Home::kTemporary || life.written == kNever || life.shares != kNoValue) continue;
    values.push_back(i);
    lifetimes.push_back({value.bytes, kTensorAlignment, life.written, life.last});
  }
  for (uint32_t step = 0; step < Steps(); ++step) {
    lifetimes.push_back({lowered_[step].kernel->temporary_bytes(), kScratchAlignment, step, step});
  }
  const std::vector<size_t> copies = AddLifetimes(layout_.copied_inputs, input_ends, &lifetimes);
  plan_ = PlanMemory(lifetimes);
  for (size_t i = 0; i < copies.size(); ++i) layout_.copied_inputs[i].offset = plan_.offsets[copies[i]];
  offsets_.resize(graph_.values.size());
  for (size_t i = 0; i < values.size(); ++i) offsets_[values[i]] = plan_.offsets[i];
  for (uint32_t i = 0; i < graph_.values.size(); ++i) offsets_[i] = offsets_[Root(i)];
  const auto scratch = plan_.offsets.begin() + static_cast<ptrdiff_t>(values.size());
  scratch_offsets_.assign(scratch, scratch + Steps());
  layout_.temporary_bytes = plan_.bytes;
}

// Constants, and what is made of them, that all their readers pack: they need no memory in the graph.
std::vector<bool> Lowering::FindPacked() const {
  std::vector<bool> packed(graph_.values.size());
  for (uint32_t i = 0; i < packed.size(); ++i) {
    packed[i] = graph_.values[i].home == Home::kConstant || graph_.values[i].home == Home::kPrepared;
  }
  for (const GraphNode& node : graph_.preparations) {
    if (!context_.device->is_host) packed[node.inputs[0].value] = false;  // the device reads it
  }
  for (uint32_t step = 0; step < Steps(); ++step) {
    const auto& inputs = graph_.nodes[step].inputs;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].present() && !lowered_[step].kernel->packs_input(i)) packed[inputs[i].value] = false;
    }
  }
  return packed;
}

void Lowering::LayOutPersistent() {
  ScratchLayout persistent;
  packed_ = FindPacked();
  for (uint32_t i = 0; i < graph_.values.size(); ++i) {
    GraphValue& value = graph_.values[i];
    if (value.home == Home::kPrepared) {
      offsets_[i] = packed_[i] ? layout_.prepared.size()
                               : persistent.Add("prepared", value.bytes, kScratchAlignment).offset;
      if (packed_[i]) layout_.prepared.emplace_back().bytes = value.bytes;
    }
    if (value.home != Home::kConstant || value.bytes == 0) continue;
    if (packed_[i]) {
      offsets_[i] = layout_.packed_constants.size();
      layout_.packed_constants.push_back(std::move(value.constant));
      continue;
    }
    offsets_[i] = persistent.Add("constant", value.bytes, kScratchAlignment).offset;
    layout_.constants.push_back(std::move(value.constant));
    layout_.constant_offsets.push_back(offsets_[i]);
  }
  layout_.packed_inputs.assign(graph_.inputs.size(), true);
  for (uint32_t step = 0; step < Steps(); ++step) {
    const Kernel& kernel = *lowered_[step].kernel;
    const auto piece = persistent.Add(graph_.nodes[step].name, kernel.persistent_bytes(), kScratchAlignment);
    persistent_.push_back(piece.bytes == 0 ? Place{}
                                           : Place{Place::In::kPersistent, 0, piece.offset, piece.bytes});
    const auto& inputs = graph_.nodes[step].inputs;
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present()) continue;
      const GraphValue& value = graph_.values[inputs[i].value];
      if (value.home == Home::kInput && !kernel.packs_input(i)) layout_.packed_inputs[value.index] = false;
    }
  }
  layout_.persistent_bytes = persistent.bytes();
}

// Layout arithmetic saturates.
Status Lowering::CheckMemory() const {
  constexpr uint64_t kMost = UINT64_MAX - kScratchAlignment;
  if (layout_.temporary_bytes > kMost) {
    return Status(Code::kOutOfMemory, "the intermediate tensors need more than 2^64 bytes at once");
  }
  if (layout_.persistent_bytes > kMost) {
    return Status(Code::kOutOfMemory, "the constants and the nodes need more than 2^64 persistent bytes");
  }
  return {};
}

std::vector<uint32_t> Lowering::FindInputEnds() const {
  std::vector<uint32_t> ends(graph_.inputs.size());
  for (uint32_t i = 0; i < ends.size(); ++i) {
    if (graph_.inputs[i].owned || !graph_.inputs[i].connected) ends[i] = GraphFacts::kNoStep;
  }
  for (uint32_t step = 0; step < Steps(); ++step) {
    for (const GraphOperand& operand : graph_.nodes[step].inputs) {
      if (!operand.present() || graph_.values[operand.value].home != Home::kInput) continue;
      uint32_t& end = ends[graph_.values[operand.value].index];
      end = std::max(end, step + 1);
    }
  }
  return ends;
}

std::vector<uint32_t> Lowering::FindOutputBegins() const {
  std::vector<uint32_t> begins(graph_.outputs.size());
  for (uint32_t i = 0; i < graph_.values.size(); ++i) {
    const bool is_written = graph_.values[i].home == Home::kOutput && lives_[i].written != kNever;
    if (is_written) begins[graph_.values[i].index] = lives_[i].written;
  }
  return begins;
}

// Whether the step may overwrite every operand of the one value with every operand of the other.
bool Lowering::Replaces(uint32_t step, uint32_t input_value, uint32_t output_value) const {
  const GraphNode& node = graph_.nodes[step];
  const auto& pairs = lowered_[step].in_place;
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].value != input_value) continue;
    for (uint32_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o].value != output_value) continue;
      const bool in_place = node.inputs[i].offset == 0 && node.outputs[o].offset == 0 &&
                            std::find(pairs.begin(), pairs.end(), std::pair(i, o)) != pairs.end();
      if (!in_place) return false;
    }
  }
  return true;
}

// The pairs of a graph input and a graph output where one step is the last reader and the first writer.
void Lowering::FindGraphInPlace(std::span<const uint32_t> input_ends, LoweredOperator* out) const {
  for (uint32_t step = 0; step < Steps(); ++step) {
    const GraphNode& node = graph_.nodes[step];
    for (const auto& [i, o] : lowered_[step].in_place) {
      if (!node.inputs[i].present() || !node.outputs[o].present()) continue;
      const uint32_t from = node.inputs[i].value, to = node.outputs[o].value;
      const GraphValue &input = graph_.values[from], &output = graph_.values[to];
      if (input.home != Home::kInput || output.home != Home::kOutput) continue;
      if (input_ends[input.index] != step + 1 || lives_[to].written != step) continue;
      if (Replaces(step, from, to)) out->in_place.emplace_back(input.index, output.index);
    }
  }
}

Place Lowering::PlaceOf(const GraphOperand& operand) const {
  if (!operand.present()) return {};
  const GraphValue& value = graph_.values[operand.value];
  const uint64_t bytes = value.bytes - operand.offset;
  switch (value.home) {
    case Home::kInput:
      return {Place::In::kInput, value.index, operand.offset, bytes};
    case Home::kOutput:
      return {Place::In::kOutput, value.index, operand.offset, bytes};
    case Home::kConstant:
      if (packed_[operand.value]) {
        return {Place::In::kPacked, static_cast<uint32_t>(offsets_[operand.value]), operand.offset, bytes};
      }
      return {Place::In::kPersistent, 0, offsets_[operand.value] + operand.offset, bytes};
    case Home::kPrepared:
      if (packed_[operand.value]) {
        return {Place::In::kPrepared, static_cast<uint32_t>(offsets_[operand.value]), operand.offset, bytes};
      }
      return {Place::In::kPersistent, 0, offsets_[operand.value] + operand.offset, bytes};
    case Home::kTemporary:
      return {Place::In::kTemporary, 0, offsets_[operand.value] + operand.offset, bytes};
  }
  return {};
}

std::vector<GraphStep> Lowering::DescribeSteps() const {
  const auto describe = [&](const std::vector<GraphOperand>& operands) {
    std::vector<GraphStep::Tensor> tensors(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].present()) continue;
      const GraphValue& value = graph_.values[operands[i].value];
      const bool bound = value.home == Home::kInput || value.home == Home::kOutput;
      tensors[i] = {true, value.home, bound ? value.index : operands[i].value, value.bytes};
    }
    return tensors;
  };
  std::vector<GraphStep> steps;
  for (uint32_t step = 0; step < Steps(); ++step) {
    const GraphNode& node = graph_.nodes[step];
    steps.push_back(
        {node.name, lowered_[step].implementation, describe(node.inputs), describe(node.outputs)});
  }
  return steps;
}

void Lowering::FinishPreparations() {
  for (size_t i = 0; i < lowered_preparations_.size(); ++i) {
    const GraphNode& node = graph_.preparations[i];
    GraphKernel::Part part;
    part.name = node.name;
    part.kernel = std::move(lowered_preparations_[i].kernel);
    part.inputs = {PlaceOf(node.inputs[0])};
    part.outputs = {PlaceOf(node.outputs[0])};
    const Place& made = part.outputs[0];
    auto& parts = made.in == Place::In::kPrepared ? layout_.prepared[made.index].parts : layout_.preparations;
    parts.push_back(std::move(part));
  }
}

// Unknown if parts run between guard pages, which cost system calls.
uint64_t Lowering::WorkBytes() const {
  constexpr uint64_t kPartBytes = 8 << 10;  // overhead of a part, about 0.15 us
  uint64_t bytes = context_.graph_guards ? WorkEstimate::kUnknown : 0;
  for (uint32_t step = 0; step < Steps(); ++step) {
    // The estimate of a convolution leaves room for its tail.
    const GraphOperator* const op = graph_.nodes[step].op();
    const uint64_t part = WorkOf(lowered_[step], op != nullptr ? &op->desc : nullptr);
    bytes = SaturatingAdd(SaturatingAdd(bytes, kPartBytes), part);
  }
  return bytes;
}

void Lowering::Finish(LoweredOperator* out) {
  layout_.work_bytes = WorkBytes();
  uint64_t intermediates = 0;
  for (const GraphValue& value : graph_.values) {
    if (value.home == Home::kTemporary) intermediates = SaturatingAdd(intermediates, value.bytes);
  }
  for (const std::string& line : graph_.log) out->explanation += line + "\n";
  out->explanation += StrCat("temporary memory: ", plan_.bytes, " bytes for ", intermediates,
                             " bytes of intermediate tensors; ", plan_.most_live, " are needed at once\n");
  for (const auto& copy : layout_.copied_inputs) out->explanation += Explain(copy) + "\n";
  for (uint32_t step = 0; step < Steps(); ++step) {
    GraphNode& node = graph_.nodes[step];
    LoweredOperator& lowered = lowered_[step];
    const std::string inner = lowered.kernel->made_of();
    out->explanation += StrCat(node.name, ": ", lowered.implementation, inner.empty() ? "" : " (", inner,
                               inner.empty() ? "\n" : ")\n");
    layout_.made_of += StrCat(step == 0 ? "" : ", ", lowered.implementation);
    GraphKernel::Part part;
    part.name = StrCat(node.name, " (", lowered.implementation, ")");
    const uint64_t scratch = lowered.kernel->temporary_bytes();
    if (scratch != 0) part.scratch = {Place::In::kTemporary, 0, scratch_offsets_[step], scratch};
    part.persistent = persistent_[step];
    part.kernel = std::move(lowered.kernel);
    for (const GraphOperand& input : node.inputs) part.inputs.push_back(PlaceOf(input));
    for (const GraphOperand& output : node.outputs) part.outputs.push_back(PlaceOf(output));
    layout_.parts.push_back(std::move(part));
  }
  FinishPreparations();
  layout_.device = context_.device;
  layout_.guarded = context_.graph_guards;
  out->implementation = StrCat(context_.device->backend, ".graph");
  out->kernel = std::make_unique<GraphKernel>(std::move(layout_));
}

}  // namespace

Status LowerGraph(Graph graph, const LowerContext& context, std::string_view without, LoweredOperator* out,
                  GraphFacts* facts) {
  return Lowering(std::move(graph), context).Run(without, out, facts);
}

}  // namespace anydml
