// The cells of RNN, LSTM and GRU: compute a step's gates and state of a row from its sums.
#pragma once

#include <vector>

#include "ops/numbers/epilogue.h"
#include "ops/recurrent/cpu/lstm_row.h"
#include "ops/recurrent/problem.h"
#include "ops/recurrent/steps.h"

namespace anydml {

// One direction of one element of the batch: the state, and sums that become gates in place.
struct CellRow {
  uint64_t units;           // the number of units in this row
  uint64_t all;             // the cell's number of units: the distance between gates, except in sums
  const float* from_input;  // gate after gate; null: included in from_state
  float* from_state;
  uint64_t gate_stride;  // of from_state
  float* from_reset;
  const float* before;  // the previous hidden state, which may be in the place of the new one
  float* hidden;
  float* cell;
  float* reset;
  const float* bias;        // null: none
  const float* state_bias;  // null: none
  const float* peephole;    // null: none

  float* gate(uint32_t number) const { return from_state + number * gate_stride; }
};

class RecurrentCells {
 public:
  // Keeps a reference to the problem.
  explicit RecurrentCells(const RecurrentProblem& problem);

  void Run(GatePhase phase, uint32_t direction, const CellRow& row) const;

 private:
  void RunLstm(uint32_t direction, const CellRow& row) const;
  void RunGruGates(uint32_t direction, const CellRow& row) const;
  void RunGru(uint32_t direction, const CellRow& row) const;
  void Activate(uint32_t direction, uint32_t number, float* numbers, uint64_t units) const;
  void Softmax(float* numbers, uint64_t count) const;

  const RecurrentProblem& p_;
  std::vector<Epilogue> epilogues_;  // for the directions' activations
  Epilogue exp_;
  RunLstmRow* run_lstm_;  // null: functions one by one
};

}  // namespace anydml
