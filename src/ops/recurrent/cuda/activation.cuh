// The activations of recurrent cells on a GPU.
#pragma once

#include <cuda_runtime.h>

#include "ops/device/cuda/element_functions.cuh"
#include "ops/device/cuda/reduce.cuh"
#include "ops/recurrent/plan.h"

namespace anydml::recurrent_cuda {

using namespace recurrent;

// Not inlined: a cell has up to five activations.
__device__ __noinline__ inline float Call(ElementFunction name, uint32_t parameter0, uint32_t parameter1,
                                          float x) {
  const Instruction instruction = {{}, {}, {}, 0, {0, 0, 0}, {parameter0, parameter1}};
  switch (name) {
#define ANYDML_CASE(function)        \
  case ElementFunction::k##function: \
    return element_cuda::rows::function::Call<Class::kF32>(x, x, x, instruction);
    ANYDML_CASE(Clip)
    ANYDML_CASE(ScaleBias)
    ANYDML_CASE(Relu)
    ANYDML_CASE(LeakyRelu)
    ANYDML_CASE(ThresholdedRelu)
    ANYDML_CASE(Shrink)
    ANYDML_CASE(HardSigmoid)
    ANYDML_CASE(Softsign)
    ANYDML_CASE(Tanh)
    ANYDML_CASE(ScaledTanh)
    ANYDML_CASE(Sigmoid)
    ANYDML_CASE(Elu)
    ANYDML_CASE(ScaledElu)
    ANYDML_CASE(Celu)
    ANYDML_CASE(Softplus)
    ANYDML_CASE(Gelu)
#undef ANYDML_CASE
    default:
      return x;
  }
}

__device__ inline float Apply(const Activation& activation, float x) {
  for (uint32_t i = 0; i < activation.count; ++i) {
    const Function& function = activation.functions[i];
    x = Call(function.name, function.parameters[0], function.parameters[1], x);
  }
  return x;
}

// A thread's units in a row: its own share, unless an activation is a function of the whole row.
struct Units {
  uint32_t begin, end;
};

// Calls body(unit) for the thread's units.
template <typename Body>
__device__ void ForUnits(const Units& units, Body&& body) {
  for (uint64_t unit = uint64_t{units.begin} + threadIdx.x; unit < units.end; unit += blockDim.x) body(unit);
}

// Over all threads of the block, returned to all of them.
template <typename A>
__device__ A MergeForAll(A a, A* shared) {
  a = reduce::MergeBlock(a, shared);
  if (threadIdx.x == 0) shared[0] = a;
  __syncthreads();
  a = shared[0];
  __syncthreads();
  return a;
}

__device__ inline void Softmax(const Units& units, float* numbers) {
  __shared__ reduce::LogSumExp shared[32];
  const lane::Tag<float> d;
  auto all = reduce::LogSumExp::Start();
  ForUnits(units, [&](uint64_t unit) { all.Add(numbers[unit], 0); });
  all = MergeForAll(all, shared);
  const bool finite = all.value < lane::kInfinity && all.value > -lane::kInfinity;
  const float factor = lane::Div(1.0f, finite ? all.second : lane::kNan);
  ForUnits(units, [&](uint64_t unit) {
    numbers[unit] = lane::Mul(lane::Exp(d, lane::Sub(numbers[unit], all.value)), factor);
  });
}

__device__ inline void Hardmax(const Units& units, float* numbers) {
  using Best = reduce::Position<false, false, float>;
  __shared__ Best shared[32];
  Best best = Best::Start();
  ForUnits(units, [&](uint64_t unit) { best.Add(numbers[unit], static_cast<uint32_t>(unit)); });
  best = MergeForAll(best, shared);
  ForUnits(units, [&](uint64_t unit) { numbers[unit] = unit == best.second ? 1.0f : 0.0f; });
}

// Applies the rest of an activation after its element-wise function.
__device__ inline void Finish(const Activation& activation, const Units& units, float* numbers) {
  if (activation.row == RowFunction::kSoftmax) Softmax(units, numbers);
  if (activation.row == RowFunction::kHardmax) Hardmax(units, numbers);
}

}  // namespace anydml::recurrent_cuda
