// How a GPU runs the gates of a step of recurrent cells: in how many blocks, with which parameters. Plain
// data, the same for every GPU backend, which adds addresses, the step, and launches; the products of a step
// are launches of their own (recurrent/steps.h). A block has a direction of an element of the batch, and of
// that some units, or all of them where an activation is a function of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/device/grid.h"
#include "ops/recurrent/problem.h"
#include "ops/recurrent/steps.h"

namespace anydml {
namespace recurrent {

inline constexpr uint32_t kMaxFunctions = 2;  // clipping, and the activation

struct Function {
  ElementFunction name;
  uint32_t parameters[2];
};

struct Activation {
  Function functions[kMaxFunctions];
  uint32_t count;
  RowFunction row;
};

// Of an activation's program what kernels look at.
Activation ActivationOf(const CellActivation& from);

struct DeviceTensor {
  std::byte* data;  // null: absent
  uint64_t strides[4];
};

// `data` is ignored if there is no tensor.
DeviceTensor TensorOf(const std::optional<TensorDesc>& tensor, std::byte* data = nullptr);

inline constexpr uint32_t kGateThreads = 256;  // of a block, at most

struct GateParameters {
  GateBuffers buffers;
  DeviceTensor sequence, single, cell_single;
  uint64_t lengths_stride;
  uint64_t step, steps;
  uint32_t batch, units;
  uint32_t gates, state_gates;
  uint32_t blocks_per_row;
  uint64_t blocks;
  Activation activations[2][kMaxCellActivations];
  CellKind kind;
  GatePhase phase;
  bool couples_input_and_forget, linear_before_reset;
  bool first_is_backward;
  DataType type;
};

}  // namespace recurrent

struct RecurrentGatesPlan {
  recurrent::GateParameters parameters = {};  // without addresses and the step
  Grid grid;                                  // whose blocks go on with further ones
};

// `state_gates`: that are computed from the state by products.
RecurrentGatesPlan MakeRecurrentGatesPlan(const RecurrentProblem& problem, uint32_t state_gates);

}  // namespace anydml
