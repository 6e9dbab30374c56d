// RNN, LSTM and GRU: cells whose state goes from one step of a sequence to the next, forward, backward or
// both.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ops/element/program.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> RecurrentOperators();

enum class CellKind : uint8_t { kRnn, kLstm, kGru };

inline constexpr uint32_t kMaxCellActivations = 3;

constexpr uint32_t GatesOf(CellKind kind) {
  return kind == CellKind::kRnn ? 1 : kind == CellKind::kLstm ? 4 : 3;
}
// Per direction: f for the gates, g for their input, h for LSTM's cell state.
constexpr uint32_t ActivationsOf(CellKind kind) {
  return kind == CellKind::kRnn ? 1 : kind == CellKind::kLstm ? 3 : 2;
}

// A function of all units of a batch's element together.
enum class RowFunction : uint8_t { kNone, kSoftmax, kHardmax };

struct CellActivation {
  ElementProgram program;                // on register 0, FLOAT32: clipping, then an element-wise function
  RowFunction row = RowFunction::kNone;  // applied after the program
};

struct RecurrentProblem {
  static constexpr std::string_view kFamily = "recurrent";

  // The binding indices that differ between kinds. InputTensor, WeightTensor, RecurrenceTensor, BiasTensor
  // and HiddenInitTensor are 0 to 4.
  static constexpr uint32_t kCellInit = 5, kPeephole = 7;
  uint32_t lengths_binding() const { return kind == CellKind::kLstm ? 6 : 5; }

  CellKind kind = CellKind::kRnn;
  DataType type = DataType::kFloat32;  // of everything except the lengths; or FLOAT16
  uint32_t directions = 1;
  bool first_is_backward = false;  // the second direction always is
  uint64_t steps = 1, batch = 1, inputs = 1, units = 1;

  TensorDesc input;       // {1, step, batch, input}
  TensorDesc weight;      // {1, direction, gate and unit, input}: gates i, o, f, c (LSTM); z, r, h (GRU)
  TensorDesc recurrence;  // {1, direction, gate and unit, unit}
  std::optional<TensorDesc> bias;         // {1, 1, direction, 2 * gate and unit}: input biases first, then
                                          // recurrence biases
  std::optional<TensorDesc> hidden_init;  // {1, direction, batch, unit}
  std::optional<TensorDesc> cell_init;    // the same
  std::optional<TensorDesc> lengths;      // {1, 1, 1, batch}, UINT32
  std::optional<TensorDesc> peephole;     // {1, 1, direction, gate and unit}: gates i, o, f
  std::optional<TensorDesc> sequence;     // {step, direction, batch, unit}
  std::optional<TensorDesc> single;       // {1, direction, batch, unit}
  std::optional<TensorDesc> cell_single;  // the same

  std::array<std::array<CellActivation, kMaxCellActivations>, 2> activations;  // per direction
  bool couples_input_and_forget = false;                                       // LSTM
  bool linear_before_reset = false;                                            // GRU

  uint32_t gates() const { return GatesOf(kind); }
  bool IsBackward(uint32_t direction) const { return direction == 1 || first_is_backward; }
  // The state is reset before it is multiplied by its weights, so the second gate must be known first.
  bool resets_first() const { return kind == CellKind::kGru && !linear_before_reset; }
};

// Or within CreateErrors (ops/errors.h): what a sum of products is off (contract: their number * 2^-24 times
// the sum of the magnitudes) goes through the activations and, times the weights, from step to step. Weights
// decide whether it fades or grows.
inline constexpr Exactness kRecurrentExactness = {.float32_ulps = 4, .float16_ulps = 1, .relative = 0x1p-24};

std::unique_ptr<const Kernel> CreateRecurrentErrors(const RecurrentProblem& problem);
std::unique_ptr<const Kernel> CreateRecurrentErrors(const OperatorDesc& desc);

// The position in a sequence of `length` elements at step `step`.
constexpr uint64_t TimeOf(uint64_t step, uint64_t length, bool backward) {
  return backward ? length - 1 - step : step;
}

std::unique_ptr<const Kernel> CreateRecurrentCpu(const RecurrentProblem& problem, const LowerContext& context,
                                                 std::string* why_not);
std::unique_ptr<const Kernel> CreateRecurrentCuda(const RecurrentProblem& problem,
                                                  const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateRecurrentCluster(const RecurrentProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateRecurrentResident(const RecurrentProblem& problem,
                                                      const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateRecurrentReference(const RecurrentProblem& problem,
                                                       const LowerContext& context, std::string* why_not);

}  // namespace anydml
