// The gates of the common form of LSTM, in registers from the sums to the state.
#pragma once

#include <cstdint>

namespace anydml {

// Some units of an element of the batch: SIGMOID for the gates, TANH for their input and for the cell state,
// neither peepholes nor coupled gates. The results equal those of separate functions and steps.
struct LstmRow {
  uint64_t units;
  uint64_t all;             // between gates, except in from_state
  const float* from_input;  // gates i, o, f, c
  const float* from_state;
  uint64_t gate_stride;  // of from_state
  const float* bias;     // null: none
  const float* state_bias;
  float* cell;
  float* hidden;
};

using RunLstmRow = void(const LstmRow& row);
// For this processor; null: not available.
RunLstmRow* FindLstmRow();

}  // namespace anydml
