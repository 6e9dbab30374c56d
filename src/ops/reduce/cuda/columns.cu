// Reductions whose outputs' elements are neighbours: a thread takes a unit of outputs, `columns` threads (up
// to 32) as many units side by side, and such groups of threads their share of the elements, one after the
// other.
#include "ops/reduce/cuda/units.cuh"

namespace anydml::reduce {
namespace {

constexpr uint32_t kThreads = 256;

template <typename A, typename T>
__global__ void __launch_bounds__(kThreads) ReduceColumns(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = kPerUnit<T>;
  // Eight accumulators leave fewer registers, and half as many units let more blocks wait for theirs.
  constexpr uint32_t kUnroll = sizeof(T) == 2 && kUnitsAtOnce < A >> 4 ? 4 : kUnitsAtOnce<A>;
  __shared__ A shared[kCount][kThreads / 2];
  LetNextStart();
  const uint32_t x = threadIdx.x % p.columns, y = threadIdx.x / p.columns, groups = kThreads / p.columns;
  const uint32_t segment = blockIdx.x % p.segments;
  const uint64_t output = (uint64_t{blockIdx.x / p.segments} * p.columns + x) * kCount;
  A a[kCount];
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) a[j] = A::Start();
  if (output < p.outputs) {
    uint64_t start[2];
    p.kept.OffsetsOf(static_cast<uint32_t>(output), start);
    const T* const column = static_cast<const T*>(p.input) + start[0];
    // There are 64 outputs at least, so that elements are far fewer than 2^32.
    const uint32_t begin = segment * p.segment, end = min(begin + p.segment, p.elements);
    const auto load = [&](uint32_t i) {
      uint64_t offset[1];
      p.reduced.OffsetsOf(i, offset);
      return __ldcs(reinterpret_cast<const uint4*>(column + offset[0]));
    };
    const auto add = [&](const uint4& unit, uint32_t i) {
      const Numbers<T> numbers = NumbersOf<T>(unit);
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) a[j].Add(numbers.x[j], i);
    };
    for (uint32_t i = begin + y; i < end; i += kUnroll * groups) {
      uint4 loaded[kUnroll];
#pragma unroll
      for (uint32_t k = 0; k < kUnroll; ++k) {
        if (i + k * groups < end) loaded[k] = load(i + k * groups);
      }
#pragma unroll
      for (uint32_t k = 0; k < kUnroll; ++k) {
        if (i + k * groups < end) add(loaded[k], i + k * groups);
      }
    }
  }
  for (uint32_t half = groups / 2; half > 0; half /= 2) {
    if (y >= half && y < 2 * half) {
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) shared[j][threadIdx.x - half * p.columns] = a[j];
    }
    __syncthreads();
    if (y < half) {
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) a[j].Merge(shared[j][threadIdx.x]);
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
