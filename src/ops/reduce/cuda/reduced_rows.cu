// Reductions of contiguous elements: a warp or a block for every output's segment.
#include "ops/device/cuda/float_units.cuh"

namespace anydml::reduce {
namespace {

// Adds elements [begin, end) of a row that begins at a unit, as thread `lane` of `lanes`. `begin` is a
// multiple of a unit.
template <typename A, typename T>
__device__ A AddUnits(const T* row, uint64_t begin, uint64_t end, uint32_t lane, uint32_t lanes) {
  constexpr uint32_t kUnroll = kUnitsAtOnce<A>;
  const auto* const units = reinterpret_cast<const uint4*>(row);
  const uint64_t last = end / kPerUnit<T>;  // whole units
  A a = A::Start();
  const auto add = [&](const uint4& unit, uint64_t number) {
    const Numbers<T> numbers = NumbersOf<T>(unit);
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) {
      a.Add(numbers.x[j], static_cast<uint32_t>(number * kPerUnit<T> + j));
    }
  };
  for (uint64_t u = begin / kPerUnit<T> + lane; u < last; u += kUnroll * lanes) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (uint32_t k = 0; k < kUnroll; ++k) {
      if (u + k * lanes < last) loaded[k] = __ldcs(units + u + k * lanes);
    }
#pragma unroll
    for (uint32_t k = 0; k < kUnroll; ++k) {
      if (u + k * lanes < last) add(loaded[k], u + k * lanes);
    }
  }
  const uint64_t rest = last * kPerUnit<T> + lane;
  if (rest < end) a.Add(NumberAt<T>(row, rest), static_cast<uint32_t>(rest));
  return a;
}

template <typename A, typename T>
__global__ void __launch_bounds__(1024) ReduceRows(const __grid_constant__ ReduceParameters p) {
  __shared__ A shared[32];
  const uint32_t segment = blockIdx.x % p.segments;
  const uint64_t output = uint64_t{blockIdx.x / p.segments} * p.columns + threadIdx.x / p.lanes;
  if (output >= p.outputs) return;  // whole warps; blocks have one output each, or do not synchronise
  uint64_t start[2];
  p.kept.OffsetsOf(static_cast<uint32_t>(output), start);
  const uint64_t begin = uint64_t{segment} * p.segment;
  const uint64_t end = min(begin + p.segment, uint64_t{p.elements});
  const uint32_t lane = threadIdx.x % p.lanes;
  A a = AddUnits<A, T>(static_cast<const T*>(p.input) + start[0], begin, end, lane, p.lanes);
  a = p.columns == 1 ? MergeBlock(a, shared) : MergeWarp(a);
  if (lane == 0) EndSegment(p, static_cast<uint32_t>(output), segment, a);
}

}  // namespace

Launch FindRowsLaunch(Accumulation kind, bool last, DataType type) {
  return ForFloats(kind, last, type, [&]<typename A, typename T>() -> Launch {
    return [](KernelChain& chain, const ReduceParameters& p, const Grid& grid) {
      chain.Launch(ReduceRows<A, T>, grid, p);
    };
  });
}

}  // namespace anydml::reduce
