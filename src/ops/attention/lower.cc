#include "ops/attention/fields.h"
#include "ops/common/checks.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

using In = AttentionInput;
using Out = AttentionOutput;

// The stride of dimension `from_end`, counted from the last; 0 if it has one element or does not exist.
uint64_t StrideOf(const TensorDesc& tensor, uint32_t from_end) {
  if (from_end >= tensor.rank) return 0;
  const uint32_t d = tensor.rank - 1 - from_end;
  return tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
}

uint64_t ColumnStride(const TensorDesc& tensor, uint64_t columns) {
  return columns == 1 ? 1 : StrideOf(tensor, 0);
}

// {batch, row, heads side by side}
AttentionView HeadsInRows(const TensorDesc& tensor, uint32_t binding, uint64_t columns) {
  return {.exists = true,
          .binding = binding,
          .batch = StrideOf(tensor, 2),
          .head = columns * StrideOf(tensor, 0),
          .row = StrideOf(tensor, 1),
          .column = ColumnStride(tensor, columns)};
}

// {batch, head, row, column}
AttentionView HeadsApart(const TensorDesc& tensor, uint32_t binding) {
  return {.exists = true,
          .binding = binding,
          .batch = StrideOf(tensor, 3),
          .head = StrideOf(tensor, 2),
          .row = StrideOf(tensor, 1),
          .column = ColumnStride(tensor, tensor.sizes[tensor.rank - 1])};
}

AttentionView ViewOf(const AttentionSource& source, uint64_t columns) {
  const auto binding = static_cast<uint32_t>(source.input);
  const TensorDesc& tensor = *source.tensor;
  if (source.stacked == 0) return HeadsInRows(tensor, binding, columns);
  // {batch, row, head, stack, column}
  return {.exists = true,
          .binding = binding,
          .offset = source.place * StrideOf(tensor, 1),
          .batch = StrideOf(tensor, 4),
          .head = StrideOf(tensor, 2),
          .row = StrideOf(tensor, 3),
          .column = ColumnStride(tensor, columns)};
}

// For heads that follow each other from element `first` on.
AttentionView BiasView(const TensorDesc& bias, uint64_t first, uint64_t columns) {
  const uint64_t step = StrideOf(bias, 0);
  return {.exists = true,
          .binding = static_cast<uint32_t>(In::kBias),
          .offset = first * step,
          .head = columns * step,
          .column = ColumnStride(bias, columns)};
}

AttentionMask MaskOf(const AttentionFields& fields) {
  AttentionMask mask = {.type = fields.mask_type, .value = fields.mask_filter_value};
  const TensorDesc* const tensor = fields.input(In::kMask);
  if (tensor == nullptr) return mask;
  mask.view = {.exists = true,
               .binding = static_cast<uint32_t>(In::kMask),
               .batch = StrideOf(*tensor, 3),
               .head = StrideOf(*tensor, 2),
               .row = StrideOf(*tensor, 1),
               .column = StrideOf(*tensor, 0)};
  return mask;
}

AttentionLengths LengthsOf(const AttentionFields& fields, const AttentionSizes& sizes) {
  const TensorDesc* const tensor = fields.input(In::kPastLengths);
  if (tensor == nullptr) return {};
  AttentionLengths lengths = {.exists = true, .most = sizes.keys - sizes.fresh};
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    if (tensor->sizes[d] != 1) lengths.stride = tensor->strides[d];
  }
  return lengths;
}

AttentionRows RowsOf(const AttentionFields& fields, const AttentionSource& fresh, In past, Out present,
                     uint64_t columns) {
  AttentionRows rows = {.columns = columns};
  if (fresh.tensor != nullptr) rows.fresh = ViewOf(fresh, columns);
  if (const TensorDesc* const tensor = fields.input(past)) {
    rows.past = HeadsApart(*tensor, static_cast<uint32_t>(past));
  }
  if (const TensorDesc* const tensor = fields.output(present)) {
    rows.present = HeadsApart(*tensor, static_cast<uint32_t>(present));
  }
  return rows;
}

AttentionProblem ProblemOf(const AttentionFields& fields, const AttentionSizes& sizes) {
  AttentionProblem problem;
  problem.type = sizes.query.tensor->type;
  problem.batch = sizes.batch;
  problem.queries = sizes.queries;
  problem.past = sizes.past;
  problem.fresh = sizes.fresh;
  problem.keys = sizes.keys;
  problem.heads = fields.heads;
  problem.group = fields.heads / fields.key_heads;
  problem.query = ViewOf(sizes.query, sizes.size);
  problem.key = RowsOf(fields, sizes.key, In::kPastKey, Out::kPresentKey, sizes.size);
  problem.value = RowsOf(fields, sizes.value, In::kPastValue, Out::kPresentValue, sizes.value_size);
  if (const TensorDesc* const bias = fields.input(In::kBias)) {
    const uint64_t key = fields.heads * sizes.size, value = key + fields.key_heads * sizes.size;
    problem.query_bias = BiasView(*bias, 0, sizes.size);
    // The bias is already included in the past.
    if (problem.key.fresh.exists) {
      problem.key.bias = BiasView(*bias, key, sizes.size);
      problem.value.bias = BiasView(*bias, value, sizes.value_size);
    }
  }
  if (const TensorDesc* const bias = fields.input(In::kPositionBias)) {
    problem.position_bias = HeadsApart(*bias, static_cast<uint32_t>(In::kPositionBias));
  }
  problem.mask = MaskOf(fields);
  problem.lengths = LengthsOf(fields, sizes);
  problem.output =
      HeadsInRows(*fields.output(Out::kOutput), static_cast<uint32_t>(Out::kOutput), sizes.value_size);
  problem.scale = fields.scale;
  return problem;
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const AttentionFields fields = FieldsOf(desc);
  AttentionSizes sizes;
  ANYDML_RETURN_IF_ERROR(ReadAttentionSizes(fields, &sizes));
  return CheckAttentionOutputs(fields, sizes);
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const AttentionFields fields = FieldsOf(desc);
  AttentionSizes sizes;
  ANYDML_RETURN_IF_ERROR(ReadAttentionSizes(fields, &sizes));
  return ChooseKernel(ProblemOf(fields, sizes), context, out);
}

// A requested present output; with lengths only the caller knows how many rows it has.
void FillPresent(OperatorDesc* desc, const char* name, DataType type, const Dimensions& sizes) {
  if (desc->tensor(name) != nullptr) FillTensor(desc, name, type, sizes, 4);
}

Status Infer(OperatorDesc* desc) {
  const AttentionFields fields = FieldsOf(*desc);
  AttentionSizes sizes;
  ANYDML_RETURN_IF_ERROR(ReadAttentionSizes(fields, &sizes));
  const auto narrow = [](uint64_t size) { return static_cast<uint32_t>(size); };
  const DataType type = sizes.query.tensor->type;
  const uint32_t heads = fields.heads, key_heads = fields.key_heads;
  const uint32_t batch = narrow(sizes.batch), keys = narrow(sizes.keys);
  FillTensor(desc, "OutputTensor", type, {batch, narrow(sizes.queries), narrow(heads * sizes.value_size)}, 3);
  FillPresent(desc, "OutputPresentKeyTensor", type, {batch, key_heads, keys, narrow(sizes.size)});
  FillPresent(desc, "OutputPresentValueTensor", type, {batch, key_heads, keys, narrow(sizes.value_size)});
  return {};
}

}  // namespace

std::span<const Operator> AttentionOperators() {
  static const Operator operators[] = {
      {static_cast<uint32_t>(OperatorType::kMultiheadAttention), Check, Lower, Infer,
       AttentionProblem::kFamily, kPlainTraits.With(Strides::kRestricted)},
      {static_cast<uint32_t>(OperatorType::kMultiheadAttention1), Check, Lower, Infer,
       AttentionProblem::kFamily, kPlainTraits.With(Strides::kRestricted)},
  };
  return operators;
}

namespace family::attention {

void RegisterOperators(OperatorList* all) { all->Add(AttentionOperators()); }

}  // namespace family::attention

}  // namespace anydml
