#include "ops/element/cuda/flat.cuh"

namespace anydml::element_cuda {
namespace {

// math::GeluOfHalf with the device's power of 2, which is more exact than the polynomial there, and without
// what the conversion to FLOAT16 does anyway: half the instructions. max(x, -0) keeps NaNs and the sign of 0.
struct GeluOfHalfBody {
  static __device__ __forceinline__ float Call(float x, float, float, const Instruction&) {
    const float t = fminf(fabsf(x), 6.25f);  // from where the result is 0 or x
    const float s = __fmul_rn(t, t);
    float p = __fmaf_rn(t, 0x1.1dd81p-15f, -0x1.931c06p-11f);
    p = __fmaf_rn(s, p, __fmaf_rn(t, 0x1.07680ap-7f, -0x1.b45284p-5f));
    p = __fmaf_rn(s, p, __fmaf_rn(t, -0x1.d5f942p-2f, -0x1.26afcep0f));
    float half_power, positive;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(half_power) : "f"(__fmaf_rn(t, p, -1.0f)));
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(positive) : "f"(x), "f"(-0.0f));
    return __fmaf_rn(-t, half_power, positive);
  }
};

}  // namespace

FlatLaunch* FindFlatTranscendental(ElementFunction function, uint32_t varying, DataType from, DataType to) {
  using F = ElementFunction;
  if (varying != 1) return nullptr;
  switch (function) {
    case F::kExp:
      return FlatOfFloats<rows::Exp, 1>(from, to);
    case F::kLog:
      return FlatOfFloats<rows::Log, 1>(from, to);
    case F::kSin:
      return FlatOfFloats<rows::Sin, 1>(from, to);
    case F::kCos:
      return FlatOfFloats<rows::Cos, 1>(from, to);
    case F::kTanh:
      return FlatOfFloats<rows::Tanh, 1>(from, to);
    case F::kErf:
      return FlatOfFloats<rows::Erf, 1>(from, to);
    case F::kSigmoid:
      return FlatOfFloats<rows::Sigmoid, 1>(from, to);
    case F::kGelu:
      return FlatOfFloats<rows::Gelu, 1>(from, to);
    case F::kGeluOfHalf:
      if (from != DataType::kFloat16 || to != DataType::kFloat16) return nullptr;
      return LaunchFlat<GeluOfHalfBody, 1, Half, Half>;
    case F::kSwish:
      return FlatOfFloats<rows::Swish, 1>(from, to);
    case F::kElu:
      return FlatOfFloats<rows::Elu, 1>(from, to);
    default:
      return nullptr;
  }
}

}  // namespace anydml::element_cuda
