// A warp's work for 16 queries with tiles of keys and values, on tensor cores: logits and sums stay in
// registers (a running softmax).
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/device/cuda/tensor_cores.cuh"

namespace anydml::attention_tiles {

constexpr uint32_t kQueriesOfWarp = 16;
constexpr uint32_t kKeys = 64;  // per tile
// Powers are up to 2^10, so that the remainders of small ones are not subnormal.
constexpr float kPowerShift = 10;

__device__ __forceinline__ float PowerOfTwo(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

__device__ __forceinline__ uint32_t Bits(__half2 x) { return *reinterpret_cast<const uint32_t*>(&x); }

__device__ __forceinline__ __half ToHalf(float x) {
  return isnan(x) ? __ushort_as_half(0x7E00) : __float2half_rn(x);
}

// Splits two numbers into the nearest halves and halves of the remainders, as registers of a LeftTile:
// together they have 22 bits.
__device__ __forceinline__ void Split(float a, float b, uint32_t* high, uint32_t* low) {
  const __half2 nearest = __floats2half2_rn(a, b);
  const float2 back = __half22float2(nearest);
  *high = Bits(nearest);
  *low = Bits(__floats2half2_rn(__fsub_rn(a, back.x), __fsub_rn(b, back.y)));
}

// A warp's 16 queries. Each thread has parts of rows lane / 4 and lane / 4 + 8.
template <uint32_t kColumns>
class Rows {
 public:
  __device__ Rows(SharedRows<kColumns> shared, uint32_t warp, uint32_t lane) : lane_(lane) {
#pragma unroll
    for (uint32_t k = 0; k < kColumns / 16; ++k) {
      LoadMatrices(shared.At(warp * 16 + lane % 16, k * 2 + lane / 16), query_[k].registers);
    }
  }

  // Logits of a tile of keys, without their factor.
  __device__ __forceinline__ void MultiplyKeys(SharedRows<kColumns> keys) {
#pragma unroll
    for (uint32_t n = 0; n < kKeys / 8; ++n) logits_[n] = {};
#pragma unroll
    for (uint32_t k = 0; k < kColumns / 16; ++k) {
#pragma unroll
      for (uint32_t n = 0; n < kKeys / 8; n += 2) {
        uint32_t right[4];
        LoadMatrices(keys.At(n * 8 + lane_ / 16 * 8 + lane_ % 8, k * 2 + lane_ / 8 % 2), right);
        Multiply(query_[k], right[0], right[1], &logits_[n]);
        Multiply(query_[k], right[2], right[3], &logits_[n + 1]);
      }
    }
  }

  // Row lane / 4 sees the first `seen` keys of the tile, the other row the first `seen_below`.
  __device__ __forceinline__ void Hide(uint32_t seen, uint32_t seen_below) {
#pragma unroll
    for (uint32_t n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t key = n * 8 + lane_ % 4 * 2 + i % 2;
        if (key >= (i < 2 ? seen : seen_below)) logits_[n].x[i] = -INFINITY;
      }
    }
  }

  // Replaces logits by powers.
  __device__ __forceinline__ void TakePowers(float factor) {
    float corrections[2];
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      float max = max_[r];
#pragma unroll
      for (uint32_t n = 0; n < kKeys / 8; ++n) {
        max = fmaxf(max, fmaxf(logits_[n].x[2 * r], logits_[n].x[2 * r + 1]));
      }
      max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
      max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
      const float base = max == -INFINITY ? 0.0f : __fmul_rn(max, factor);
      corrections[r] = Correction(max_[r], max, factor);
      max_[r] = max;
      float sum = 0;
#pragma unroll
      for (uint32_t n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (uint32_t i = 2 * r; i < 2 * r + 2; ++i) {
          logits_[n].x[i] = PowerOfTwo(__fmaf_rn(logits_[n].x[i], factor, __fsub_rn(kPowerShift, base)));
          sum = __fadd_rn(sum, logits_[n].x[i]);
        }
      }
      sums_[r] = __fmaf_rn(sums_[r], corrections[r], sum);
    }
    if (!__any_sync(~0u, corrections[0] != 1 || corrections[1] != 1)) return;
#pragma unroll
    for (uint32_t n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) results_[n].x[i] = __fmul_rn(results_[n].x[i], corrections[i / 2]);
    }
  }

  // Adds powers times values.
  __device__ __forceinline__ void AddValues(SharedRows<kColumns> values) {
#pragma unroll
    for (uint32_t k = 0; k < kKeys / 16; ++k) {
      LeftTile high, low;
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const float* const pair = logits_[2 * k + i / 2].x + i % 2 * 2;
        Split(pair[0], pair[1], &high.registers[i], &low.registers[i]);
      }
#pragma unroll
      for (uint32_t n = 0; n < kColumns / 8; n += 4) {
        uint32_t right[2][4];
#pragma unroll
        for (uint32_t j = 0; j < 2; ++j) {
          LoadTransposed(values.At(k * 16 + lane_ % 16, n + 2 * j + lane_ / 16), right[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
          Multiply(high, right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1], &results_[n + j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
          Multiply(low, right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1], &results_[n + j]);
        }
      }
    }
  }

  // Stores row r (0: lane / 4, 1: lane / 4 + 8) to the output: part `part` of kCount parts of its columns.
  // Returns whether there may be NaNs among them.
  template <uint32_t kCount>
  __device__ __forceinline__ bool Store(uint32_t r, uint32_t part, uint32_t columns, __half* to) {
    const float factor = __fdiv_rn(1.0f, sums_[r]);
    float any = 0;  // NaN if there is one
#pragma unroll
    for (uint32_t n = 0; n < kColumns / 8; ++n) {
      if (n / (kColumns / 8 / kCount) != part) continue;
      if (n * 8 >= columns) break;
      const float a = __fmul_rn(results_[n].x[2 * r], factor),
                  b = __fmul_rn(results_[n].x[2 * r + 1], factor);
      any = __fadd_rn(any, __fadd_rn(a, b));
      *reinterpret_cast<__half2*>(to + n * 8 + lane_ % 4 * 2) = __halves2half2(ToHalf(a), ToHalf(b));
    }
    return isnan(any);
  }

  // Leaves maxima, sums and results for warps with other keys: kBytesOfPart per warp.
  static constexpr uint32_t kBytesOfPart = (1 + kColumns / 8) * 32 * sizeof(float4);
  __device__ __forceinline__ void Leave(float4* to) const {
    to[lane_] = make_float4(max_[0], max_[1], sums_[0], sums_[1]);
#pragma unroll
    for (uint32_t n = 0; n < kColumns / 8; ++n) {
      const float* const x = results_[n].x;
      to[(1 + n) * 32 + lane_] = make_float4(x[0], x[1], x[2], x[3]);
    }
  }

  // Merges what kCount warps have left; of the results only the part that Store writes.
  template <uint32_t kCount>
  __device__ __forceinline__ void Merge(const float4* from, uint32_t part, float factor) {
    constexpr uint32_t kPart = kBytesOfPart / sizeof(float4);
    float4 known[kCount];
#pragma unroll
    for (uint32_t w = 0; w < kCount; ++w) known[w] = from[w * kPart + lane_];
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (uint32_t w = 0; w < kCount; ++w) {
      largest[0] = fmaxf(largest[0], known[w].x);
      largest[1] = fmaxf(largest[1], known[w].y);
    }
    float factors[kCount][2];
    sums_[0] = sums_[1] = 0;
#pragma unroll
    for (uint32_t w = 0; w < kCount; ++w) {
      factors[w][0] = Correction(known[w].x, largest[0], factor);
      factors[w][1] = Correction(known[w].y, largest[1], factor);
      sums_[0] = __fmaf_rn(known[w].z, factors[w][0], sums_[0]);
      sums_[1] = __fmaf_rn(known[w].w, factors[w][1], sums_[1]);
    }
#pragma unroll
    for (uint32_t n = 0; n < kColumns / 8; ++n) {
      if (n / (kColumns / 8 / kCount) != part) continue;
      results_[n] = {};
#pragma unroll
      for (uint32_t w = 0; w < kCount; ++w) {
        const float4 x = from[w * kPart + (1 + n) * 32 + lane_];
        results_[n].x[0] = __fmaf_rn(x.x, factors[w][0], results_[n].x[0]);
        results_[n].x[1] = __fmaf_rn(x.y, factors[w][0], results_[n].x[1]);
        results_[n].x[2] = __fmaf_rn(x.z, factors[w][1], results_[n].x[2]);
        results_[n].x[3] = __fmaf_rn(x.w, factors[w][1], results_[n].x[3]);
      }
    }
  }

  // Over the four threads of a row.
  __device__ __forceinline__ void MergeSums() {
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      sums_[r] = __fadd_rn(sums_[r], __shfl_xor_sync(~0u, sums_[r], 1));
      sums_[r] = __fadd_rn(sums_[r], __shfl_xor_sync(~0u, sums_[r], 2));
    }
  }

 private:
  // The factor for powers relative to an old maximum. As long as all logits are -infinity, powers are 0.
  __device__ static __forceinline__ float Correction(float before, float max, float factor) {
    const float base = max == -INFINITY ? 0.0f : __fmul_rn(max, factor);
    return before == max ? 1.0f : PowerOfTwo(__fmaf_rn(before, factor, -base));
  }

  uint32_t lane_;
  LeftTile query_[kColumns / 16];
  SumTile logits_[kKeys / 8];
  SumTile results_[kColumns / 8] = {};
  float max_[2] = {-INFINITY, -INFINITY};
  float sums_[2] = {};
};

}  // namespace anydml::attention_tiles
