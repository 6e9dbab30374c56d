// Nodes that follow a convolution become its tail, if its kernel can apply them to the results before it
// stores them: a BATCH_NORMALIZATION, an addition, then RELU or CLIP, each rounded as it would be in memory.
#include <algorithm>
#include <utility>

#include "base/half.h"
#include "graph/passes/passes.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint64_t kTensorAlignment = 16;  // alignment of a convolution's operands; other operators take any

using Limits = ConvolutionLimits;

OperatorType KindOf(const OperatorDesc& desc) { return static_cast<OperatorType>(desc.schema->type); }

bool HasNone(const Limits& limits) {
  const Limits none;
  return limits.least == none.least && limits.most == none.most;
}

// The limits of RELU, of CLIP, or none if `activation` is null; false for anything else.
bool LimitsOf(const OperatorDesc* activation, Limits* limits) {
  *limits = {};
  if (activation == nullptr) return true;
  if (KindOf(*activation) == OperatorType::kActivationRelu) {
    limits->least = 0;
    return true;
  }
  if (KindOf(*activation) != OperatorType::kElementWiseClip) return false;
  if (activation->scale_bias("ScaleBias") != nullptr) return false;
  const auto number = [&](const char* name) {
    return std::get<float>(activation->fields[static_cast<size_t>(FindField(*activation->schema, name))]);
  };
  *limits = {number("Min"), number("Max")};
  return limits->least <= limits->most;
}

// Whether rounding to the type before them and after them gives the same.
bool CommuteWithRounding(const Limits& limits, DataType type) {
  const auto is_exact = [](float limit) { return ToFloat(ToHalf(limit)) == limit; };
  return type == DataType::kFloat32 || (is_exact(limits.least) && is_exact(limits.most));
}

bool HasSizesOf(const TensorDesc& a, const TensorDesc& b) {
  return a.type == b.type && a.rank == b.rank &&
         std::equal(a.sizes.begin(), a.sizes.begin() + a.rank, b.sizes.begin());
}

bool IsPerChannel(const TensorDesc& tensor, const TensorDesc& of) {
  if (tensor.type != of.type || tensor.rank != of.rank) return false;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] != (d == 1 ? of.sizes[d] : 1)) return false;
  }
  return true;
}

class TakingTails {
 public:
  TakingTails(const GainsByTailFunction& gains, Graph* graph)
      : gains_(gains), graph_(*graph), uses_(FindUses(*graph)) {}

  void Run() {
    // A merged node moves to its reader's index, where the loop visits it again.
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) Take(i);
    RemoveEmptyNodes(&graph_);
  }

 private:
  void Take(uint32_t number);
  // Merges the reader's work into `host`; false if that is impossible. `from`: the reader's input.
  static bool TakeNormalization(const GraphNode& reader, size_t from, GraphNode* host);
  static bool TakeAddition(const GraphNode& reader, size_t from, GraphNode* host);
  static bool TakeLimits(const GraphNode& reader, GraphNode* host);

  const GainsByTailFunction& gains_;
  Graph& graph_;
  const std::vector<GraphUse> uses_;
};

TensorDesc& OutputOf(GraphNode* host) {
  OperatorDesc& desc = host->op()->desc;
  return std::get<TensorDesc>(desc.fields[static_cast<size_t>(FindField(*desc.schema, "OutputTensor"))]);
}

void TakingTails::Take(uint32_t number) {
  GraphNode& node = graph_.nodes[number];
  if (node.op() == nullptr || node.outputs.empty() || KindOf(node.op()->desc) != OperatorType::kConvolution)
    return;
  const GraphOperand output = node.outputs[0];
  if (!output.present() || graph_.values[output.value].home != GraphValue::Home::kTemporary) return;
  const GraphUse& use = uses_[output.value];
  if (use.writers.size() != 1 || use.readers.size() != 1 || use.readers[0] <= number) return;
  GraphNode& reader = graph_.nodes[use.readers[0]];
  if (reader.op() == nullptr || reader.outputs.size() != 1) return;
  if (reader.outputs[0].offset % kTensorAlignment != 0) return;
  const auto reads = [&](const GraphOperand& operand) { return operand.value == output.value; };
  const auto read = std::find_if(reader.inputs.begin(), reader.inputs.end(), reads);
  if (read == reader.inputs.end() || read->offset != output.offset ||
      std::count_if(reader.inputs.begin(), reader.inputs.end(), reads) != 1) {
    return;
  }
  GraphNode host = node;
  GraphOperator& op = *host.op();
  TensorDesc& written = OutputOf(&host);
  const auto from = static_cast<size_t>(read - reader.inputs.begin());
  const OperatorDesc& work = reader.op()->desc;
  if (from >= work.inputs().size()) return;  // that another convolution's tail reads
  const TensorDesc *const seen = work.inputs()[from], *const result = work.outputs()[0];
  if (result == nullptr || !SameLayout(*seen, written) || !HasSizesOf(*result, written)) return;
  if (!op.tail) op.tail.emplace();
  host.inputs.resize(ConvolutionTail::kInputs);
  if (!TakeNormalization(reader, from, &host) && !TakeAddition(reader, from, &host) &&
      !TakeLimits(reader, &host)) {
    return;
  }
  written = *result;
  if (!op.op->check(op.desc, kLatestFeatureLevel).ok() || !gains_(op.desc, *op.tail)) return;
  host.outputs[0] = reader.outputs[0];
  graph_.log.push_back(StrCat("tails: ", reader.name, " is done where ", node.name, " stores its results"));
  host.name = StrCat(node.name, " + ", reader.name);
  // At the reader's index, everything that the merged node reads has been written.
  reader = std::move(host);
  node.inputs.clear();
  node.outputs.clear();
}

bool TakingTails::TakeNormalization(const GraphNode& reader, size_t from, GraphNode* host) {
  ConvolutionTailDesc& tail = *host->op()->tail;
  if (KindOf(reader.op()->desc) != OperatorType::kBatchNormalization || from != 0 || tail.normalizes() ||
      tail.adds()) {
    return false;
  }
  const auto desc = BatchNormalizationDesc::From(reader.op()->desc);
  if (!LimitsOf(desc.fused_activation, &tail.normalized)) return false;
  const TensorDesc* const numbers[] = {&desc.mean, &desc.variance, &desc.scale, &desc.bias};
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (!IsPerChannel(*numbers[i], desc.input)) return false;
    tail.tensors[i] = *numbers[i];
    tail.tensors[i]->owned_by_dml = false;
    host->inputs[ConvolutionTail::kMean + i] = reader.inputs[1 + i];
  }
  tail.epsilon = desc.epsilon;
  return true;
}

bool TakingTails::TakeAddition(const GraphNode& reader, size_t from, GraphNode* host) {
  ConvolutionTailDesc& tail = *host->op()->tail;
  const OperatorDesc& desc = reader.op()->desc;
  const bool has_activation = KindOf(desc) == OperatorType::kElementWiseAdd1;
  if ((!has_activation && KindOf(desc) != OperatorType::kElementWiseAdd) || tail.adds()) return false;
  const TensorDesc& added = *desc.inputs()[1 - from];
  const GraphOperand& operand = reader.inputs[1 - from];
  if (!HasSizesOf(added, OutputOf(host)) || operand.offset % kTensorAlignment != 0) return false;
  const OperatorDesc* const activation =
      has_activation ? ElementWiseAdd1Desc::From(desc).fused_activation : nullptr;
  if (!LimitsOf(activation, &tail.added) || !CommuteWithRounding(tail.added, added.type)) return false;
  tail.tensors.back() = added;
  host->inputs[ConvolutionTail::kAdded] = operand;
  return true;
}

bool TakingTails::TakeLimits(const GraphNode& reader, GraphNode* host) {
  ConvolutionTailDesc& tail = *host->op()->tail;
  return tail.adds() && HasNone(tail.added) && LimitsOf(&reader.op()->desc, &tail.added) &&
         CommuteWithRounding(tail.added, OutputOf(host).type);
}

}  // namespace

void TakeTails(const GainsByTailFunction& gains, Graph* graph) { TakingTails(gains, graph).Run(); }

Status FuseTails(const LowerContext& context, Graph* graph) {
  // Whoever forces an implementation wants to run it.
  if (!context.implementation.empty()) return {};
  TakeTails([&](const OperatorDesc& desc,
                const ConvolutionTailDesc& tail) { return GainsByTail(desc, tail, context); },
            graph);
  return {};
}

}  // namespace anydml
