// One row times a matrix, which is bandwidth-bound. Threads read the matrix in units of 16 bytes, with
// several loads in flight. If its rows are contiguous, a block has some neighbouring columns, and the blocks
// of a cluster share its rows, whose sums they add in a fixed order; if its columns are contiguous, a warp
// has some of them.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "kernel/device_traits.h"
#include "ops/convolution/activation.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/gemm/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / 32;
constexpr uint32_t kOnTheirWay = 8;  // units in flight per thread
constexpr uint32_t kMostCluster = 8;
constexpr uint64_t kMostSteps = 8192;  // per block: its part of the row is in shared memory, as FLOAT32

struct Parameters {
  const void* a;
  const void* b;
  const void* c;  // null: none
  void* output;
  uint64_t a_stride, b_stride, c_stride, output_stride;  // b_stride: between contiguous rows, or columns
  uint32_t n, k;
  uint32_t steps;    // per block
  uint32_t cluster;  // blocks that share the steps
  float alpha, beta;
  SumLimits limits;
  bool half_output;
};

__device__ __forceinline__ float ToNumber(float x) { return x; }
__device__ __forceinline__ float ToNumber(__half x) { return __half2float(x); }

template <typename T>
struct alignas(kUnitBytes) Unit {
  static constexpr uint32_t kElements = kUnitBytes / sizeof(T);
  T elements[kElements];
};

// Bypasses L1, where nothing of the matrix is used again.
template <typename T>
__device__ __forceinline__ Unit<T> Load(const T* from) {
  const uint4 bits = __ldcg(reinterpret_cast<const uint4*>(from));
  Unit<T> unit;
  memcpy(&unit, &bits, sizeof(unit));
  return unit;
}

// Prefetches into L2; allowed before an earlier kernel's writes are complete, since the data are read only
// later.
__device__ __forceinline__ void Prefetch(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

template <typename T>
__device__ __forceinline__ void Finish(const Parameters& p, uint32_t column, float sum) {
  float result = p.alpha * sum;
  if (p.c != nullptr) result += p.beta * ToNumber(static_cast<const T*>(p.c)[column * p.c_stride]);
  result = p.limits.Of(result);
  const uint64_t at = column * p.output_stride;
  if (p.half_output) {
    static_cast<__half*>(p.output)[at] = __float2half_rn(result);
  } else {
    static_cast<float*>(p.output)[at] = result;
  }
}

// A part of the row, in shared memory.
template <typename T>
__device__ __forceinline__ void LoadRow(const Parameters& p, uint32_t first, uint32_t count, float* to) {
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    to[i] = ToNumber(static_cast<const T*>(p.a)[(first + i) * p.a_stride]);
  }
}

// For contiguous rows: kLanes threads have neighbouring units of one row, the next kLanes those of the next
// row.
template <typename T, uint32_t kLanes>
__global__ void __launch_bounds__(kThreads) MultiplyRows(const __grid_constant__ Parameters p) {
  constexpr uint32_t kElements = Unit<T>::kElements, kColumns = kLanes * kElements;
  constexpr uint32_t kGroups = kThreads / kLanes;  // rows that the block reads at the same time
  extern __shared__ __align__(16) float row[];
  __shared__ float of_warps[kWarps][kColumns];
  __shared__ float of_block[kColumns];
  const uint32_t rank = blockIdx.x % p.cluster;
  const uint32_t first_column = blockIdx.x / p.cluster * kColumns;
  const uint32_t column = first_column + threadIdx.x % kLanes * kElements, group = threadIdx.x / kLanes;
  const uint32_t first = min(rank * p.steps, p.k), count = min(p.steps, p.k - first);
  const bool exists = column < p.n;
  const T* const b = static_cast<const T*>(p.b) + (first + group) * p.b_stride + column;
  const uint64_t step = kGroups * p.b_stride;
  if (exists && threadIdx.x % 8 == 0) {
    for (uint32_t i = 0; i < kOnTheirWay; ++i) {
      if (group + i * kGroups < count) Prefetch(b + i * step);
    }
  }
  WaitForPrevious();
  float sums[kElements] = {};
  const auto load = [&](uint32_t begin, Unit<T>(&units)[kOnTheirWay]) {
#pragma unroll
    for (uint32_t i = 0; i < kOnTheirWay; ++i) {
      units[i] = {};
      const uint32_t at = begin + group + i * kGroups;
      if (exists && at < count) units[i] = Load(b + (begin / kGroups + i) * step);
    }
  };
  Unit<T> units[kOnTheirWay];
  load(0, units);
  LoadRow<T>(p, first, count, row);
  __syncthreads();
  for (uint32_t begin = 0; begin < count; begin += kGroups * kOnTheirWay) {
    if (begin > 0) load(begin, units);
#pragma unroll
    for (uint32_t i = 0; i < kOnTheirWay; ++i) {
      const uint32_t at = begin + group + i * kGroups;
      if (at >= count) break;
#pragma unroll
      for (uint32_t e = 0; e < kElements; ++e) {
        sums[e] = __fmaf_rn(row[at], ToNumber(units[i].elements[e]), sums[e]);
      }
    }
  }
  LetNextStart();
#pragma unroll
  for (uint32_t e = 0; e < kElements; ++e) {
#pragma unroll
    for (uint32_t distance = kLanes; distance < 32; distance *= 2) {
      sums[e] += __shfl_xor_sync(~0u, sums[e], distance);
    }
    if (threadIdx.x % 32 < kLanes) {
      of_warps[threadIdx.x / 32][threadIdx.x % 32 * kElements + e] = sums[e];
    }
  }
  __syncthreads();
  if (threadIdx.x < kColumns) {
    float sum = 0;
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) sum += of_warps[w][threadIdx.x];
    of_block[threadIdx.x] = sum;
  }
  static_assert(kColumns <= kThreads);
  if (p.cluster == 1) {
    if (threadIdx.x < kColumns && first_column + threadIdx.x < p.n) {
      Finish<T>(p, first_column + threadIdx.x, of_block[threadIdx.x]);
    }
    return;
  }
  namespace groups = cooperative_groups;
  const groups::cluster_group cluster = groups::this_cluster();
  cluster.sync();
  // Each block adds the sums of some of the columns.
  const uint32_t share = kColumns / p.cluster, own = rank * share + threadIdx.x;
  if (threadIdx.x < share && first_column + own < p.n) {
    float sum = 0;
    for (uint32_t r = 0; r < p.cluster; ++r) sum += cluster.map_shared_rank(of_block, r)[own];
    Finish<T>(p, first_column + own, sum);
  }
  cluster.sync();  // other blocks read this block's shared memory
}

// A thread's part of a contiguous row: loaded while the matrix is prefetched, then put into shared memory.
// Other rows, and the ends of long ones, are read element by element.
template <typename T>
class RowUnits {
 public:
  __device__ __forceinline__ explicit RowUnits(const Parameters& p) : p_(p) {
    // A multiple of kElements, as the matrix's columns are.
    in_units_ = p.a_stride == 1 ? min(p.k / kElements, kUnits * kThreads) : 0;
#pragma unroll
    for (uint32_t i = 0; i < kUnits; ++i) {
      const uint32_t at = i * kThreads + threadIdx.x;
      if (at < in_units_) units_[i] = Load(static_cast<const T*>(p.a) + at * kElements);
    }
  }

  __device__ __forceinline__ void Store(float* to) const {
#pragma unroll
    for (uint32_t i = 0; i < kUnits; ++i) {
      const uint32_t at = i * kThreads + threadIdx.x;
      if (at >= in_units_) break;
#pragma unroll
      for (uint32_t e = 0; e < kElements; ++e) to[at * kElements + e] = ToNumber(units_[i].elements[e]);
    }
    const uint32_t done = in_units_ * kElements;
    LoadRow<T>(p_, done, p_.k - done, to + done);
  }

 private:
  static constexpr uint32_t kElements = Unit<T>::kElements;
  static constexpr uint32_t kUnits = 4;
  const Parameters& p_;
  uint32_t in_units_;
  Unit<T> units_[kUnits];
};

// For contiguous columns: a warp has kColumns of them.
template <typename T, uint32_t kColumns>
__global__ void __launch_bounds__(kThreads) MultiplyColumns(const __grid_constant__ Parameters p) {
  constexpr uint32_t kElements = Unit<T>::kElements;
  constexpr uint32_t kUnits = kOnTheirWay / kColumns;  // per column at a time
  extern __shared__ __align__(16) float row[];
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first = (blockIdx.x * kWarps + threadIdx.x / 32) * kColumns;
  const T* const b = static_cast<const T*>(p.b) + first * p.b_stride + lane * kElements;
  const auto exists = [&](uint32_t column, uint32_t at) {
    return first + column < p.n && at + lane * kElements < p.k;
  };
  const auto load = [&](uint32_t begin, Unit<T>(&units)[kColumns][kUnits]) {
#pragma unroll
    for (uint32_t c = 0; c < kColumns; ++c) {
#pragma unroll
      for (uint32_t i = 0; i < kUnits; ++i) {
        units[c][i] = {};
        const uint32_t at = begin + i * 32 * kElements;
        if (exists(c, at)) units[c][i] = Load(b + c * p.b_stride + at);
      }
    }
  };
  if (lane % 8 == 0) {
    for (uint32_t c = 0; c < kColumns; ++c) {
      for (uint32_t i = 0; i < kUnits; ++i) {
        if (exists(c, i * 32 * kElements)) Prefetch(b + c * p.b_stride + i * 32 * kElements);
      }
    }
  }
  // Also prefetches the row, which all blocks need at the same time; a few of them do it.
  constexpr uint32_t kAskingBlocks = 16, kLine = 128 / sizeof(T);
  if (p.a_stride == 1 && blockIdx.x % kAskingBlocks == 0) {
    for (uint32_t i = threadIdx.x * kLine; i < p.k; i += kThreads * kLine) {
      Prefetch(static_cast<const T*>(p.a) + i);
    }
  }
  WaitForPrevious();
  const RowUnits<T> row_units(p);
  Unit<T> units[kColumns][kUnits], next[kColumns][kUnits];
  load(0, units);
  LetNextStart();  // the next kernel's first loads overlap with the end of this one
  row_units.Store(row);
  __syncthreads();
  float sums[kColumns] = {};
  constexpr uint32_t kSteps = 32 * kElements * kUnits;
  for (uint32_t begin = 0; begin < p.k; begin += kSteps) {
    load(begin + kSteps, next);
#pragma unroll
    for (uint32_t i = 0; i < kUnits; ++i) {
      const uint32_t at = begin + (i * 32 + lane) * kElements;
      if (at >= p.k) break;
#pragma unroll
      for (uint32_t e = 0; e < kElements; e += 4) {
        const float4 some = *reinterpret_cast<const float4*>(row + at + e);
#pragma unroll
        for (uint32_t c = 0; c < kColumns; ++c) {
          sums[c] = __fmaf_rn(some.x, ToNumber(units[c][i].elements[e]), sums[c]);
          sums[c] = __fmaf_rn(some.y, ToNumber(units[c][i].elements[e + 1]), sums[c]);
          sums[c] = __fmaf_rn(some.z, ToNumber(units[c][i].elements[e + 2]), sums[c]);
          sums[c] = __fmaf_rn(some.w, ToNumber(units[c][i].elements[e + 3]), sums[c]);
        }
      }
    }
#pragma unroll
    for (uint32_t c = 0; c < kColumns; ++c) {
#pragma unroll
      for (uint32_t i = 0; i < kUnits; ++i) units[c][i] = next[c][i];
    }
  }
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c) {
#pragma unroll
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
      sums[c] += __shfl_xor_sync(~0u, sums[c], distance);
    }
    if (lane == c && first + c < p.n) Finish<T>(p, first + c, sums[c]);
  }
}

using Function = void (*)(Parameters);

class GemmOneRow final : public Kernel {
 public:
  // For one row and a matrix contiguous either way; `exchanged`: A and B are swapped.
  GemmOneRow(const GemmProblem& problem, bool exchanged, const SumLimits& limits, uint32_t multiprocessors)
      : exchanged_(exchanged), has_c_(problem.c.has_value()) {
    Parameters& p = common_;
    const bool has_rows = problem.b.column == 1;
    p.a_stride = problem.a.column;
    p.b_stride = has_rows ? problem.b.row : problem.b.column;
    p.c_stride = has_c_ ? problem.c->column : 0;
    p.output_stride = problem.output.column;
    p.n = static_cast<uint32_t>(problem.n);
    p.k = static_cast<uint32_t>(problem.k);
    p.alpha = problem.alpha;
    p.beta = problem.beta;
    p.limits = limits;
    p.half_output = problem.output_type == DataType::kFloat16;
    const bool half = problem.type == DataType::kFloat16;
    has_rows ? half ? CutRows<__half>(multiprocessors) : CutRows<float>(multiprocessors)
    : half ? CutColumns<__half>(multiprocessors)
             : CutColumns<float>(multiprocessors);
    shared_bytes_ = p.steps * static_cast<uint32_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.a = arguments.inputs[exchanged_ ? 1 : 0].data;
    p.b = arguments.inputs[exchanged_ ? 0 : 1].data;
    p.c = has_c_ ? arguments.inputs[2].data : nullptr;
    p.output = arguments.outputs[0].data;
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(function_, blocks_, kThreads, p, shared_bytes_, p.cluster);
    return {};
  }

 private:
  // Long pieces of rows, unless that gives few blocks; then several blocks share a row's steps.
  template <typename T>
  void CutRows(uint32_t multiprocessors) {
    Parameters& p = common_;
    uint32_t lanes = 32;
    const auto columns = [&] { return lanes * Unit<T>::kElements; };
    const auto pieces = [&] { return (p.n + columns() - 1) / columns(); };
    while (lanes > 8 && (columns() > kThreads || pieces() * kMostCluster < multiprocessors * 3 / 2))
      lanes /= 2;
    constexpr uint32_t kLeastSteps = 32;  // more steps justify a cluster's synchronisation
    p.cluster = kMostCluster;
    while (p.cluster > 1 &&
           (pieces() * p.cluster / 2 >= multiprocessors * 4 || p.k < kLeastSteps * p.cluster) &&
           (p.k + p.cluster / 2 - 1) / (p.cluster / 2) <= kMostSteps) {
      p.cluster /= 2;
    }
    p.steps = (p.k + p.cluster - 1) / p.cluster;
    blocks_ = uint64_t{pieces()} * p.cluster;
    function_ = lanes == 32 ? MultiplyRows<T, 32> : lanes == 16 ? MultiplyRows<T, 16> : MultiplyRows<T, 8>;
  }

  // Several columns per warp share the reads of the row, unless that gives few warps.
  template <typename T>
  void CutColumns(uint32_t multiprocessors) {
    Parameters& p = common_;
    uint32_t columns = 4;
    while (columns > 1 && p.n / columns < multiprocessors * kWarps) columns /= 2;
    p.cluster = 1;
    p.steps = p.k;
    blocks_ = (uint64_t{p.n} + columns * kWarps - 1) / (columns * kWarps);
    function_ = columns == 4   ? MultiplyColumns<T, 4>
                : columns == 2 ? MultiplyColumns<T, 2>
                               : MultiplyColumns<T, 1>;
  }

  const bool exchanged_, has_c_;
  Parameters common_{};  // without addresses
  uint64_t blocks_ = 0;
  uint32_t shared_bytes_ = 0;
  Function function_ = nullptr;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmOneRowCuda(const GemmProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  const bool exchanged = problem.m != 1;
  const GemmProblem p = exchanged ? problem.Transposed() : problem;
  const uint64_t elements = kUnitBytes / (BitSize(p.type) / 8);
  const bool has_rows = p.b.column == 1;
  SumLimits limits;
  if (p.m != 1 || p.Batches() != 1) {
    *why_not = "there is more than one row, or column";
  } else if (!limits.Set(p.activation)) {
    *why_not = "there is an activation other than RELU and CLIP";
  } else if (has_rows ? (p.n | p.b.row) % elements != 0
                      : p.b.row != 1 || (p.k | p.b.column) % elements != 0) {
    *why_not = "the matrix is not made of units of 16 bytes";
  } else if (p.n > kMost || p.k > (has_rows ? kMostSteps * kMostCluster : kMostSteps)) {
    *why_not = "the row is too long";
  } else {
    return std::make_unique<GemmOneRow>(p, exchanged, limits, context.device->multiprocessors);
  }
  return nullptr;
}

}  // namespace anydml
