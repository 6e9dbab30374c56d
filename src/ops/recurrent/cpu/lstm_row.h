// The gates of an LSTM as nearly all are, in registers from the sums to the state.
#pragma once

#include <cstdint>

namespace anydml {

// Some units of an element of the batch: SIGMOID of the gates, TANH of what they let in and of the cell
// state, neither peepholes nor coupled gates. The same numbers as those of functions and steps one by one.
struct LstmRow {
  uint64_t units;
  uint64_t all;             // from one gate to the next, but in from_state
  const float* from_input;  // gates i, o, f, c
  const float* from_state;
  uint64_t gate_stride;  // of from_state
  const float* bias;     // null: none
  const float* state_bias;
  float* cell;
  float* hidden;
};

using RunLstmRow = void(const LstmRow& row);
// On this processor; null: there is none.
RunLstmRow* FindLstmRow();

}  // namespace anydml
