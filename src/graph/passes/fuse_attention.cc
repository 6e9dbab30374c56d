// Replaces the product of queries and keys, its scale and mask, the softmax of each row and the product with
// values by one attention, which does not store the logits and so does not round them to FLOAT16. Without the
// flag that allows this, the pass applies only if the rounding of a product is all that is skipped: an
// addition of large numbers would round logits away, and attention would still see them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/half.h"
#include "graph/passes/passes.h"
#include "graph/passes/rebind_tensors.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint32_t kHalfPrecisionFlag = 1;  // DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION

// An operand of a product, for each element of the batch.
struct Matrices {
  std::array<uint64_t, 2> sizes = {1, 1};  // of the batch
  std::array<uint64_t, 2> strides{};
  uint64_t rows = 1, columns = 1;
  uint64_t row = 0, column = 0;
};

Matrices MatricesOf(const TensorDesc& tensor, bool transposed) {
  Matrices m;
  const uint32_t shift = 4 - tensor.rank;
  for (uint32_t d = 0; d + 2 < tensor.rank; ++d) {
    m.sizes[d + shift] = tensor.sizes[d];
    m.strides[d + shift] = tensor.strides[d];
  }
  const uint32_t row = tensor.rank - (transposed ? 1 : 2), column = tensor.rank - (transposed ? 2 : 1);
  m.rows = tensor.sizes[row];
  m.columns = tensor.sizes[column];
  m.row = tensor.strides[row];
  m.column = tensor.strides[column];
  return m;
}

// Views the matrices as heads of batches; the total number stays the same.
bool SetView(const Matrices& m, const std::array<uint64_t, 2>& heads, uint32_t binding, AttentionView* view) {
  std::array<uint64_t, 2> strides = m.strides;
  if (m.sizes != heads) {
    uint64_t step = m.strides[1];
    if (m.sizes[1] == 1) {
      step = m.strides[0];
    } else if (m.sizes[0] != 1 && m.strides[0] != m.sizes[1] * step) {
      return false;
    }
    strides = {heads[1] * step, step};
  }
  *view = {.exists = true,
           .binding = binding,
           .batch = heads[0] == 1 ? 0 : strides[0],
           .head = heads[1] == 1 ? 0 : strides[1],
           .row = m.rows == 1 ? 0 : m.row,
           .column = m.columns == 1 ? 1 : m.column};
  return true;
}

Matrices Transposed(Matrices m) {
  std::swap(m.rows, m.columns);
  std::swap(m.row, m.column);
  return m;
}

class FindingAttention {
 public:
  FindingAttention(const LowerContext& context, Graph* graph)
      : context_(context), graph_(*graph), uses_(FindUses(*graph)) {}

  void Run() {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      Chain chain;
      if (FollowFrom(i, &chain)) Replace(std::move(chain));
    }
    RemoveEmptyNodes(&graph_);
  }

 private:
  struct Chain {
    std::vector<uint32_t> nodes;  // both products and the nodes between them
    uint64_t rows = 1;            // of all logits
    uint64_t keys = 1;
    float scale = 1;
    const TensorDesc* mask = nullptr;
    GraphOperand mask_operand;
    DataType type = DataType::kUnknown;  // of the logits
    bool rounds = false;                 // rounds more than products do
    bool has_weights = false;            // past the softmax
  };

  const GraphOperator* OperatorAt(uint32_t node) const { return graph_.nodes[node].op(); }
  OperatorType TypeAt(uint32_t node) const {
    const GraphOperator* const op = OperatorAt(node);
    return op == nullptr ? OperatorType{} : static_cast<OperatorType>(op->desc.schema->type);
  }

  bool FollowFrom(uint32_t product, Chain* chain) const;
  bool TakeFirstProduct(uint32_t node, Chain* chain) const;
  bool TakeStep(uint32_t node, uint32_t value, Chain* chain) const;
  bool TakeScale(float factor, Chain* chain) const;
  bool TakeMask(const TensorDesc& mask, const GraphOperand& operand, uint32_t reader, Chain* chain) const;
  bool IsSecondProduct(uint32_t node, uint32_t value, const Chain& chain) const;
  bool OnlyReader(uint32_t writer, uint32_t* reader) const;
  bool IsLogits(const TensorDesc* tensor, const Chain& chain) const;
  bool FindNumber(const TensorDesc& tensor, const GraphOperand& operand, float* number) const;
  bool IsStillThere(const GraphOperand& operand, uint32_t reader) const;
  void TakeCopy(GraphNode* product, Chain* chain) const;
  bool MakeProblem(const Chain& chain, const GemmDesc& first, const GemmDesc& second,
                   AttentionProblem* problem) const;
  bool IsWorthIt(const AttentionProblem& problem) const;
  void Replace(Chain chain);

  const LowerContext& context_;
  Graph& graph_;
  const std::vector<GraphUse> uses_;
};

// The softmax of rows, as a node of its own or as a product's activation.
bool IsSoftmaxOfRows(const OperatorDesc& desc, uint32_t rank) {
  const auto type = static_cast<OperatorType>(desc.schema->type);
  if (type == OperatorType::kActivationSoftmax) return true;
  if (type != OperatorType::kActivationSoftmax1) return false;
  const int field = FindField(*desc.schema, "Axes");
  const auto* const axes = std::get_if<std::vector<uint32_t>>(&desc.fields[static_cast<size_t>(field)]);
  return axes != nullptr && axes->size() == 1 && (*axes)[0] == rank - 1;
}

// Whether the tensor contains all logits, in order and with their type: edges may reinterpret their bits.
bool FindingAttention::IsLogits(const TensorDesc* tensor, const Chain& chain) const {
  return tensor != nullptr && tensor->type == chain.type && IsPacked(*tensor) &&
         tensor->sizes[tensor->rank - 1] == chain.keys && ElementCount(*tensor) == chain.rows * chain.keys;
}

// The only reader of the node's only output.
bool FindingAttention::OnlyReader(uint32_t writer, uint32_t* reader) const {
  const auto& outputs = graph_.nodes[writer].outputs;
  if (outputs.size() != 1 || !outputs[0].present() || outputs[0].offset != 0) return false;
  const uint32_t value = outputs[0].value;
  const GraphUse& use = uses_[value];
  if (graph_.values[value].home != GraphValue::Home::kTemporary || use.writers.size() != 1 ||
      use.readers.size() != 1 || use.readers[0] < writer) {
    return false;
  }
  *reader = use.readers[0];
  const auto& inputs = graph_.nodes[*reader].inputs;
  const auto reads = [&](const GraphOperand& input) { return input.value == value; };
  return std::count_if(inputs.begin(), inputs.end(), reads) == 1 &&
         std::find_if(inputs.begin(), inputs.end(), reads)->offset == 0;
}

// A constant with the same value for all elements.
bool FindingAttention::FindNumber(const TensorDesc& tensor, const GraphOperand& operand,
                                  float* number) const {
  const GraphValue& value = graph_.values[operand.value];
  const uint64_t bytes = BitSize(tensor.type) / 8;
  if (value.home != GraphValue::Home::kConstant || operand.offset + bytes > value.constant.size())
    return false;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] > 1 && tensor.strides[d] != 0) return false;
  }
  const std::byte* const data = value.constant.data() + operand.offset;
  if (tensor.type == DataType::kFloat16) {
    Half half;
    std::memcpy(&half.bits, data, sizeof(half.bits));
    *number = ToFloat(half);
  } else {
    std::memcpy(number, data, sizeof(*number));
  }
  return true;
}

// Whether a later node still finds the contents that the reader finds.
bool FindingAttention::IsStillThere(const GraphOperand& operand, uint32_t reader) const {
  const auto& writers = uses_[operand.value].writers;
  return std::all_of(writers.begin(), writers.end(), [&](uint32_t writer) { return writer < reader; });
}

bool FindingAttention::TakeFirstProduct(uint32_t node, Chain* chain) const {
  const auto product = GemmDesc::From(OperatorAt(node)->desc);
  const TensorDesc& output = product.output;
  chain->keys = output.sizes[output.rank - 1];
  chain->rows = ElementCount(output) / chain->keys;
  chain->type = output.type;
  chain->scale = product.alpha;
  // Weights are packed at initialisation, for the product kernels.
  if (product.a.owned_by_dml || product.b.owned_by_dml || !IsLogits(&output, *chain)) return false;
  const auto& inputs = graph_.nodes[node].inputs;
  if (product.c != nullptr && product.beta != 0) {
    if (product.beta != 1 || !TakeMask(*product.c, inputs[2], node, chain)) return false;
  }
  if (product.fused_activation != nullptr) {
    if (!IsSoftmaxOfRows(*product.fused_activation, output.rank)) return false;
    chain->has_weights = true;
  }
  return IsStillThere(inputs[0], node) && IsStillThere(inputs[1], node);
}

bool FindingAttention::TakeScale(float factor, Chain* chain) const {
  if (chain->mask != nullptr) return false;
  int exponent = 0;
  if (std::abs(std::frexp(factor, &exponent)) != 0.5f) chain->rounds = true;
  chain->scale *= factor;
  return std::isfinite(chain->scale);
}

bool FindingAttention::TakeMask(const TensorDesc& mask, const GraphOperand& operand, uint32_t reader,
                                Chain* chain) const {
  if (chain->mask != nullptr || mask.rank < 2 || mask.rank > 4 || !IsStillThere(operand, reader))
    return false;
  chain->mask = &mask;
  chain->mask_operand = operand;
  chain->rounds = true;
  return true;
}

// Adds to the chain what the node does to the logits in `value`.
bool FindingAttention::TakeStep(uint32_t number, uint32_t value, Chain* chain) const {
  const GraphNode& node = graph_.nodes[number];
  if (node.op() == nullptr) return false;
  const OperatorDesc& desc = node.op()->desc;
  const size_t at = node.inputs[0].value == value ? 0 : 1;
  const auto tensors = desc.inputs();
  const auto results = desc.outputs();
  if (at >= tensors.size() || node.inputs[at].value != value || results.empty()) return false;
  if (!IsLogits(tensors[at], *chain) || !IsLogits(results[0], *chain)) return false;
  float factor = 1;
  switch (TypeAt(number)) {
    case OperatorType::kElementWiseIdentity: {
      const ScaleBias* const line = ElementWiseIdentityDesc::From(desc).scale_bias;
      return line == nullptr || (line->bias == 0 && TakeScale(line->scale, chain));
    }
    case OperatorType::kElementWiseMultiply:
      return FindNumber(*tensors[1 - at], node.inputs[1 - at], &factor) && TakeScale(factor, chain);
    case OperatorType::kElementWiseDivide:
      return at == 0 && FindNumber(*tensors[1], node.inputs[1], &factor) && TakeScale(1 / factor, chain);
    case OperatorType::kElementWiseAdd1:
      if (ElementWiseAdd1Desc::From(desc).fused_activation != nullptr) return false;
      return TakeMask(*tensors[1 - at], node.inputs[1 - at], number, chain);
    case OperatorType::kElementWiseAdd:
      return TakeMask(*tensors[1 - at], node.inputs[1 - at], number, chain);
    default:
      chain->has_weights = IsSoftmaxOfRows(desc, tensors[at]->rank);
      return chain->has_weights;
  }
}

bool FindingAttention::IsSecondProduct(uint32_t node, uint32_t value, const Chain& chain) const {
  if (TypeAt(node) != OperatorType::kGemm || graph_.nodes[node].inputs[0].value != value) return false;
  const auto product = GemmDesc::From(OperatorAt(node)->desc);
  return product.alpha == 1 && (product.c == nullptr || product.beta == 0) &&
         product.fused_activation == nullptr && product.trans_a == MatrixTransform::kNone &&
         !product.b.owned_by_dml && IsLogits(&product.a, chain) &&
         IsStillThere(graph_.nodes[node].inputs[1], node);
}

// Whether a chain starts at this product.
bool FindingAttention::FollowFrom(uint32_t product, Chain* chain) const {
  if (graph_.nodes[product].outputs.empty() || TypeAt(product) != OperatorType::kGemm) return false;
  if (!TakeFirstProduct(product, chain)) return false;
  chain->nodes = {product};
  for (;;) {
    const uint32_t last = chain->nodes.back();
    uint32_t reader = 0;
    if (!OnlyReader(last, &reader)) return false;
    const uint32_t value = graph_.nodes[last].outputs[0].value;
    chain->nodes.push_back(reader);
    if (!chain->has_weights) {
      if (!TakeStep(reader, value, chain)) return false;
      continue;
    }
    const bool rounds_late = (context_.execution_flags & kHalfPrecisionFlag) != 0;
    return IsSecondProduct(reader, value, *chain) &&
           (chain->type != DataType::kFloat16 || !chain->rounds || rounds_late);
  }
}

// If the result is only permuted, attention writes it in that order.
void FindingAttention::TakeCopy(GraphNode* product, Chain* chain) const {
  uint32_t reader = 0;
  if (!OnlyReader(chain->nodes.back(), &reader) || TypeAt(reader) != OperatorType::kElementWiseIdentity)
    return;
  const GraphNode& copy = graph_.nodes[reader];
  const auto desc = ElementWiseIdentityDesc::From(copy.op()->desc);
  if (desc.scale_bias != nullptr || desc.input.type != desc.output.type) return;
  if (uses_[copy.outputs[0].value].writers.size() != 1) return;
  const Detour detour = {copy.inputs[0].value, copy.outputs[0].value,
                         PlacesOf(desc.input, copy.inputs[0].offset),
                         PlacesOf(desc.output, copy.outputs[0].offset)};
  GraphNode moved = *product;
  if (!MoveTensors(context_, graph_, detour, &moved)) return;
  *product = std::move(moved);
  chain->nodes.push_back(reader);
}

bool FindingAttention::MakeProblem(const Chain& chain, const GemmDesc& first, const GemmDesc& second,
                                   AttentionProblem* problem) const {
  const Matrices query = MatricesOf(first.a, first.trans_a == MatrixTransform::kTranspose);
  const Matrices key = Transposed(MatricesOf(first.b, first.trans_b == MatrixTransform::kTranspose));
  const Matrices value = MatricesOf(second.b, second.trans_b == MatrixTransform::kTranspose);
  const Matrices result = MatricesOf(second.output, false);
  if (result.rows != query.rows) return false;
  problem->type = first.output.type;
  problem->queries = query.rows;
  problem->keys = problem->fresh = chain.keys;
  problem->key.columns = query.columns;
  problem->value.columns = value.columns;
  problem->scale = chain.scale;
  // The mask's shape tells which of the products are heads of one batch.
  std::array<uint64_t, 2> heads = query.sizes;
  if (chain.mask != nullptr) {
    const Matrices mask = MatricesOf(*chain.mask, false);
    heads = mask.sizes;
    if (mask.rows != query.rows || mask.columns != chain.keys) return false;
    if (!SetView(mask, heads, 3, &problem->position_bias)) return false;
  }
  problem->batch = heads[0];
  problem->heads = heads[1];
  return SetView(query, heads, 0, &problem->query) && SetView(key, heads, 1, &problem->key.fresh) &&
         SetView(value, heads, 2, &problem->value.fresh) && SetView(result, heads, 0, &problem->output);
}

// An attention that returns its weights stores FLOAT16 ones as FLOAT32; separate products are faster.
bool FindingAttention::IsWorthIt(const AttentionProblem& problem) const {
  LoweredOperator lowered;
  if (!ChooseKernel(problem, context_.ForPart(), &lowered).ok()) return false;
  return problem.type == DataType::kFloat32 || !(lowered.abilities & kStoresWeights);
}

void FindingAttention::Replace(Chain chain) {
  const GraphNode& product = graph_.nodes[chain.nodes[0]];
  GraphNode last = graph_.nodes[chain.nodes.back()];
  TakeCopy(&last, &chain);
  GraphNode node;
  node.inputs = {product.inputs[0], product.inputs[1], last.inputs[1]};
  if (chain.mask != nullptr) node.inputs.push_back(chain.mask_operand);
  node.outputs = last.outputs;
  // Kernels rely on the alignment of bindings.
  const auto is_aligned = [&](const GraphOperand& operand) {
    return operand.offset % context_.device->unit_bytes == 0;
  };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_aligned) || !is_aligned(node.outputs[0]))
    return;
  AttentionProblem problem;
  if (!MakeProblem(chain, GemmDesc::From(product.op()->desc), GemmDesc::From(last.op()->desc), &problem) ||
      !IsWorthIt(problem)) {
    return;
  }
  for (const uint32_t number : chain.nodes) {
    GraphNode& replaced = graph_.nodes[number];
    node.name += StrCat(node.name.empty() ? "" : " + ", replaced.name);
    replaced.inputs.clear();
    replaced.outputs.clear();
  }
  graph_.log.push_back(StrCat("attention: ", node.name, " are attention"));
  node.work = problem;
  graph_.nodes[chain.nodes.back()] = std::move(node);
}

}  // namespace

Status FuseAttention(const LowerContext& context, Graph* graph) {
  FindingAttention(context, graph).Run();
  return {};
}

}  // namespace anydml
