// Reductions with contiguous outputs: a thread has a unit of outputs, `columns` threads (up to 32) as many
// adjacent units, and such groups of threads share the elements in turn.
#include "ops/device/cuda/float_units.cuh"

namespace anydml::reduce {
namespace {

// Accumulators that threads merge: number j of thread t is placed so that neither side has bank conflicts.
template <typename A, uint32_t kCount>
struct ColumnParts {
  A parts[kCount * (kReduceThreads + 32 / kCount)];
  __device__ A& At(uint32_t j, uint32_t thread) { return parts[j * (kReduceThreads + 32 / kCount) + thread]; }
};

// The merged accumulator of column `o` of the block (one of p.columns * kCount) over all groups of threads,
// in thread `o`.
template <typename A, uint32_t kCount>
__device__ A MergeGroups(const ReduceParameters& p, ColumnParts<A, kCount>* shared, uint32_t groups) {
  const uint32_t outputs = p.columns * kCount, shares = kReduceThreads / outputs;
  const uint32_t o = threadIdx.x % outputs, share = threadIdx.x / outputs;
  const uint32_t first = share * (groups / shares), end = first + groups / shares;
  A a = shared->At(o % kCount, first * p.columns + o / kCount);
  for (uint32_t y = first + 1; y < end; ++y) a.Merge(shared->At(o % kCount, y * p.columns + o / kCount));
  if (shares == 1) return a;
  __syncthreads();
  shared->parts[threadIdx.x] = a;
  __syncthreads();
  for (uint32_t s = 1; s < shares && share == 0; ++s) a.Merge(shared->parts[s * outputs + o]);
  return a;
}

template <typename A, typename T>
__global__ void __launch_bounds__(kReduceThreads, kReduceColumnBlocksAtOnce)
    ReduceColumns(const __grid_constant__ ReduceParameters p) {
  constexpr uint32_t kCount = kPerUnit<T>;
  constexpr uint32_t kUnroll = kUnitsAtOnce<A>;
  __shared__ ColumnParts<A, kCount> shared;
  LetNextStart();
  const uint32_t x = threadIdx.x % p.columns, y = threadIdx.x / p.columns,
                 groups = kReduceThreads / p.columns;
  const uint32_t segment = blockIdx.x % p.segments;
  const uint64_t first_output = uint64_t{blockIdx.x / p.segments} * p.columns * kCount;
  const uint64_t output = first_output + x * kCount;
  A a[kCount];
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) a[j] = A::Start();
  if (output < p.outputs) {
    uint64_t start[2];
    p.kept.OffsetsOf(static_cast<uint32_t>(output), start);
    const T* const column = static_cast<const T*>(p.input) + start[0];
    // There are at least 64 outputs, so elements are far fewer than 2^32.
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
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) shared.At(j, threadIdx.x) = a[j];
  __syncthreads();
  const A merged = MergeGroups<A, kCount>(p, &shared, groups);
  const uint64_t own = first_output + threadIdx.x;
  if (threadIdx.x < p.columns * kCount && own < p.outputs) {
    EndSegment(p, static_cast<uint32_t>(own), segment, merged);
  }
}

}  // namespace

Launch FindColumnsLaunch(Accumulation kind, bool last, DataType type) {
  return ForFloats(kind, last, type, [&]<typename A, typename T>() -> Launch {
    return [](KernelChain& chain, const ReduceParameters& p, const Grid& grid) {
      chain.Launch(ReduceColumns<A, T>, grid, p);
    };
  });
}

}  // namespace anydml::reduce
