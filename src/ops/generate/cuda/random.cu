#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/units.h"
#include "ops/generate/plan.h"

namespace anydml {
namespace {

__device__ void WriteState(const RandomParameters& p, PhiloxState state) {
  Advance(&state, p.blocks);
  const uint64_t step = p.output_state_stride;
  for (uint32_t i = 0; i < 4; ++i) p.output_state[i * step] = state.counter[i];
  for (uint32_t i = 0; i < 2; ++i) p.output_state[(4 + i) * step] = state.key[i];
}

__global__ void __launch_bounds__(kGenerateThreads)
    GenerateRandom(const __grid_constant__ RandomParameters p) {
  const uint64_t block = uint64_t{blockIdx.x} * kGenerateThreads + threadIdx.x;
  if (block >= p.blocks) return;
  PhiloxState state = LoadPhiloxState(p.state, p.state_stride);
  if (block == 0 && p.output_state != nullptr) WriteState(p, state);
  Advance(&state, block);
#pragma unroll
  for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
    PhiloxRound(&state.counter[0], &state.counter[1], &state.counter[2], &state.counter[3], state.key[0],
                state.key[1]);
    state.key[0] += kPhiloxKeyStep0;
    state.key[1] += kPhiloxKeyStep1;
  }
  if (p.in_units && block * 4 + 4 <= p.count) {
    reinterpret_cast<uint4*>(p.output)[block] =
        uint4{state.counter[0], state.counter[1], state.counter[2], state.counter[3]};
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if (block * 4 + i >= p.count) return;
    uint64_t at[1];
    p.nest.OffsetsOf(static_cast<uint32_t>(block * 4 + i), at);
    p.output[at[0]] = state.counter[i];
  }
}

class RandomCuda final : public Kernel {
 public:
  explicit RandomCuda(const RandomProblem& problem)
      : problem_(problem), aligned_(MakeRandomPlan(problem, true)), any_(MakeRandomPlan(problem, false)) {}

  Status Run(const KernelArguments& arguments) const override {
    const bool aligned = AddressOf(arguments.outputs[0].data) % kMaxUnitBytes == 0;
    const RandomPlan& plan = aligned ? aligned_ : any_;
    RandomParameters p = plan.parameters;
    p.state = reinterpret_cast<const uint32_t*>(arguments.inputs[0].data);
    p.output = reinterpret_cast<uint32_t*>(arguments.outputs[0].data);
    if (problem_.has_output_state) p.output_state = reinterpret_cast<uint32_t*>(arguments.outputs[1].data);
    KernelChain(arguments.stream).Launch(GenerateRandom, plan.grid, p);
    return {};
  }

 private:
  RandomProblem problem_;
  RandomPlan aligned_, any_;  // whether the output is at a multiple of kMaxUnitBytes
};

}  // namespace

std::unique_ptr<const Kernel> CreateRandomCuda(const RandomProblem& problem, const LowerContext&,
                                               std::string*) {
  return std::make_unique<RandomCuda>(problem);
}

}  // namespace anydml
