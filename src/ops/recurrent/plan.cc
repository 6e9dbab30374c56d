#include "ops/recurrent/plan.h"

#include <algorithm>

namespace anydml {
namespace recurrent {

Activation ActivationOf(const CellActivation& from) {
  Activation to = {};
  for (const Instruction& instruction : from.program.instructions) {
    to.functions[to.count++] = {
        instruction.function,
        {static_cast<uint32_t>(instruction.parameters[0]), static_cast<uint32_t>(instruction.parameters[1])}};
  }
  to.row = from.row;
  return to;
}

DeviceTensor TensorOf(const std::optional<TensorDesc>& tensor, std::byte* data) {
  DeviceTensor result = {};
  if (!tensor) return result;
  result.data = data;
  std::copy_n(tensor->strides.begin(), 4, result.strides);
  return result;
}

}  // namespace recurrent

RecurrentGatesPlan MakeRecurrentGatesPlan(const RecurrentProblem& problem, uint32_t state_gates) {
  using namespace recurrent;
  constexpr uint64_t kMostBlocks = uint64_t{1} << 30;
  RecurrentGatesPlan plan;
  GateParameters& p = plan.parameters;
  p.sequence = TensorOf(problem.sequence);
  p.single = TensorOf(problem.single);
  p.cell_single = TensorOf(problem.cell_single);
  p.lengths_stride = problem.lengths ? problem.lengths->strides[3] : 0;
  p.steps = problem.steps;
  p.batch = static_cast<uint32_t>(problem.batch);
  p.units = static_cast<uint32_t>(problem.units);
  p.gates = problem.gates();
  p.state_gates = state_gates;
  p.kind = problem.kind;
  p.couples_input_and_forget = problem.couples_input_and_forget;
  p.linear_before_reset = problem.linear_before_reset;
  p.first_is_backward = problem.first_is_backward;
  p.type = problem.type;
  bool whole_rows = false;
  for (uint32_t direction = 0; direction < problem.directions; ++direction) {
    for (uint32_t i = 0; i < kMaxCellActivations; ++i) {
      p.activations[direction][i] = ActivationOf(problem.activations[direction][i]);
      whole_rows = whole_rows || problem.activations[direction][i].row != RowFunction::kNone;
    }
  }
  // Whole warps, because all their threads take part in functions of a row.
  const uint32_t threads = (std::min(p.units, kGateThreads) + 31) / 32 * 32;
  p.blocks_per_row = whole_rows ? 1 : static_cast<uint32_t>(CeilDivide(p.units, threads));
  p.blocks = problem.directions * problem.batch * p.blocks_per_row;
  plan.grid = {std::min(p.blocks, kMostBlocks), threads};
  return plan;
}

}  // namespace anydml
