#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "ops/common/nest_parts.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/epilogue.h"
#include "ops/recurrent/cpu/grouped_product.h"
#include "ops/recurrent/cpu/lstm_row.h"
#include "ops/recurrent/cpu/packed_product.h"
#include "ops/recurrent/steps.h"
#include "ops/reduce/accumulate.h"

namespace anydml {
namespace {

// Below this many numbers threads cost more than they save.
constexpr uint64_t kFewNumbers = 32768;
// See InputsToAdd.
constexpr uint64_t kBatchToAdd = 32;

float Canonical(float x) { return std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x; }

// What a direction of an element of the batch has: the state, and sums that become gates where they are.
struct Row {
  uint64_t units;           // some of the cell's
  uint64_t all;             // the cell's: gates of all but sums are as far apart
  const float* from_input;  // gate after gate; null: it is in from_state
  float* from_state;
  uint64_t gate_stride;  // of from_state
  float* from_reset;
  const float* before;  // the hidden state, which may be where the new one is
  float* hidden;
  float* cell;
  float* reset;
  const float* bias;        // null: none
  const float* state_bias;  // null: none
  const float* peephole;    // null: none

  float* gate(uint32_t number) const { return from_state + number * gate_stride; }
};

// Adds what comes from the input, and the biases, to what comes from the state.
void AddUp(const Row& row, uint32_t gate, float* sums) {
  const uint64_t first = gate * row.all;
  if (row.from_input != nullptr) {
    const float* const from_input = row.from_input + first;
    for (uint64_t i = 0; i < row.units; ++i) sums[i] += from_input[i];
  }
  if (row.bias == nullptr) return;
  const float *const bias = row.bias + first, *const state_bias = row.state_bias + first;
  for (uint64_t i = 0; i < row.units; ++i) sums[i] += bias[i] + state_bias[i];
}

void AddPeephole(const Row& row, uint32_t gate, float* sums) {
  if (row.peephole == nullptr) return;
  const float* const weights = row.peephole + gate * row.all;
  for (uint64_t i = 0; i < row.units; ++i) sums[i] += weights[i] * row.cell[i];
}

ElementProgram ExpProgram() {
  ElementProgram program;
  program.Apply(ElementFunction::kExp, Class::kF32, {program.NewRegister()});
  return program;
}

bool HasRowFunctions(const RecurrentProblem& problem) {
  for (const auto& direction : problem.activations) {
    for (const CellActivation& activation : direction) {
      if (activation.row != RowFunction::kNone) return true;
    }
  }
  return false;
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

class RecurrentCpu final : public RecurrentSteps {
 public:
  RecurrentCpu(const RecurrentProblem& problem, const LowerContext& context)
      : RecurrentSteps(problem),
        exp_(ExpProgram()),
        store_(FindStore(Class::kF32, problem.type)),
        run_lstm_(IsUsualLstm(problem) ? FindLstmRow() : nullptr),
        threads_(context.threads) {
    for (const auto& direction : problem.activations) {
      for (const CellActivation& activation : direction) epilogues_.emplace_back(activation.program);
    }
    const uint64_t rows = problem.directions * problem.batch;
    const bool few = rows * problem.units * problem.gates() < kFewNumbers;
    workers_ = few ? 1 : static_cast<uint32_t>(std::min<uint64_t>(rows, context.threads));
  }

 private:
  std::unique_ptr<const Kernel> CreatePacking(const GemmProblem& product) override {
    const RecurrentProblem& p = problem();
    std::unique_ptr<const Kernel> kernel = CreatePackedProduct(product, InputsToAdd(), p.type, threads_);
    if (!p.resets_first() && !HasRowFunctions(p))
      grouped_ = dynamic_cast<const GroupedProduct*>(kernel.get());
    if (grouped_ != nullptr)
      next_ = AddScratch("next state", p.directions * p.batch * p.units * sizeof(float));
    return kernel;
  }

  bool adds_inputs() const override { return grouped_ != nullptr && grouped_->adds_inputs(); }

  // Those of a step beside its states, where weights that are read in every step are used often enough, and
  // times are the same for all elements of the batch. What gates add up before they use it is one sum, then.
  GroupedProduct::Inputs InputsToAdd() const {
    const RecurrentProblem& p = problem();
    const bool backward = p.directions > 1 || p.first_is_backward;
    if (p.kind == CellKind::kGru || HasRowFunctions(p) || p.batch < kBatchToAdd || (p.lengths && backward) ||
        p.type != DataType::kFloat32 || (p.inputs > 1 && p.input.strides[3] != 1) ||
        p.weight.owned_by_dml != p.recurrence.owned_by_dml) {
      return {};
    }
    return {p.inputs, InputProduct(p).b};
  }

  void Clear(const Buffer& buffer, const KernelArguments&) const override {
    std::memset(buffer.data, 0, buffer.size);
  }

  void RunGates(GatePhase phase, uint64_t step, const GateBuffers& buffers,
                const KernelArguments& arguments) const override {
    const uint64_t rows = problem().directions * problem().batch;
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      const uint64_t end = PartBegin(rows, worker + 1, workers_);
      for (uint64_t row = PartBegin(rows, worker, workers_); row < end; ++row) {
        const auto direction = static_cast<uint32_t>(row / problem().batch);
        const RowUnits all = {0, problem().units, buffers.from_state + row * state_gates() * problem().units,
                              problem().units};
        RunRow(phase, step, direction, row % problem().batch, all, buffers.hidden, buffers);
      }
    });
  }

  // The state of odd steps is in scratch of its own: threads still read it when others write the next one.
  Status RunStep(const Kernel& product, const KernelArguments& of_product, uint64_t step,
                 const GateBuffers& buffers, const KernelArguments& arguments) const override {
    if (&product != grouped_) return RecurrentSteps::RunStep(product, of_product, step, buffers, arguments);
    const bool odd = step % 2 != 0;
    const Buffer next = next_.In(arguments.temporary);
    const Buffer inputs[] = {odd ? next : of_product.inputs[0], of_product.inputs[1], {}};
    KernelArguments own = of_product;
    own.inputs = inputs;
    GateBuffers swapped = buffers;
    float* const other = next_.In<float>(arguments.temporary);
    if (odd) swapped.hidden = other;
    const GroupGates gates(*this, step, swapped, odd ? buffers.hidden : other);
    const RecurrentProblem& p = problem();
    MicroKernel::Rows rows[2] = {};
    const auto* const input = reinterpret_cast<const float*>(arguments.inputs[0].data);
    for (uint32_t d = 0; adds_inputs() && d < p.directions; ++d) {
      const uint64_t time = TimeOf(step, p.steps, p.IsBackward(d));
      rows[d] = {input + time * p.input.strides[1], p.input.strides[2]};
    }
    grouped_->RunGroups(
        own, adds_inputs() ? std::span<const MicroKernel::Rows>(rows) : std::span<const MicroKernel::Rows>(),
        gates);
    return {};
  }

  // Some units of a row.
  struct RowUnits {
    uint64_t first, count;
    float* sums;
    uint64_t gate_stride;  // of sums
  };

  // Runs the gates of a group's rows.
  class GroupGates final : public GroupedProduct::Sink {
   public:
    GroupGates(const RecurrentCpu& cpu, uint64_t step, const GateBuffers& buffers, float* hidden)
        : cpu_(cpu), step_(step), buffers_(buffers), hidden_(hidden) {}

    void Expect(const GroupedProduct::Group& group, uint32_t gate, uint64_t row,
                uint64_t rows) const override {
      constexpr uint64_t kLine = 16;  // floats
      if (buffers_.from_inputs == nullptr) return;
      const RecurrentProblem& p = cpu_.problem();
      for (uint64_t i = row; i < row + rows; ++i) {
        const uint64_t length = cpu_.LengthOf(i, buffers_);
        if (step_ >= length) continue;
        const float* const from =
            cpu_.FromInput(group.direction, i, TimeOf(step_, length, p.IsBackward(group.direction)),
                           buffers_) +
            gate * p.units + group.unit;
        for (uint64_t u = 0; u < group.units; u += kLine) __builtin_prefetch(from + u);
      }
    }

    void Finish(const GroupedProduct::Group& group, float* sums) const override {
      const uint64_t batch = cpu_.problem().batch;
      for (uint64_t row = 0; row < batch; ++row) {
        const RowUnits units = {group.unit, group.units, sums + row * group.width, batch * group.width};
        cpu_.RunRow(GatePhase::kWhole, step_, group.direction, row, units, hidden_, buffers_);
      }
    }

   private:
    const RecurrentCpu& cpu_;
    const uint64_t step_;
    const GateBuffers buffers_;
    float* const hidden_;  // the next one
  };

  const float* FromInput(uint32_t direction, uint64_t element, uint64_t time,
                         const GateBuffers& buffers) const {
    const RecurrentProblem& p = problem();
    if (buffers.from_inputs == nullptr) return nullptr;
    return buffers.from_inputs + ((direction * p.steps + time) * p.batch + element) * p.gates() * p.units;
  }

  uint64_t LengthOf(uint64_t element, const GateBuffers& buffers) const {
    const RecurrentProblem& p = problem();
    if (buffers.lengths == nullptr) return p.steps;
    return std::min<uint64_t>(p.steps, buffers.lengths[element * p.lengths->strides[3]]);
  }

  Row RowOf(uint32_t direction, uint64_t element, uint64_t time, const RowUnits& units, float* hidden,
            const GateBuffers& buffers) const {
    const RecurrentProblem& p = problem();
    const uint64_t all = p.gates() * p.units;
    const uint64_t first = (direction * p.batch + element) * p.units + units.first;
    const auto part = [](auto* numbers, uint64_t at) { return numbers == nullptr ? nullptr : numbers + at; };
    return {units.count,
            p.units,
            part(FromInput(direction, element, time, buffers), units.first),
            units.sums,
            units.gate_stride,
            part(buffers.from_reset, first),
            buffers.hidden + first,
            hidden + first,
            part(buffers.cell, first),
            part(buffers.reset, first),
            part(buffers.bias, direction * 2 * all + units.first),
            part(buffers.bias, direction * 2 * all + all + units.first),
            part(buffers.peephole, direction * 3 * p.units + units.first)};
  }

  // `hidden` is where the new state goes, which may be where the one before is.
  void RunRow(GatePhase phase, uint64_t step, uint32_t direction, uint64_t element, const RowUnits& units,
              float* hidden, const GateBuffers& buffers) const {
    const RecurrentProblem& p = problem();
    const uint64_t length = LengthOf(element, buffers);
    const bool ended = step >= length;
    const uint64_t time = ended ? step : TimeOf(step, length, p.IsBackward(direction));
    const Row row = RowOf(direction, element, time, units, hidden, buffers);
    if (!ended) RunCell(phase, direction, row);
    if (phase == GatePhase::kReset) return;
    if (ended) {
      if (row.hidden != row.before) std::copy_n(row.before, row.units, row.hidden);
      std::fill_n(row.from_state, row.units, 0.0f);
    }
    const uint64_t first = units.first;
    Write(p.sequence, time, direction, element, first, row.units, ended ? row.from_state : row.hidden,
          buffers.sequence);
    if (step + 1 < p.steps) return;
    Write(p.single, 0, direction, element, first, row.units, row.hidden, buffers.single);
    Write(p.cell_single, 0, direction, element, first, row.units, row.cell, buffers.cell_single);
  }

  void Write(const std::optional<TensorDesc>& tensor, uint64_t time, uint32_t direction, uint64_t element,
             uint64_t first, uint64_t units, const float* from, std::byte* to) const {
    if (!tensor) return;
    Block block;
    block.columns = units;
    block.column_stride = tensor->strides[3];
    block.offset = time * tensor->strides[0] + direction * uint64_t{tensor->strides[1]} +
                   element * tensor->strides[2] + first * tensor->strides[3];
    store_(from, block, to);
  }

  void RunCell(GatePhase phase, uint32_t direction, const Row& row) const {
    switch (problem().kind) {
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

  void RunLstm(uint32_t direction, const Row& row) const {
    if (run_lstm_ != nullptr) {
      return run_lstm_({row.units, row.all, row.from_input, row.from_state, row.gate_stride, row.bias,
                        row.state_bias, row.cell, row.hidden});
    }
    float *const i = row.gate(0), *const o = row.gate(1), *const f = row.gate(2), *const c = row.gate(3);
    AddUp(row, 0, i);
    AddPeephole(row, 0, i);
    Activate(direction, 0, i, row.units);
    if (problem().couples_input_and_forget) {
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

  void RunGruGates(uint32_t direction, const Row& row) const {
    for (const uint32_t gate : {0u, 1u}) {
      AddUp(row, gate, row.gate(gate));
      Activate(direction, 0, row.gate(gate), row.units);
    }
  }

  void RunGru(uint32_t direction, const Row& row) const {
    const float *const z = row.gate(0), *const r = row.gate(1);
    float* const h = problem().linear_before_reset ? row.gate(2) : row.from_reset;
    if (!problem().linear_before_reset) {
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

  void Activate(uint32_t direction, uint32_t number, float* numbers, uint64_t units) const {
    epilogues_[direction * kMaxCellActivations + number].Apply(numbers, units);
    switch (problem().activations[direction][number].row) {
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

  // A NaN makes the sum one.
  void Softmax(float* numbers, uint64_t count) const {
    const float max = *std::max_element(numbers, numbers + count);
    for (uint64_t i = 0; i < count; ++i) numbers[i] -= max;
    exp_.Apply(numbers, count);
    double sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += numbers[i];
    for (uint64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(numbers[i] / sum);
  }

  std::vector<Epilogue> epilogues_;  // of the directions' activations
  Epilogue exp_;
  StoreBlock store_;
  RunLstmRow* const run_lstm_;               // null: functions one by one
  const GroupedProduct* grouped_ = nullptr;  // the product of whole steps; null: it and gates are apart
  ScratchLayout::Piece next_;                // with it: the hidden state of odd steps
  uint32_t threads_;
  uint32_t workers_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentCpu(const RecurrentProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  return CreateRecurrentSteps<RecurrentCpu>(problem, context, why_not);
}

}  // namespace anydml
