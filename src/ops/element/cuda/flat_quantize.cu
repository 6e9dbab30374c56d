// QUANTIZE of FLOAT16 with one scale. A division takes longer than moving an element, so quotients are
// multiplications with the reciprocal, corrected until they round as a division does.
#include "ops/element/cuda/flat.cuh"

namespace anydml::element_cuda {
namespace {

constexpr uint32_t kCount = 8;  // elements per unit
constexpr uint32_t kUnits = 2;  // per thread

// FLOAT16 numbers, their quotients by such a scale and the remainders are all normal FLOAT32 numbers.
__device__ bool IsOrdinary(float scale) { return fabsf(scale) >= 0x1p-60f && fabsf(scale) <= 0x1p60f; }

// x / scale, accurate enough for its nearest integer. If the scale is a FLOAT16 number, one correction makes
// exact all quotients in the middle between two integers; all others below 512, beyond which results
// saturate, are at least 2^-12 away from such a middle. For other scales a second correction rounds as a
// division does (Markstein). An infinite x has no remainder.
template <bool kHalfScale>
__device__ float Quotient(float x, float scale, float reciprocal) {
  const float rough = __fmul_rn(x, reciprocal);
  float closer = rough;
  if constexpr (!kHalfScale) closer = __fmaf_rn(__fmaf_rn(-rough, scale, x), reciprocal, rough);
  const float rest = __fmaf_rn(-closer, scale, x);
  return rest == rest ? __fmaf_rn(rest, reciprocal, closer) : rough;
}

// The nearest 16-bit integer (0 for NaN), plus the zero point.
__device__ int32_t Whole(float quotient, int32_t zero_point) {
  int16_t whole;
  asm("cvt.rni.s16.f32 %0, %1;" : "=h"(whole) : "f"(quotient));
  return whole + zero_point;
}

// Clamps four numbers to To; the first is in the low bits.
template <typename To>
__device__ uint32_t Saturated(const int32_t (&x)[4]) {
  uint32_t high, all;
  if constexpr (std::is_signed_v<To>) {
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(x[3]), "r"(x[2]), "r"(0));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(x[1]), "r"(x[0]), "r"(high));
  } else {
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(x[3]), "r"(x[2]), "r"(0));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(x[1]), "r"(x[0]), "r"(high));
  }
  return all;
}

template <typename To>
__global__ void __launch_bounds__(kFlatThreads) QuantizeHalves(const __grid_constant__ Flat flat) {
  const uint64_t units = flat.elements / kCount;
  const auto* const from = reinterpret_cast<const uint4*>(flat.inputs[0].data);
  auto* const to = reinterpret_cast<uint2*>(flat.output);
  const uint64_t first = uint64_t{blockIdx.x} * kFlatThreads * kUnits + threadIdx.x;
  uint4 loaded[kUnits];
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u) {
    loaded[u] = {};
    if (first + u * kFlatThreads < units) loaded[u] = __ldcs(from + first + u * kFlatThreads);
  }
  const float scale = ReadUniform(flat.uniform[0]), reciprocal = __frcp_rn(scale);
  const auto zero_point = static_cast<int32_t>(ReadUniform(flat.uniform[1]));
  const bool ordinary = IsOrdinary(scale), half_scale = __half2float(__float2half_rn(scale)) == scale;
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u) {
    Pack<Half, kCount> elements;
    memcpy(&elements, &loaded[u], sizeof(elements));
    int32_t wholes[2][4];
    const auto find = [&](const auto& quotient) {
#pragma unroll
      for (uint32_t e = 0; e < kCount; ++e) {
        wholes[e / 4][e % 4] = Whole(quotient(NumberOfElement(elements.elements[e])), zero_point);
      }
    };
    if (!ordinary) {
      find([&](float x) { return __fdiv_rn(x, scale); });
    } else if (half_scale) {
      find([&](float x) { return Quotient<true>(x, scale, reciprocal); });
    } else {
      find([&](float x) { return Quotient<false>(x, scale, reciprocal); });
    }
    if (first + u * kFlatThreads < units) {
      to[first + u * kFlatThreads] = {Saturated<To>(wholes[0]), Saturated<To>(wholes[1])};
    }
  }
  const uint64_t rest = units * kCount + threadIdx.x;
  if (blockIdx.x == 0 && rest < flat.elements) {
    const Half x = reinterpret_cast<const Half*>(flat.inputs[0].data)[rest];
    const int32_t whole = Whole(__fdiv_rn(NumberOfElement(x), scale), zero_point);
    reinterpret_cast<uint8_t*>(flat.output)[rest] =
        static_cast<uint8_t>(Saturated<To>({whole, whole, whole, whole}));
  }
}

template <typename To>
void LaunchQuantizeHalves(const Flat& flat, void* stream) {
  if (!flat.aligned) return LaunchFlat<RowBody<rows::Quantize>, 1, Half, To>(flat, stream);
  constexpr uint64_t kBlock = uint64_t{kFlatThreads} * kUnits * kCount;
  const auto blocks = static_cast<uint32_t>((flat.elements + kBlock - 1) / kBlock);
  QuantizeHalves<To><<<blocks, kFlatThreads, 0, static_cast<cudaStream_t>(stream)>>>(flat);
}

}  // namespace

FlatLaunch* FindFlatQuantizeOfHalf(DataType to) {
  if (to == DataType::kInt8) return LaunchQuantizeHalves<int8_t>;
  return to == DataType::kUInt8 ? LaunchQuantizeHalves<uint8_t> : nullptr;
}

}  // namespace anydml::element_cuda
