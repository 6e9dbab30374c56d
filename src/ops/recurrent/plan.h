// Plan of the gates of one step of recurrent cells on a GPU: blocks and parameters. Plain data, the same for
// every GPU backend; the backend adds addresses, the step, and launches. The matrix products of a step are
// separate launches (recurrent/steps.h). A block processes one direction of one batch element: some of its
// units, or all units if an activation depends on all.
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

// The part of an activation's program that kernels read.
Activation ActivationOf(const CellActivation& from);

struct DeviceTensor {
  std::byte* data;  // null: absent
  uint64_t strides[4];
};

// `data` is ignored if the tensor is absent.
DeviceTensor TensorOf(const std::optional<TensorDesc>& tensor, std::byte* data = nullptr);

inline constexpr uint32_t kGateThreads = 256;  // per block, at most

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
  Grid grid;                                  // blocks continue with further ones
};

// `state_gates`: gates that are computed from the state by products.
RecurrentGatesPlan MakeRecurrentGatesPlan(const RecurrentProblem& problem, uint32_t state_gates);

}  // namespace anydml
