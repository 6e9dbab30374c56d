// AttentionOperands::Join on a GPU, and the place of the rows after it.
#pragma once

#include "ops/attention/operands.h"

namespace anydml {

// The smallest scale for cuDNN, and for kernels that compute powers of 2 of scaled logits.
inline constexpr float kLeastAttentionScale = 0x1p-60f;

// Past and new rows are together after the present outputs are written; if there is only one kind, it stays
// in place.
inline bool AreInPresent(const AttentionProblem& problem, const AttentionRows& rows) {
  return problem.lengths.exists || (rows.past.exists && rows.fresh.exists);
}
inline const AttentionView& RowsOf(const AttentionProblem& problem, const AttentionRows& rows) {
  return AreInPresent(problem, rows) ? rows.present : rows.fresh.exists ? rows.fresh : rows.past;
}

// Their view, and the tensor that contains it.
template <typename T>
void SetRows(const AttentionProblem& problem, const AttentionRows& rows, const KernelArguments& arguments,
             AttentionView* view, const T** data) {
  *view = RowsOf(problem, rows);
  const auto& buffers = AreInPresent(problem, rows) ? arguments.outputs : arguments.inputs;
  *data = reinterpret_cast<const T*>(buffers[view->binding].data);
}

// Whether rows can be moved in units of `elements` elements.
inline bool HasUnits(const AttentionView& view, uint64_t columns, uint64_t elements) {
  return view.column == 1 && (columns | view.offset | view.batch | view.head | view.row) % elements == 0;
}

void JoinOnDevice(const AttentionJoin& join, const AttentionJoinMemory& memory, bool is_half, void* stream);

}  // namespace anydml
