// Element-wise work that only a reduction, a softmax or a normalisation reads is done in blocks of rows,
// which the reader takes from a cache: the intermediate tensor needs no memory. CPU only.
#include <algorithm>
#include <utility>

#include "graph/passes/common_loops.h"
#include "graph/passes/passes.h"
#include "ops/element/operators.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// Smaller results stay in a cache anyway.
constexpr uint64_t kLeastResultBytes = uint64_t{1} << 19;
constexpr uint64_t kBlockBytes = uint64_t{1} << 16;
constexpr uint64_t kMostBlockBytes = uint64_t{1} << 18;

// The axes along which the operator reads many elements for one; null where its rows are computed together.
const std::vector<uint32_t>* AxesOfReader(const GraphOperator& reader) {
  if (reader.op->traits.rows != RowUse::kInBlocks) return nullptr;
  const int field = FindField(*reader.desc.schema, "Axes");
  return std::get_if<std::vector<uint32_t>>(&reader.desc.fields[static_cast<size_t>(field)]);
}

class JoiningReaders {
 public:
  JoiningReaders(const LowerContext& context, Graph* graph)
      : context_(context), graph_(*graph), uses_(FindUses(*graph)) {}

  void Run() {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) TryReader(i);
    RemoveEmptyNodes(&graph_);
  }

 private:
  // The reader's loops in common with the elements.
  struct Loops {
    CommonLoops common;
    std::vector<uint32_t> dimensions;  // of the reader's tensors, by common loop
    size_t free = 0;                   // this many outermost loops are not axes
  };

  bool FindWriter(uint32_t reader, uint32_t* writer) const;
  bool FindLoops(const ElementProblem& elements, const GraphOperator& reader, Loops* loops) const;
  bool CutBlocks(const Loops& loops, uint64_t width, RowBlocks* blocks) const;
  bool SetSteps(const Loops& loops, const ElementProblem& elements, const OperatorDesc& reader,
                RowBlocks* blocks) const;
  bool SetWork(const Loops& loops, const ElementProblem& elements, const OperatorDesc& reader, uint64_t count,
               RowBlocks* blocks, RowBlocks::Work* work) const;
  void TryReader(uint32_t number);

  const LowerContext& context_;
  Graph& graph_;
  const std::vector<GraphUse> uses_;
};

bool JoiningReaders::FindWriter(uint32_t reader, uint32_t* writer) const {
  const GraphNode& node = graph_.nodes[reader];
  const GraphOperand& input = node.inputs[0];
  if (!input.present() || input.offset != 0) return false;
  const GraphValue& value = graph_.values[input.value];
  const GraphUse& use = uses_[input.value];
  if (value.home != GraphValue::Home::kTemporary || value.bytes < kLeastResultBytes ||
      use.writers.size() != 1 || use.readers.size() != 1 || use.writers[0] >= reader) {
    return false;
  }
  const auto reads = [&](const GraphOperand& operand) { return operand.value == input.value; };
  if (std::count_if(node.inputs.begin(), node.inputs.end(), reads) != 1) return false;
  *writer = use.writers[0];
  const GraphNode& elements = graph_.nodes[*writer];
  if (elements.outputs.size() != 1 || elements.outputs[0].offset != 0) return false;
  // The reader finds in its inputs what the elements would have found.
  return std::all_of(elements.inputs.begin(), elements.inputs.end(), [&](const GraphOperand& operand) {
    if (!operand.present()) return false;
    const auto& writers = uses_[operand.value].writers;
    return std::all_of(writers.begin(), writers.end(), [&](uint32_t other) { return other < *writer; });
  });
}

bool JoiningReaders::FindLoops(const ElementProblem& elements, const GraphOperator& reader,
                               Loops* loops) const {
  const TensorDesc& tensor = *reader.desc.inputs()[0];
  const std::vector<uint32_t>& axes = *AxesOfReader(reader);
  ElementProblem seen;  // the reader's tensor in terms of the common loops
  ElementOperand operand = {.type = tensor.type};
  std::vector<uint32_t> dimensions;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] == 1) continue;
    seen.sizes[seen.rank] = tensor.sizes[d];
    operand.strides[seen.rank++] = tensor.strides[d];
    dimensions.push_back(d);
  }
  if (!FindCommonLoops(LoopWalk(elements, elements.outputs[0]), LoopWalk(seen, operand), &loops->common)) {
    return false;
  }
  for (const LoopPart& part : loops->common.second) loops->dimensions.push_back(dimensions[part.loop]);
  const auto is_axis = [&](uint32_t d) { return std::find(axes.begin(), axes.end(), d) != axes.end(); };
  const auto first_axis = std::find_if(loops->dimensions.begin(), loops->dimensions.end(), is_axis);
  loops->free = static_cast<size_t>(first_axis - loops->dimensions.begin());
  return loops->free > 0;
}

// Makes blocks as large as is allowed.
bool JoiningReaders::CutBlocks(const Loops& loops, uint64_t width, RowBlocks* blocks) const {
  const auto& sizes = loops.common.sizes;
  uint64_t bytes = width;  // of one iteration of the loop that is cut
  for (size_t k = loops.free; k < sizes.size(); ++k) bytes *= sizes[k];
  if (bytes > kMostBlockBytes) return false;
  size_t cut = loops.free - 1;
  for (; cut > 0 && bytes * sizes[cut] <= kBlockBytes; --cut) bytes *= sizes[cut];
  blocks->sizes.assign(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(cut) + 1);
  blocks->count = std::clamp<uint64_t>(kBlockBytes / bytes, 1, sizes[cut]);
  return true;
}

// Sets each block's steps through the tensors.
bool JoiningReaders::SetSteps(const Loops& loops, const ElementProblem& elements, const OperatorDesc& reader,
                              RowBlocks* blocks) const {
  const size_t cuts = blocks->sizes.size();
  for (const ElementOperand& operand : elements.inputs) {
    auto& steps = blocks->input_steps.emplace_back(cuts);
    if (BitSize(operand.type) < 8) return false;
    for (size_t k = 0; k < cuts; ++k) steps[k] = operand.strides[k] * (BitSize(operand.type) / 8);
  }
  const TensorDesc& read = *reader.inputs()[0];
  const auto add = [&](const TensorDesc* tensor, std::vector<std::vector<uint64_t>>* list) {
    auto& steps = list->emplace_back(cuts);
    if (tensor == nullptr) return true;
    if (tensor->rank != read.rank || BitSize(tensor->type) < 8) return false;
    for (size_t k = 0; k < cuts; ++k) {
      const uint32_t d = loops.dimensions[k];
      if (tensor->sizes[d] != read.sizes[d] && tensor->sizes[d] != 1) return false;
      if (tensor->sizes[d] == 1) continue;
      steps[k] = uint64_t{tensor->strides[d]} * loops.common.second[k].factor * (BitSize(tensor->type) / 8);
    }
    return true;
  };
  const auto inputs = reader.inputs(), outputs = reader.outputs();
  return std::all_of(inputs.begin() + 1, inputs.end(),
                     [&](const TensorDesc* tensor) { return add(tensor, &blocks->input_steps); }) &&
         std::all_of(outputs.begin(), outputs.end(),
                     [&](const TensorDesc* tensor) { return add(tensor, &blocks->output_steps); });
}

// Sets the work of a block with this many iterations of the loop that is cut. `elements` have the common
// loops.
bool JoiningReaders::SetWork(const Loops& loops, const ElementProblem& elements, const OperatorDesc& reader,
                             uint64_t count, RowBlocks* blocks, RowBlocks::Work* work) const {
  const auto& common = loops.common.sizes;
  const size_t cut = blocks->sizes.size() - 1;
  LoopParts parts;
  std::vector<uint64_t> sizes;
  for (size_t k = cut; k < common.size(); ++k) {
    parts.push_back({static_cast<uint32_t>(k), 1});
    sizes.push_back(k == cut ? count : common[k]);
  }
  work->elements = elements;
  SeeFrom(parts, sizes, &work->elements);
  const TensorDesc read = *reader.inputs()[0];
  Dimensions block = read.sizes;
  for (size_t k = 0; k <= cut; ++k) {
    block[loops.dimensions[k]] /= static_cast<uint32_t>(common[k]);
    if (k == cut) block[loops.dimensions[k]] *= static_cast<uint32_t>(count);
  }
  work->desc = reader;
  for (FieldValue& field : work->desc.fields) {
    auto* const tensor = std::get_if<TensorDesc>(&field);
    if (tensor == nullptr) continue;
    for (uint32_t d = 0; d < read.rank; ++d) {
      if (tensor->sizes[d] == read.sizes[d]) tensor->sizes[d] = block[d];
    }
    tensor->total_bytes = MinimumTotalBytes(*tensor);
    tensor->owned_by_dml = false;
  }
  blocks->block_bytes = std::max(blocks->block_bytes, work->desc.inputs()[0]->total_bytes);
  return blocks->reader->check(work->desc, context_.level).ok();
}

void JoiningReaders::TryReader(uint32_t number) {
  GraphNode& node = graph_.nodes[number];
  uint32_t writer = 0;
  if (node.op() == nullptr || AxesOfReader(*node.op()) == nullptr || !FindWriter(number, &writer)) return;
  GraphNode& before = graph_.nodes[writer];
  if (before.op() != nullptr ? !IsElementWise(before.op()->desc) : before.elements() == nullptr) return;
  ElementProblem elements =
      before.op() != nullptr ? BuildElementProblem(before.op()->desc) : *before.elements();
  Simplify(&elements);
  const OperatorDesc& reader = node.op()->desc;
  Loops loops;
  RowBlocks blocks;
  blocks.reader = node.op()->op;
  if (elements.outputs[0].type != reader.inputs()[0]->type || !FindLoops(elements, *node.op(), &loops))
    return;
  SeeFrom(loops.common.first, loops.common.sizes, &elements);
  if (!CutBlocks(loops, BitSize(elements.outputs[0].type) / 8, &blocks) ||
      !SetSteps(loops, elements, reader, &blocks) ||
      !SetWork(loops, elements, reader, blocks.count, &blocks, &blocks.whole)) {
    return;
  }
  if (blocks.Rest() != 0 && !SetWork(loops, elements, reader, blocks.Rest(), &blocks, &blocks.rest)) return;
  LoweredOperator lowered;
  if (!LowerRowBlocks(blocks, context_, &lowered).ok()) return;
  GraphNode joined;
  joined.name = StrCat(before.name, " + ", node.name);
  joined.inputs = before.inputs;
  joined.inputs.insert(joined.inputs.end(), node.inputs.begin() + 1, node.inputs.end());
  joined.outputs = node.outputs;
  joined.work = std::move(blocks);
  graph_.log.push_back(StrCat("prologue: ", before.name, " is done by blocks of what ", node.name, " reads"));
  before.inputs.clear();
  before.outputs.clear();
  node = std::move(joined);
}

}  // namespace

Status FusePrologues(const LowerContext& context, Graph* graph) {
  if (context.device->runs_blocks_of_rows) JoiningReaders(context, graph).Run();
  return {};
}

}  // namespace anydml
