#include "ops/attention/operands.h"

namespace anydml {
namespace {

template <typename T>
const T* DataOf(std::span<const Buffer> buffers, const AttentionView& view) {
  return view.exists ? reinterpret_cast<const T*>(buffers[view.binding].data) : nullptr;
}

const int32_t* LengthsIn(const KernelArguments& arguments, const AttentionLengths& lengths) {
  if (!lengths.exists) return nullptr;
  return reinterpret_cast<const int32_t*>(
      arguments.inputs[static_cast<uint32_t>(AttentionInput::kPastLengths)].data);
}

}  // namespace

AttentionOperands::AttentionOperands(const AttentionProblem& problem, const Needs& needs)
    : problem_(problem),
      weights_{.batch = problem.batch,
               .heads = problem.heads,
               .queries = problem.queries,
               .keys = problem.keys,
               .position_bias = problem.position_bias,
               .mask = problem.mask,
               .lengths = problem.lengths} {
  query_ = QueryOperand(needs);
  key_ = RowsOperand(problem.key, needs.matching_types && problem.query_bias.exists, needs, "keys");
  value_ = RowsOperand(problem.value, needs.matching_types, needs, "values");
}

bool AttentionOperands::IsPlain(const AttentionView& view, uint64_t heads) const {
  constexpr uint64_t kAlignmentOfBindings = 16;
  return view.offset * (BitSize(problem_.type) / 8) % kAlignmentOfBindings == 0 && HasOneStride(view, heads);
}

void AttentionOperands::AddCopy(Operand* operand, bool copy_is_half, const char* name) {
  AttentionJoin& join = operand->join;
  join.has_copy = operand->joins = true;
  join.copy_is_half = copy_is_half;
  operand->type = copy_is_half ? DataType::kFloat16 : DataType::kFloat32;
  const uint64_t head = join.rows * join.columns;
  operand->view = {.exists = true, .batch = join.heads * head, .head = head, .row = join.columns};
  operand->copy = AddScratch(name, join.batch * join.heads * head * (BitSize(operand->type) / 8));
}

// `wide`: as FLOAT32.
AttentionOperands::Operand AttentionOperands::RowsOperand(const AttentionRows& rows, bool wide,
                                                          const Needs& needs, const char* name) {
  const AttentionProblem& p = problem_;
  Operand operand;
  operand.join = {.batch = p.batch,
                  .heads = p.KeyHeads(),
                  .rows = p.keys,
                  .columns = rows.columns,
                  .past = p.past,
                  .fresh = p.fresh,
                  .past_view = p.lengths.exists ? rows.present : rows.past,
                  .fresh_view = rows.fresh,
                  .bias = rows.bias,
                  .present = rows.present,
                  .lengths = p.lengths};
  operand.joins = rows.present.exists;
  operand.view = rows.fresh.exists ? rows.fresh : rows.past;
  operand.type = p.type;
  const bool in_two = p.lengths.exists || (rows.past.exists && rows.fresh.exists);
  const bool converts = wide && is_half();
  if (!needs.matrices) return operand;
  if (in_two || converts || rows.bias.exists || (needs.one_stride && !IsPlain(operand.view, p.KeyHeads()))) {
    // Sums with a bias are not rounded before use.
    AddCopy(&operand, is_half() && !wide && !rows.bias.exists, name);
  }
  return operand;
}

AttentionOperands::Operand AttentionOperands::QueryOperand(const Needs& needs) {
  const AttentionProblem& p = problem_;
  Operand operand;
  operand.join = {.batch = p.batch,
                  .heads = p.heads,
                  .rows = p.queries,
                  .columns = p.key.columns,
                  .fresh = p.queries,
                  .fresh_view = p.query,
                  .bias = p.query_bias};
  operand.view = p.query;
  operand.type = p.type;
  if (!needs.matrices) return operand;
  if (p.query_bias.exists || !RowsAreEven() || (needs.one_stride && !IsPlain(p.query, p.heads))) {
    AddCopy(&operand, is_half() && !p.query_bias.exists, "queries");
  }
  return operand;
}

void AttentionOperands::RunJoin(const Operand& operand, const KernelArguments& arguments) const {
  if (!operand.joins) return;
  const AttentionJoin& join = operand.join;
  AttentionJoinMemory memory;
  memory.past = DataOf<std::byte>(join.lengths.exists ? arguments.outputs : arguments.inputs, join.past_view);
  memory.fresh = DataOf<std::byte>(arguments.inputs, join.fresh_view);
  memory.bias = DataOf<std::byte>(arguments.inputs, join.bias);
  memory.lengths = LengthsIn(arguments, join.lengths);
  if (join.present.exists) memory.present = arguments.outputs[join.present.binding].data;
  if (join.has_copy) memory.copy = operand.copy.In<std::byte>(arguments.temporary);
  Join(join, memory, arguments);
}

void AttentionOperands::RunJoins(const KernelArguments& arguments) const {
  for (const Operand* operand : {&query_, &key_, &value_}) RunJoin(*operand, arguments);
}

Buffer AttentionOperands::BufferOf(const Operand& operand, const KernelArguments& arguments) const {
  if (operand.join.has_copy) return operand.copy.In(arguments.temporary);
  const Buffer& buffer = arguments.inputs[operand.view.binding];
  const uint64_t skipped = operand.view.offset * (BitSize(operand.type) / 8);
  return {buffer.data + skipped, buffer.size - skipped};
}

AttentionWeightsMemory AttentionOperands::WeightsMemory(const KernelArguments& arguments) const {
  return {DataOf<std::byte>(arguments.inputs, weights_.position_bias),
          DataOf<int32_t>(arguments.inputs, weights_.mask.view), LengthsIn(arguments, weights_.lengths)};
}

}  // namespace anydml
