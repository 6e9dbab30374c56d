// AttentionOperands::Join on a GPU, and where rows are behind it.
#pragma once

#include "ops/attention/operands.h"

namespace anydml {

// Kernels that take the power of 2 of scaled logits, and cuDNN, are for scales from this on.
inline constexpr float kLeastAttentionScale = 0x1p-60f;

// Rows of the past and new ones are together once the present outputs are written; those of one kind alone
// are where they were.
inline bool AreInPresent(const AttentionProblem& problem, const AttentionRows& rows) {
  return problem.lengths.exists || (rows.past.exists && rows.fresh.exists);
}
inline const AttentionView& RowsOf(const AttentionProblem& problem, const AttentionRows& rows) {
  return AreInPresent(problem, rows) ? rows.present : rows.fresh.exists ? rows.fresh : rows.past;
}

// Their view, and the tensor it is in.
template <typename T>
void SetRows(const AttentionProblem& problem, const AttentionRows& rows, const KernelArguments& arguments,
             AttentionView* view, const T** data) {
  *view = RowsOf(problem, rows);
  const auto& buffers = AreInPresent(problem, rows) ? arguments.outputs : arguments.inputs;
  *data = reinterpret_cast<const T*>(buffers[view->binding].data);
}

// Whether rows can be moved by units of so many elements.
inline bool HasUnits(const AttentionView& view, uint64_t columns, uint64_t elements) {
  return view.column == 1 && (columns | view.offset | view.batch | view.head | view.row) % elements == 0;
}

void JoinOnDevice(const AttentionJoin& join, const AttentionJoinMemory& memory, bool is_half, void* stream);

}  // namespace anydml
