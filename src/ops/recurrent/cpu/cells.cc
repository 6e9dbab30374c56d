#include "ops/recurrent/cpu/cells.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/reduce/accumulate.h"

namespace anydml {
namespace {

float Canonical(float x) { return std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x; }

// Adds the contribution of the input, and the biases, to that of the state.
void AddUp(const CellRow& row, uint32_t gate, float* sums) {
  const uint64_t first = gate * row.all;
  if (row.from_input != nullptr) {
    const float* const from_input = row.from_input + first;
    for (uint64_t i = 0; i < row.units; ++i) sums[i] += from_input[i];
  }
  if (row.bias == nullptr) return;
  const float *const bias = row.bias + first, *const state_bias = row.state_bias + first;
  for (uint64_t i = 0; i < row.units; ++i) sums[i] += bias[i] + state_bias[i];
}

void AddPeephole(const CellRow& row, uint32_t gate, float* sums) {
  if (row.peephole == nullptr) return;
  const float* const weights = row.peephole + gate * row.all;
  for (uint64_t i = 0; i < row.units; ++i) sums[i] += weights[i] * row.cell[i];
}

ElementProgram ExpProgram() {
  ElementProgram program;
  program.Apply(ElementFunction::kExp, Class::kF32, {program.NewRegister()});
  return program;
}

bool IsOnly(const CellActivation& activation, ElementFunction function) {
  const auto& instructions = activation.program.instructions;
  return activation.row == RowFunction::kNone && instructions.size() == 1 &&
         instructions[0].function == function;
}

// See LstmRow.
bool IsUsualLstm(const RecurrentProblem& problem) {
  if (problem.kind != CellKind::kLstm || problem.couples_input_and_forget || problem.peephole) return false;
  for (uint32_t d = 0; d < problem.directions; ++d) {
    const auto& activations = problem.activations[d];
    if (!IsOnly(activations[0], ElementFunction::kSigmoid) ||
        !IsOnly(activations[1], ElementFunction::kTanh) || !IsOnly(activations[2], ElementFunction::kTanh)) {
      return false;
    }
  }
  return true;
}

}  // namespace

RecurrentCells::RecurrentCells(const RecurrentProblem& problem)
    : p_(problem), exp_(ExpProgram()), run_lstm_(IsUsualLstm(problem) ? FindLstmRow() : nullptr) {
  for (const auto& direction : problem.activations) {
    for (const CellActivation& activation : direction) epilogues_.emplace_back(activation.program);
  }
}

void RecurrentCells::Run(GatePhase phase, uint32_t direction, const CellRow& row) const {
  switch (p_.kind) {
    case CellKind::kRnn:
      AddUp(row, 0, row.from_state);
      Activate(direction, 0, row.from_state, row.units);
      for (uint64_t i = 0; i < row.units; ++i) row.hidden[i] = Canonical(row.from_state[i]);
      return;
    case CellKind::kLstm:
      return RunLstm(direction, row);
    case CellKind::kGru:
      if (phase != GatePhase::kAfterReset) RunGruGates(direction, row);
      if (phase == GatePhase::kReset) {
        for (uint64_t i = 0; i < row.units; ++i) row.reset[i] = row.gate(1)[i] * row.hidden[i];
        return;
      }
      return RunGru(direction, row);
  }
}

void RecurrentCells::RunLstm(uint32_t direction, const CellRow& row) const {
  if (run_lstm_ != nullptr) {
    return run_lstm_({row.units, row.all, row.from_input, row.from_state, row.gate_stride, row.bias,
                      row.state_bias, row.cell, row.hidden});
  }
  float *const i = row.gate(0), *const o = row.gate(1), *const f = row.gate(2), *const c = row.gate(3);
  AddUp(row, 0, i);
  AddPeephole(row, 0, i);
  Activate(direction, 0, i, row.units);
  if (p_.couples_input_and_forget) {
    for (uint64_t u = 0; u < row.units; ++u) f[u] = 1 - i[u];
  } else {
    AddUp(row, 2, f);
    AddPeephole(row, 2, f);
    Activate(direction, 0, f, row.units);
  }
  AddUp(row, 3, c);
  Activate(direction, 1, c, row.units);
  for (uint64_t u = 0; u < row.units; ++u) {
    const float kept = f[u] * row.cell[u], added = i[u] * c[u];
    row.cell[u] = c[u] = Canonical(kept + added);
  }
  AddUp(row, 1, o);
  AddPeephole(row, 1, o);
  Activate(direction, 0, o, row.units);
  Activate(direction, 2, c, row.units);
  for (uint64_t u = 0; u < row.units; ++u) row.hidden[u] = Canonical(o[u] * c[u]);
}

void RecurrentCells::RunGruGates(uint32_t direction, const CellRow& row) const {
  for (const uint32_t gate : {0u, 1u}) {
    AddUp(row, gate, row.gate(gate));
    Activate(direction, 0, row.gate(gate), row.units);
  }
}

void RecurrentCells::RunGru(uint32_t direction, const CellRow& row) const {
  const float *const z = row.gate(0), *const r = row.gate(1);
  float* const h = p_.linear_before_reset ? row.gate(2) : row.from_reset;
  if (!p_.linear_before_reset) {
    AddUp(row, 2, h);
  } else {
    const uint64_t first = 2 * row.all;
    for (uint64_t u = 0; u < row.units; ++u) {
      const bool has_bias = row.bias != nullptr;
      const float from_state = has_bias ? h[u] + row.state_bias[first + u] : h[u];
      const float sum = row.from_input[first + u] + r[u] * from_state;
      h[u] = has_bias ? sum + row.bias[first + u] : sum;
    }
  }
  Activate(direction, 1, h, row.units);
  for (uint64_t u = 0; u < row.units; ++u) {
    const float added = (1 - z[u]) * h[u], kept = z[u] * row.before[u];
    row.hidden[u] = Canonical(added + kept);
  }
}

void RecurrentCells::Activate(uint32_t direction, uint32_t number, float* numbers, uint64_t units) const {
  epilogues_[direction * kMaxCellActivations + number].Apply(numbers, units);
  switch (p_.activations[direction][number].row) {
    case RowFunction::kNone:
      return;
    case RowFunction::kSoftmax:
      return Softmax(numbers, units);
    case RowFunction::kHardmax: {
      auto best = reduce::Position<false, false, float>::Start();
      for (uint64_t i = 0; i < units; ++i) best.Add(numbers[i], static_cast<uint32_t>(i));
      std::fill_n(numbers, units, 0.0f);
      numbers[best.second] = 1;
      return;
    }
  }
}

// A NaN makes the sum NaN.
void RecurrentCells::Softmax(float* numbers, uint64_t count) const {
  const float max = *std::max_element(numbers, numbers + count);
  for (uint64_t i = 0; i < count; ++i) numbers[i] -= max;
  exp_.Apply(numbers, count);
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += numbers[i];
  for (uint64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(numbers[i] / sum);
}

}  // namespace anydml
