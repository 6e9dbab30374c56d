// A block has one direction of an element of the batch, and some of its units, or all of them if an
// activation is a function of the whole row. Threads keep their units, so that only such functions need
// synchronisation.
#include <cuda_runtime.h>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/reduce.cuh"
#include "ops/recurrent/cuda/activation.cuh"
#include "ops/recurrent/cuda/tensor.cuh"
#include "ops/recurrent/steps.h"

namespace anydml {
namespace {

using namespace recurrent_cuda;

// Some units of one direction of an element of the batch.
struct Row {
  uint32_t direction;
  uint32_t element;
  Units units;
  const float* from_input;  // gate after gate
  float* from_state;
  float* from_reset;
  float* hidden;
  float* cell;
  float* reset;
  const float* bias;        // null: none
  const float* state_bias;  // null: none
  const float* peephole;    // null: none
};

// The sum of the contributions of state, input and biases.
__device__ float Sum(const GateParameters& p, const Row& row, uint32_t gate, uint64_t unit,
                     float from_state) {
  const uint64_t at = uint64_t{gate} * p.units + unit;
  const float sum = from_state + row.from_input[at];
  return row.bias == nullptr ? sum : sum + (row.bias[at] + row.state_bias[at]);
}

__device__ float Peephole(const GateParameters& p, const Row& row, uint32_t gate, uint64_t unit, float sum) {
  if (row.peephole == nullptr) return sum;
  return sum + row.peephole[uint64_t{gate} * p.units + unit] * row.cell[unit];
}

__device__ void RunRnn(const GateParameters& p, const Row& row) {
  const Activation& f = p.activations[row.direction][0];
  ForUnits(row.units, [&](uint64_t unit) {
    row.hidden[unit] = Canonical(Apply(f, Sum(p, row, 0, unit, row.from_state[unit])));
  });
  Finish(f, row.units, row.hidden);
}

__device__ void RunLstm(const GateParameters& p, const Row& row) {
  const Activation* const activations = p.activations[row.direction];
  float* const i = row.from_state;
  float* const o = i + p.units;
  float* const f = o + p.units;
  float* const c = f + p.units;
  ForUnits(row.units, [&](uint64_t unit) {
    i[unit] = Apply(activations[0], Peephole(p, row, 0, unit, Sum(p, row, 0, unit, i[unit])));
    c[unit] = Apply(activations[1], Sum(p, row, 3, unit, c[unit]));
    if (!p.couples_input_and_forget) {
      f[unit] = Apply(activations[0], Peephole(p, row, 2, unit, Sum(p, row, 2, unit, f[unit])));
    }
  });
  Finish(activations[0], row.units, i);
  if (!p.couples_input_and_forget) Finish(activations[0], row.units, f);
  Finish(activations[1], row.units, c);
  ForUnits(row.units, [&](uint64_t unit) {
    const float forget = p.couples_input_and_forget ? 1 - i[unit] : f[unit];
    const float kept = forget * row.cell[unit], added = i[unit] * c[unit];
    const float cell = Canonical(kept + added);
    row.cell[unit] = cell;
    c[unit] = Apply(activations[2], cell);
    o[unit] = Apply(activations[0], Peephole(p, row, 1, unit, Sum(p, row, 1, unit, o[unit])));
  });
  Finish(activations[0], row.units, o);
  Finish(activations[2], row.units, c);
  ForUnits(row.units, [&](uint64_t unit) { row.hidden[unit] = Canonical(o[unit] * c[unit]); });
}

__device__ void RunGruGates(const GateParameters& p, const Row& row) {
  const Activation& f = p.activations[row.direction][0];
  float* const z = row.from_state;
  float* const r = z + p.units;
  ForUnits(row.units, [&](uint64_t unit) {
    z[unit] = Apply(f, Sum(p, row, 0, unit, z[unit]));
    r[unit] = Apply(f, Sum(p, row, 1, unit, r[unit]));
  });
  Finish(f, row.units, z);
  Finish(f, row.units, r);
  if (p.phase != GatePhase::kReset) return;
  ForUnits(row.units, [&](uint64_t unit) { row.reset[unit] = r[unit] * row.hidden[unit]; });
}

__device__ float LinearBeforeReset(const GateParameters& p, const Row& row, uint64_t unit, float reset,
                                   float from_state) {
  const uint64_t at = uint64_t{2} * p.units + unit;
  if (row.bias == nullptr) return row.from_input[at] + reset * from_state;
  const float sum = row.from_input[at] + reset * (from_state + row.state_bias[at]);
  return sum + row.bias[at];
}

__device__ void RunGru(const GateParameters& p, const Row& row) {
  const Activation& g = p.activations[row.direction][1];
  const float* const z = row.from_state;
  const float* const r = z + p.units;
  float* const h = p.linear_before_reset ? row.from_state + uint64_t{2} * p.units : row.from_reset;
  ForUnits(row.units, [&](uint64_t unit) {
    const float sum = p.linear_before_reset ? LinearBeforeReset(p, row, unit, r[unit], h[unit])
                                            : Sum(p, row, 2, unit, h[unit]);
    h[unit] = Apply(g, sum);
  });
  Finish(g, row.units, h);
  ForUnits(row.units, [&](uint64_t unit) {
    const float added = (1 - z[unit]) * h[unit], kept = z[unit] * row.hidden[unit];
    row.hidden[unit] = Canonical(added + kept);
  });
}

__device__ void RunCell(const GateParameters& p, const Row& row) {
  switch (p.kind) {
    case CellKind::kRnn:
      return RunRnn(p, row);
    case CellKind::kLstm:
      return RunLstm(p, row);
    case CellKind::kGru:
      if (p.phase != GatePhase::kAfterReset) RunGruGates(p, row);
      if (p.phase != GatePhase::kReset) RunGru(p, row);
      return;
  }
}

// `from` null: zeros.
__device__ void Write(const GateParameters& p, const Row& row, const DeviceTensor& target, uint64_t time,
                      const float* from) {
  if (target.data == nullptr) return;
  ForUnits(row.units, [&](uint64_t unit) {
    reduce::StoreAs(target.data, p.type, PlaceOf(target, time, row.direction, row.element, unit),
                    from == nullptr ? 0.0f : Canonical(from[unit]));
  });
}

__device__ Row RowOf(const GateParameters& p, uint64_t block) {
  const uint64_t number = block / p.blocks_per_row;
  const uint64_t all = uint64_t{p.gates} * p.units;
  const GateBuffers& b = p.buffers;
  const auto part = [](auto* numbers, uint64_t at) { return numbers == nullptr ? nullptr : numbers + at; };
  Row row;
  row.direction = static_cast<uint32_t>(number / p.batch);
  row.element = static_cast<uint32_t>(number % p.batch);
  const uint32_t begin = static_cast<uint32_t>(block % p.blocks_per_row) * blockDim.x;
  row.units.begin = begin;
  row.units.end = p.blocks_per_row == 1 ? p.units : min(p.units - begin, blockDim.x) + begin;
  row.from_input = nullptr;
  row.from_state = b.from_state + number * p.state_gates * p.units;
  row.from_reset = part(b.from_reset, number * p.units);
  row.hidden = b.hidden + number * p.units;
  row.cell = part(b.cell, number * p.units);
  row.reset = part(b.reset, number * p.units);
  row.bias = part(b.bias, row.direction * 2 * all);
  row.state_bias = part(b.bias, row.direction * 2 * all + all);
  row.peephole = part(b.peephole, row.direction * uint64_t{3} * p.units);
  return row;
}

__global__ void __launch_bounds__(kGateThreads) RunGatesOfStep(const __grid_constant__ GateParameters p) {
  for (uint64_t block = blockIdx.x; block < p.blocks; block += gridDim.x) {
    Row row = RowOf(p, block);
    uint64_t length = p.steps;
    if (p.buffers.lengths != nullptr) {
      length = min(length, uint64_t{p.buffers.lengths[row.element * p.lengths_stride]});
    }
    const bool ended = p.step >= length;
    const bool backward = row.direction == 1 || p.first_is_backward;
    const uint64_t time = ended ? p.step : TimeOf(p.step, length, backward);
    row.from_input = p.buffers.from_inputs +
                     ((row.direction * p.steps + time) * p.batch + row.element) * p.gates * p.units;
    if (!ended) RunCell(p, row);
    if (p.phase == GatePhase::kReset) continue;
    Write(p, row, p.sequence, time, ended ? nullptr : row.hidden);
    if (p.step + 1 < p.steps) continue;
    Write(p, row, p.single, 0, row.hidden);
    Write(p, row, p.cell_single, 0, row.cell);
  }
}

class RecurrentCuda final : public RecurrentSteps {
 public:
  RecurrentCuda(const RecurrentProblem& problem, const LowerContext&)
      : RecurrentSteps(problem), plan_(MakeRecurrentGatesPlan(problem, state_gates())) {}

 private:
  void Clear(const Buffer& buffer, const KernelArguments& arguments) const override {
    cudaMemsetAsync(buffer.data, 0, buffer.size, static_cast<cudaStream_t>(arguments.stream));
  }

  void RunGates(GatePhase phase, uint64_t step, const GateBuffers& buffers,
                const KernelArguments& arguments) const override {
    GateParameters p = plan_.parameters;
    p.buffers = buffers;
    p.sequence.data = buffers.sequence;
    p.single.data = buffers.single;
    p.cell_single.data = buffers.cell_single;
    p.phase = phase;
    p.step = step;
    KernelChain(arguments.stream).Launch(RunGatesOfStep, plan_.grid, p);
  }

  RecurrentGatesPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentCuda(const RecurrentProblem& problem,
                                                  const LowerContext& context, std::string* why_not) {
  return CreateRecurrentSteps<RecurrentCuda>(problem, context, why_not);
}

}  // namespace anydml
