// Reductions whose outputs' elements are neighbours: a thread takes a unit of outputs, 32 threads as many
// units side by side, and the block's warps every eighth element.
#include "ops/reduce/cuda/units.cuh"

namespace anydml::reduce {
namespace {

constexpr uint32_t kWarps = 8;

template <typename A, typename T>
__global__ void __launch_bounds__(kWarps * 32) ReduceColumns(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = kPerUnit<T>, kUnroll = kUnitsAtOnce<A>;
  __shared__ A shared[kWarps / 2][kCount][32];
  const uint32_t x = threadIdx.x % 32, y = threadIdx.x / 32;
  const uint32_t segment = blockIdx.x % p.segments;
  const uint64_t output = (uint64_t{blockIdx.x / p.segments} * 32 + x) * kCount;
  A a[kCount];
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) a[j] = A::Start();
  if (output < p.outputs) {
    uint64_t start[2];
    p.kept.OffsetsOf(static_cast<uint32_t>(output), start);
    const T* const column = static_cast<const T*>(p.input) + start[0];
    const uint64_t begin = uint64_t{segment} * p.segment;
    const uint64_t end = min(begin + p.segment, uint64_t{p.elements});
    const auto load = [&](uint64_t i) {
      uint64_t offset[1];
      p.reduced.OffsetsOf(static_cast<uint32_t>(i), offset);
      return __ldcs(reinterpret_cast<const uint4*>(column + offset[0]));
    };
    const auto add = [&](const uint4& unit, uint64_t i) {
      const Numbers<T> numbers = NumbersOf<T>(unit);
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) a[j].Add(numbers.x[j], static_cast<uint32_t>(i));
    };
    for (uint64_t i = begin + y; i < end; i += kUnroll * kWarps) {
      uint4 loaded[kUnroll];
#pragma unroll
      for (uint32_t k = 0; k < kUnroll; ++k) {
        if (i + k * kWarps < end) loaded[k] = load(i + k * kWarps);
      }
#pragma unroll
      for (uint32_t k = 0; k < kUnroll; ++k) {
        if (i + k * kWarps < end) add(loaded[k], i + k * kWarps);
      }
    }
  }
#pragma unroll
  for (uint32_t half = kWarps / 2; half > 0; half /= 2) {
    if (y >= half && y < 2 * half) {
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) shared[y - half][j][x] = a[j];
    }
    __syncthreads();
    if (y < half) {
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) a[j].Merge(shared[y][j][x]);
    }
    __syncthreads();
  }
  if (y != 0 || output >= p.outputs) return;
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) EndSegment(p, static_cast<uint32_t>(output) + j, segment, a[j]);
}

}  // namespace

Launch FindColumnsLaunch(Accumulation kind, bool last, DataType type) {
  return ForFloats(kind, last, type, [&]<typename A, typename T>() -> Launch {
    return [](KernelChain& chain, const Parameters& p, uint32_t blocks, uint32_t threads) {
      chain.Launch(ReduceColumns<A, T>, blocks, threads, p);
    };
  });
}

}  // namespace anydml::reduce
