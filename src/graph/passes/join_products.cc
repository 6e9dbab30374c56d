// Joins products of one matrix with several weights (queries, keys and values) into one product:
// initialisation puts the weights side by side, and likewise the rows that are added to the products. Readers
// of a product then read columns of the joined one.
//
// All of this must hold:
// - weights are OWNED_BY_DML or constants, nothing else reads them, and each is a single matrix;
// - A, Alpha, TransA, TransB and the type are the same, and what is added (CTensor, or an addition after the
//   product) is an owned or constant row in all of them or in none;
// - there is no activation, neither the product's own nor one that the pass "activation" would merge;
// - results are no graph outputs, and their readers accept the strides of columns (Redirect).
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "graph/passes/passes.h"
#include "graph/passes/rebind_tensors.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Home = GraphValue::Home;

constexpr uint32_t kLateRoundingFlag = 1;  // DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION
constexpr uint64_t kMostElementsOfTensor = (uint64_t{1} << 32) - 1;

OperatorType OperatorTypeOf(const GraphNode& node) {
  return node.op() == nullptr ? OperatorType{} : static_cast<OperatorType>(node.op()->desc.schema->type);
}

bool IsAddition(const GraphNode& node) {
  const OperatorType type = OperatorTypeOf(node);
  return type == OperatorType::kElementWiseAdd || type == OperatorType::kElementWiseAdd1;
}

// Whether the tensor is one row of `columns` numbers, repeated.
bool IsOneRow(const TensorDesc& tensor, uint64_t columns) {
  for (uint32_t d = 0; d + 1 < tensor.rank; ++d) {
    if (tensor.sizes[d] > 1 && tensor.strides[d] != 0) return false;
  }
  return tensor.sizes[tensor.rank - 1] == columns;
}

// A row that is added to every row of a product: its place, as a tensor of one row.
struct AddedRow {
  TensorDesc tensor;
  GraphOperand operand;
};

AddedRow RowOf(TensorDesc tensor, const GraphOperand& operand) {
  for (uint32_t d = 0; d + 1 < tensor.rank; ++d) tensor.sizes[d] = 1;
  return {tensor, operand};
}

// A product that may be joined with others.
struct ProductPart {
  uint32_t product = 0;              // a node
  std::optional<uint32_t> addition;  // the following node that adds `row`
  std::optional<AddedRow> matrix;    // CTensor
  std::optional<AddedRow> row;       // what that addition adds
  uint32_t columns = 0;
};

class JoiningProducts {
 public:
  JoiningProducts(const LowerContext& context, Graph* graph)
      : context_(context), graph_(*graph), uses_(FindUses(*graph)) {}

  void Run() {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      std::vector<ProductPart> parts;
      if (!FindPart(i, &parts)) continue;
      for (const uint32_t reader : uses_[graph_.nodes[i].inputs[0].value].readers) {
        if (reader > i && FindPart(reader, &parts) && !AreAlike(parts.front(), parts.back()))
          parts.pop_back();
      }
      Join(std::move(parts));
    }
    RemoveEmptyNodes(&graph_);
  }

 private:
  // The rewritten readers of the parts, by node index.
  using Readers = std::map<uint32_t, GraphNode>;

  GemmDesc ProductOf(const ProductPart& part) const {
    return GemmDesc::From(graph_.nodes[part.product].op()->desc);
  }
  const GraphOperand& ResultOf(const ProductPart& part) const {
    return graph_.nodes[part.addition.value_or(part.product)].outputs[0];
  }
  // Whether it is known at initialisation.
  bool IsKnown(const GraphOperand& operand) const {
    const GraphValue& value = graph_.values[operand.value];
    return value.home == Home::kConstant || (value.home == Home::kInput && graph_.inputs[value.index].owned);
  }
  // Whether it is all of a value that only this node writes.
  bool IsWhole(const TensorDesc& tensor, const GraphOperand& output) const {
    return output.offset == 0 && graph_.values[output.value].home == Home::kTemporary && IsPacked(tensor) &&
           uses_[output.value].writers.size() == 1;
  }

  // Whether an addition after a product is merged into it.
  bool TakesAdditions(DataType type) const {
    return type == DataType::kFloat32 || (context_.execution_flags & kLateRoundingFlag) != 0;
  }

  bool FindPart(uint32_t node, std::vector<ProductPart>* parts) const;
  bool FindAddition(const GemmDesc& product, uint32_t reader, ProductPart* part) const;
  bool AreAlike(const ProductPart& a, const ProductPart& b) const;
  void Join(std::vector<ProductPart> parts);
  bool MoveReaders(const ProductPart& part, const Detour& detour, Readers* readers) const;
  Detour DetourOf(const ProductPart& part, uint64_t first_column, uint64_t columns, uint32_t whole) const;
  uint32_t JoinWeights(const std::vector<ProductPart>& parts, TensorDesc* whole);
  uint32_t JoinRows(const std::vector<ProductPart>& parts, std::optional<AddedRow> ProductPart::*row,
                    DataType type, uint32_t columns);
  uint32_t AddPrepared(uint64_t bytes);
  void Replace(const std::vector<ProductPart>& parts, const TensorDesc& result, uint32_t value);

  const LowerContext& context_;
  Graph& graph_;
  std::vector<GraphUse> uses_;
};

// Finds the addition of a known row, if that is the only use of the product.
bool JoiningProducts::FindAddition(const GemmDesc& product, uint32_t number, ProductPart* part) const {
  const GraphNode& reader = graph_.nodes[number];
  const uint32_t value = graph_.nodes[part->product].outputs[0].value;
  if (!IsAddition(reader) || number < part->product) return false;
  const OperatorDesc& desc = reader.op()->desc;
  if (OperatorTypeOf(reader) == OperatorType::kElementWiseAdd1 &&
      ElementWiseAdd1Desc::From(desc).fused_activation != nullptr) {
    return false;
  }
  const size_t at = reader.inputs[0].value == value ? 0 : 1;
  const GraphOperand& added = reader.inputs[1 - at];
  const auto tensors = desc.inputs();
  const TensorDesc& sum = *desc.outputs()[0];
  if (added.value == value || reader.inputs[at].offset != 0 || !IsKnown(added)) return false;
  for (const TensorDesc* tensor : {tensors[0], tensors[1], &sum}) {
    if (tensor->type != product.output.type || ElementCount(*tensor) != ElementCount(product.output))
      return false;
  }
  if (!IsPacked(*tensors[at]) || !IsOneRow(*tensors[1 - at], part->columns) ||
      !IsWhole(sum, reader.outputs[0])) {
    return false;
  }
  part->addition = number;
  part->row = RowOf(*tensors[1 - at], added);
  return true;
}

// Appends the node to the parts if it is a suitable product.
bool JoiningProducts::FindPart(uint32_t number, std::vector<ProductPart>* parts) const {
  const GraphNode& node = graph_.nodes[number];
  if (node.outputs.empty() || OperatorTypeOf(node) != OperatorType::kGemm) return false;
  const auto product = GemmDesc::From(node.op()->desc);
  const TensorDesc& output = product.output;
  ProductPart part;
  part.product = number;
  part.columns = output.sizes[output.rank - 1];
  if (ElementCount(output) != uint64_t{output.sizes[output.rank - 2]} * part.columns) return false;
  // The product becomes columns of a wider one and must begin at a whole unit there.
  const uint64_t unit_bits = uint64_t{8} * context_.device->unit_bytes;
  if (part.columns * BitSize(output.type) % unit_bits != 0) return false;
  if (product.fused_activation != nullptr || !IsKnown(node.inputs[1]) || IsKnown(node.inputs[0]))
    return false;
  if (uses_[node.inputs[1].value].readers.size() != 1 || !IsWhole(output, node.outputs[0])) return false;
  if (product.c != nullptr && product.beta != 0) {
    if (!IsKnown(node.inputs[2]) || !IsOneRow(*product.c, part.columns)) return false;
    part.matrix = RowOf(*product.c, node.inputs[2]);
  }
  // If A is a graph output, other nodes may write to it later.
  const auto& writers = uses_[node.inputs[0].value].writers;
  if (std::any_of(writers.begin(), writers.end(), [&](uint32_t writer) { return writer > number; }))
    return false;

  const std::vector<uint32_t>* readers = &uses_[node.outputs[0].value].readers;
  if (readers->size() == 1 && FindAddition(product, readers->front(), &part)) {
    readers = &uses_[ResultOf(part).value].readers;
  } else if (readers->size() == 1 && IsAddition(graph_.nodes[readers->front()]) &&
             TakesAdditions(output.type)) {
    return false;
  }
  if (readers->size() == 1) {
    const GraphNode& reader = graph_.nodes[readers->front()];
    const bool is_activation = reader.op() != nullptr && IsElementWise(reader.op()->desc) &&
                               reader.op()->desc.inputs().size() == 1 &&
                               OperatorTypeOf(reader) != OperatorType::kElementWiseIdentity;
    if (is_activation) return false;
  }
  parts->push_back(part);
  return true;
}

bool JoiningProducts::AreAlike(const ProductPart& a, const ProductPart& b) const {
  const GraphOperand &left = graph_.nodes[a.product].inputs[0], &other = graph_.nodes[b.product].inputs[0];
  const GemmDesc x = ProductOf(a), y = ProductOf(b);
  if (left.value != other.value || left.offset != other.offset || !SameLayout(x.a, y.a)) return false;
  if (x.a.rank != y.a.rank || x.trans_a != y.trans_a || x.trans_b != y.trans_b || x.alpha != y.alpha)
    return false;
  if (a.matrix.has_value() != b.matrix.has_value() || (a.matrix && x.beta != y.beta)) return false;
  return a.addition.has_value() == b.addition.has_value() || !TakesAdditions(x.output.type);
}

uint32_t JoiningProducts::AddPrepared(uint64_t bytes) {
  graph_.values.push_back({.home = Home::kPrepared, .bytes = (bytes + 3) / 4 * 4});
  return static_cast<uint32_t>(graph_.values.size() - 1);
}

uint32_t JoiningProducts::JoinWeights(const std::vector<ProductPart>& parts, TensorDesc* whole) {
  const GemmDesc first = ProductOf(parts.front());
  const bool transposed = first.trans_b == MatrixTransform::kTranspose;
  const uint32_t rank = first.b.rank;
  const uint32_t column = rank - (transposed ? 2 : 1), row = rank - (transposed ? 1 : 2);
  const uint64_t width = BitSize(first.b.type) / 8;
  *whole = first.b;
  whole->owned_by_dml = false;
  whole->sizes[column] = 0;
  for (const ProductPart& part : parts) whole->sizes[column] += part.columns;
  // In the memory order of the weights.
  const bool has_rows = whole->sizes[row] == 1 || first.b.strides[column] <= first.b.strides[row];
  whole->strides = {};
  whole->strides[column] = has_rows ? 1 : whole->sizes[row];
  whole->strides[row] = has_rows ? whole->sizes[column] : 1;
  whole->total_bytes = MinimumTotalBytes(*whole);
  whole->alignment = 0;
  const uint32_t value = AddPrepared(whole->total_bytes);
  uint64_t offset = 0;
  for (const ProductPart& part : parts) {
    const GraphNode& node = graph_.nodes[part.product];
    const TensorDesc& weights = ProductOf(part).b;
    TensorDesc place = *whole;
    place.sizes[column] = part.columns;
    graph_.preparations.push_back(MakeCopy(StrCat("weights of ", node.name), weights.type,
                                           node.inputs[1].value, PlacesOf(weights, node.inputs[1].offset),
                                           value, PlacesOf(place, offset)));
    offset += part.columns * whole->strides[column] * width;
  }
  return value;
}

// Puts the parts' added rows one after the other.
uint32_t JoiningProducts::JoinRows(const std::vector<ProductPart>& parts,
                                   std::optional<AddedRow> ProductPart::*row, DataType type,
                                   uint32_t columns) {
  const uint64_t width = BitSize(type) / 8;
  const uint32_t value = AddPrepared(columns * width);
  uint64_t offset = 0;
  for (const ProductPart& part : parts) {
    const AddedRow& from = *(part.*row);
    TensorDesc place = from.tensor;
    SetPackedStrides(&place);
    graph_.preparations.push_back(MakeCopy(StrCat("row of ", graph_.nodes[part.product].name), type,
                                           from.operand.value, PlacesOf(from.tensor, from.operand.offset),
                                           value, PlacesOf(place, offset)));
    offset += part.columns * width;
  }
  return value;
}

// The tensor as equal rows (stride 0).
TensorDesc OneRowFor(TensorDesc tensor) {
  tensor.strides = {};
  tensor.strides[tensor.rank - 1] = 1;
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}

Detour JoiningProducts::DetourOf(const ProductPart& part, uint64_t first_column, uint64_t columns,
                                 uint32_t whole) const {
  const TensorDesc& output = ProductOf(part).output;
  const auto width = static_cast<int64_t>(BitSize(output.type) / 8);
  const uint64_t rows = output.sizes[output.rank - 2];
  Detour detour = {ResultOf(part).value, whole, {}, {}};
  detour.here.element_bytes = detour.there.element_bytes = static_cast<uint64_t>(width);
  detour.here.loops = {{rows, part.columns * width}, {part.columns, width}};
  detour.there.loops = {{rows, static_cast<int64_t>(columns) * width}, {part.columns, width}};
  detour.there.offset = static_cast<int64_t>(first_column) * width;
  return detour;
}

bool JoiningProducts::MoveReaders(const ProductPart& part, const Detour& detour, Readers* readers) const {
  Readers changed = *readers;
  for (const uint32_t reader : uses_[ResultOf(part).value].readers) {
    GraphNode& node = changed.try_emplace(reader, graph_.nodes[reader]).first->second;
    if (!Redirect(context_, graph_, detour, &node)) return false;
  }
  *readers = std::move(changed);
  return true;
}

// Joins those parts whose readers agree; does nothing if fewer than two remain.
void JoiningProducts::Join(std::vector<ProductPart> parts) {
  if (parts.size() < 2) return;
  const bool adds = std::all_of(parts.begin(), parts.end(), [](const ProductPart& p) { return p.addition; });
  if (!adds) {
    for (ProductPart& part : parts) part.addition.reset();
  }
  const uint64_t steps = ElementCount(ProductOf(parts.front()).b) / parts.front().columns;
  TensorDesc result = ProductOf(parts.front()).output;
  const auto value = static_cast<uint32_t>(graph_.values.size());
  graph_.values.emplace_back();
  for (bool all = false; !all && parts.size() > 1;) {
    uint64_t columns = 0, first_column = 0;
    for (const ProductPart& part : parts) columns += part.columns;
    const uint64_t rows = result.sizes[result.rank - 2];
    if (columns * std::max(rows, steps) > kMostElementsOfTensor) break;
    result.sizes[result.rank - 1] = static_cast<uint32_t>(columns);
    SetPackedStrides(&result);
    result.total_bytes = MinimumTotalBytes(result);
    // A part that begins in the middle of a word has a rounded-up size that may reach beyond the result.
    graph_.values[value].bytes = result.total_bytes + 4;
    Readers readers;
    std::vector<ProductPart> agreed;
    for (const ProductPart& part : parts) {
      if (MoveReaders(part, DetourOf(part, first_column, columns, value), &readers)) agreed.push_back(part);
      first_column += part.columns;
    }
    all = agreed.size() == parts.size();
    parts = std::move(agreed);
    if (!all) continue;
    for (auto& [number, node] : readers) graph_.nodes[number] = std::move(node);
    Replace(parts, result, value);
    return;
  }
  graph_.values.pop_back();
}

// Replaces the parts' nodes by one product and, if they have additions, one addition, which writes `value`.
void JoiningProducts::Replace(const std::vector<ProductPart>& parts, const TensorDesc& result,
                              uint32_t value) {
  GraphNode product = graph_.nodes[parts.front().product];
  OperatorDesc& desc = product.op()->desc;
  const auto field = [](OperatorDesc& of, const char* name) -> FieldValue& {
    return of.fields[static_cast<size_t>(FindField(*of.schema, name))];
  };
  const uint32_t columns = result.sizes[result.rank - 1];
  TensorDesc weights;
  product.inputs[1] = {JoinWeights(parts, &weights)};
  if (parts.front().matrix) {
    product.inputs[2] = {JoinRows(parts, &ProductPart::matrix, result.type, columns)};
    field(desc, "CTensor") = OneRowFor(result);
  } else {  // a CTensor that is present has Beta 0, so it is dropped
    product.inputs[2] = {};
    field(desc, "CTensor") = std::monostate();
  }
  field(desc, "BTensor") = weights;
  field(desc, "OutputTensor") = result;
  product.outputs = {{value}};

  std::optional<GraphNode> sum;
  if (parts.front().addition) {
    sum = graph_.nodes[*parts.front().addition];
    OperatorDesc& addition = sum->op()->desc;
    field(addition, "ATensor") = result;
    field(addition, "BTensor") = OneRowFor(result);
    field(addition, "OutputTensor") = result;
    graph_.values.push_back({.bytes = graph_.values[value].bytes});
    product.outputs = {{static_cast<uint32_t>(graph_.values.size() - 1)}};
    sum->inputs = {product.outputs[0], {JoinRows(parts, &ProductPart::row, result.type, columns)}};
    sum->outputs = {{value}};
  }
  uint32_t first_addition = kNoValue;
  const auto clear = [&](uint32_t number, std::string* names) {
    GraphNode& node = graph_.nodes[number];
    if (!node.name.empty()) *names += StrCat(names->empty() ? "" : " + ", node.name);
    node.inputs.clear();
    node.outputs.clear();
  };
  product.name.clear();
  if (sum) sum->name.clear();
  for (const ProductPart& part : parts) {
    clear(part.product, &product.name);
    if (!part.addition) continue;
    clear(*part.addition, &sum->name);
    first_addition = std::min(first_addition, *part.addition);
  }
  graph_.log.push_back(StrCat("products: ", product.name, " are one product"));
  if (sum) graph_.nodes[first_addition] = *std::move(sum);
  graph_.nodes[parts.front().product] = std::move(product);
  uses_ = FindUses(graph_);
}

}  // namespace

Status JoinProducts(const LowerContext& context, Graph* graph) {
  JoiningProducts(context, graph).Run();
  return {};
}

}  // namespace anydml
