// Shared by the kernels that run all steps at once: parameters, and the equations of a step for one unit.
#pragma once

#include "ops/recurrent/cuda/activation.cuh"
#include "ops/recurrent/cuda/tensor.cuh"

namespace anydml::recurrent_cuda {

struct Cell {
  DeviceTensor recurrence, bias, hidden_init, cell_init, peephole;
  DeviceTensor sequence, single, cell_single;
  const uint32_t* lengths;  // null: none
  uint64_t lengths_stride;
  const float* from_inputs;  // {direction, time, batch, gate and unit}
  uint32_t directions, steps, batch, units, gates;
  Activation activations[2][kMaxCellActivations];
  CellKind kind;
  DataType type;
  bool couples_input_and_forget, linear_before_reset, first_is_backward;
  bool has_usual_functions;  // SIGMOID for gates, TANH for the rest, without clipping

  __host__ __device__ bool resets_first() const { return kind == CellKind::kGru && !linear_before_reset; }
};

// A cell's functions: for gates, for their input, for LSTM's cell state.
struct GivenFunctions {
  const Activation* activations;

  __device__ float F(float x) const { return Apply(activations[0], x); }
  __device__ float G(float x) const { return Apply(activations[1], x); }
  __device__ float H(float x) const { return Apply(activations[2], x); }
};

struct UsualFunctions {
  CellKind kind;

  static __device__ float Tanh(float x) {
    return element_cuda::rows::Tanh::Call<Class::kF32>(x, x, x, Instruction{});
  }
  __device__ float F(float x) const {
    if (kind == CellKind::kRnn) return Tanh(x);
    return element_cuda::rows::Sigmoid::Call<Class::kF32>(x, x, x, Instruction{});
  }
  __device__ float G(float x) const { return Tanh(x); }
  __device__ float H(float x) const { return Tanh(x); }
};

// The same with the device's own powers and quotients, for states that become FLOAT16: within 2^-22 of the
// true values, and TANH of small numbers within 2^-22 relative to itself.
struct QuickFunctions {
  CellKind kind;

  static __device__ float PowerOf2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
  static __device__ float Inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
  static constexpr float kLog2E = 0x1.715476p0f;

  static __device__ float Sigmoid(float x) { return Inverse(1 + PowerOf2(-kLog2E * x)); }
  // x + x^3 P(x^2) near 0; elsewhere 1 - 2 z / (1 + z) with z = e^-2|x|.
  static __device__ float Tanh(float x) {
    const float a = fabsf(x), s = a * a;
    float p = __fmaf_rn(s, -0x1.828776p-8f, 0x1.54c3c2p-6f);
    p = __fmaf_rn(s, p, -0x1.b89abap-5f);
    p = __fmaf_rn(s, p, 0x1.1109bep-3f);
    p = __fmaf_rn(s, p, -0x1.55553ep-2f);
    const float near_0 = __fmaf_rn(a * s, p, a);
    const float z = PowerOf2(-2 * kLog2E * a);
    const float far = __fmaf_rn(-2 * z, Inverse(1 + z), 1.0f);
    return copysignf(a > 0.6f ? far : near_0, x);
  }

  __device__ float F(float x) const { return kind == CellKind::kRnn ? Tanh(x) : Sigmoid(x); }
  __device__ float G(float x) const { return Tanh(x); }
  __device__ float H(float x) const { return Tanh(x); }
};

// The next hidden state of a unit, and its cell state. `sums`: for each gate the contributions of the state,
// of the input, and the biases; but for GRU's last gate the contribution of the state with its bias, and then
// the rest. Not for a state that is reset first.
template <typename Functions>
__device__ float NextHidden(const Cell& p, const Functions& functions, const float (&sums)[4],
                            const float (&peephole)[3], float hidden, float* cell) {
  switch (p.kind) {
    case CellKind::kRnn:
      return functions.F(sums[0]);
    case CellKind::kLstm: {
      const bool peeps = p.peephole.data != nullptr;
      const float before = *cell;
      const float in = functions.F(peeps ? sums[0] + peephole[0] * before : sums[0]);
      const float forget =
          p.couples_input_and_forget ? 1 - in : functions.F(peeps ? sums[2] + peephole[2] * before : sums[2]);
      const float added = in * functions.G(sums[3]);
      *cell = Canonical(forget * before + added);
      const float out = functions.F(peeps ? sums[1] + peephole[1] * *cell : sums[1]);
      return out * functions.H(*cell);
    }
    default: {
      const float z = functions.F(sums[0]), reset = functions.F(sums[1]);
      const float added = (1 - z) * functions.G(sums[3] + reset * sums[2]);
      return added + z * hidden;
    }
  }
}

}  // namespace anydml::recurrent_cuda
