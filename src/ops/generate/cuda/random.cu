#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/device/nest.h"
#include "ops/generate/random.h"

namespace anydml {
namespace {

constexpr uint32_t kRandomThreads = 256;

struct RandomParameters {
  const uint32_t* state;
  uint32_t state_stride;
  uint32_t* output;
  uint32_t* output_state;  // null: not wanted
  uint32_t output_state_stride;
  uint32_t count;   // of words
  uint32_t blocks;  // of four words
  bool in_units;    // the output can be written 16 bytes at a time
  DeviceNest<1> nest;
};

__device__ void WriteState(const RandomParameters& p, PhiloxState state) {
  Advance(&state, p.blocks);
  const uint64_t step = p.output_state_stride;
  for (uint32_t i = 0; i < 4; ++i) p.output_state[i * step] = state.counter[i];
  for (uint32_t i = 0; i < 2; ++i) p.output_state[(4 + i) * step] = state.key[i];
}

__global__ void __launch_bounds__(kRandomThreads) GenerateRandom(const __grid_constant__ RandomParameters p) {
  const uint64_t block = uint64_t{blockIdx.x} * kRandomThreads + threadIdx.x;
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
  explicit RandomCuda(const RandomProblem& problem) : problem_(problem) {
    for (uint32_t d = 0; d < problem.output.rank; ++d) {
      nest_.Append(problem.output.sizes[d], {problem.output.strides[d]});
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    RandomParameters p = {};
    p.state = reinterpret_cast<const uint32_t*>(arguments.inputs[0].data);
    p.state_stride = problem_.state_stride;
    p.output = reinterpret_cast<uint32_t*>(arguments.outputs[0].data);
    if (problem_.has_output_state) {
      p.output_state = reinterpret_cast<uint32_t*>(arguments.outputs[1].data);
      p.output_state_stride = problem_.output_state_stride;
    }
    p.count = static_cast<uint32_t>(Iterations(nest_));
    p.blocks = p.count / 4 + (p.count % 4 != 0 ? 1 : 0);
    const bool contiguous = nest_.rank == 0 || (nest_.rank == 1 && nest_.loops[0].strides[0] == 1);
    p.in_units = contiguous && AddressOf(p.output) % sizeof(uint4) == 0;
    p.nest = DeviceNest<1>(nest_);
    KernelChain chain(arguments.stream);
    chain.Launch(GenerateRandom, (uint64_t{p.blocks} + kRandomThreads - 1) / kRandomThreads, kRandomThreads,
                 p);
    return {};
  }

 private:
  RandomProblem problem_;
  LoopNest<1> nest_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRandomCuda(const RandomProblem& problem, const LowerContext&,
                                               std::string*) {
  return std::make_unique<RandomCuda>(problem);
}

}  // namespace anydml
