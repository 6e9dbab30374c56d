#include <algorithm>
#include <cstring>
#include <span>

#include "ops/common/nest_parts.h"
#include "ops/numbers/load_store.h"
#include "ops/recurrent/cpu/cells.h"
#include "ops/recurrent/cpu/grouped_product.h"
#include "ops/recurrent/cpu/packed_product.h"
#include "ops/recurrent/steps.h"

namespace anydml {
namespace {

// With fewer numbers, threads cost more than they save.
constexpr uint64_t kFewNumbers = 32768;
// See InputsToAdd.
constexpr uint64_t kBatchToAdd = 32;

bool HasRowFunctions(const RecurrentProblem& problem) {
  for (const auto& direction : problem.activations) {
    for (const CellActivation& activation : direction) {
      if (activation.row != RowFunction::kNone) return true;
    }
  }
  return false;
}

class RecurrentCpu final : public RecurrentSteps {
 public:
  RecurrentCpu(const RecurrentProblem& problem, const LowerContext& context)
      : RecurrentSteps(problem),
        cells_(RecurrentSteps::problem()),
        store_(FindStore(Class::kF32, problem.type)),
        threads_(context.threads) {
    const uint64_t rows = problem.directions * problem.batch;
    const bool few = rows * problem.units * problem.gates() < kFewNumbers;
    workers_ = few ? 1 : static_cast<uint32_t>(std::min<uint64_t>(rows, context.threads));
  }

 private:
  std::unique_ptr<const Kernel> CreatePacking(const GemmProblem& product) override {
    const RecurrentProblem& p = problem();
    std::unique_ptr<const Kernel> kernel = CreatePackedProduct(product, InputsToAdd(), p.type, threads_);
    if (p.resets_first() || HasRowFunctions(p)) return kernel;
    grouped_ = dynamic_cast<const GroupedProduct*>(kernel.get());
    if (grouped_ != nullptr) {
      next_ = AddScratch("next state", p.directions * p.batch * p.units * sizeof(float));
    }
    return kernel;
  }

  bool adds_inputs() const override { return grouped_ != nullptr && grouped_->adds_inputs(); }
  bool keeps_sums() const override { return grouped_ != nullptr; }

  // The inputs that each step adds to the states' product itself. This pays if its weights, which every step
  // reads, are used often enough, and requires the same times for all elements of the batch. The gates then
  // get a single sum.
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

  // Odd steps have the state in separate scratch: threads still read it while others write the next one.
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
    for (uint32_t d = 0; d < p.directions; ++d) {
      const uint64_t time = TimeOf(step, p.steps, p.IsBackward(d));
      rows[d] = {input + time * p.input.strides[1], p.input.strides[2]};
    }
    grouped_->RunGroups(own, rows, gates);
    return {};
  }

  // Some units of a row.
  struct RowUnits {
    uint64_t first, count;
    float* sums;
    uint64_t gate_stride;  // of sums
  };

  // Computes the gates of a group's rows.
  class GroupGates final : public GroupedProduct::Sink {
   public:
    GroupGates(const RecurrentCpu& cpu, uint64_t step, const GateBuffers& buffers, float* hidden)
        : cpu_(cpu), step_(step), buffers_(buffers), hidden_(hidden) {}

    void Expect(const GroupedProduct::Group& group, uint32_t gate, uint64_t row,
                uint64_t rows) const override {
      constexpr uint64_t kLine = 16;  // floats per cache line
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
    float* const hidden_;  // the next state
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

  CellRow RowOf(uint32_t direction, uint64_t element, uint64_t time, const RowUnits& units, float* hidden,
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

  // `hidden` is the place of the new state, which may be that of the previous one.
  void RunRow(GatePhase phase, uint64_t step, uint32_t direction, uint64_t element, const RowUnits& units,
              float* hidden, const GateBuffers& buffers) const {
    const RecurrentProblem& p = problem();
    const uint64_t length = LengthOf(element, buffers);
    const bool ended = step >= length;
    const uint64_t time = ended ? step : TimeOf(step, length, p.IsBackward(direction));
    const CellRow row = RowOf(direction, element, time, units, hidden, buffers);
    if (!ended) cells_.Run(phase, direction, row);
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

  const RecurrentCells cells_;
  StoreBlock store_;
  const GroupedProduct* grouped_ = nullptr;  // the product of whole steps; null: product and gates are
                                             // separate
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
