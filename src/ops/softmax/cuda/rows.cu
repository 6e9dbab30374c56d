#include "ops/softmax/cuda/rows.cuh"

#include <algorithm>
#include <bit>

#include "ops/common/cuda_units.cuh"
#include "ops/softmax/problem.h"

namespace anydml {
namespace softmax {
namespace {

using reduce::kPerUnit;
using reduce::Numbers;
using reduce::NumbersOf;

// The numbers of a unit are not known from here on: they are made of its bytes again, which take fewer
// registers to keep.
__device__ __forceinline__ void Forget(uint4& unit) {
  asm volatile("" : "+r"(unit.x), "+r"(unit.y), "+r"(unit.z), "+r"(unit.w));
}

// A row in registers, kUnits of each thread: one read, one write.
template <typename T, uint32_t kUnits>
__device__ __forceinline__ void SoftmaxOfRow(const Parameters& p) {
  __shared__ float maxima[32], sums[32];
  const uint64_t row = uint64_t{blockIdx.x} * (blockDim.x / p.lanes) + threadIdx.x / p.lanes;
  if (row >= p.row_count) return;  // a warp: blocks have one row each
  const uint32_t lane = threadIdx.x % p.lanes;
  uint64_t start[2];
  p.rows.OffsetsOf(static_cast<uint32_t>(row), start);
  const auto* const input = reinterpret_cast<const uint4*>(static_cast<const T*>(p.input) + start[0]);
  auto* const output = reinterpret_cast<uint4*>(static_cast<T*>(p.output) + start[1]);
  uint4 loaded[kUnits];
#pragma unroll
  for (uint32_t k = 0; k < kUnits; ++k) {
    const uint32_t u = lane + k * p.lanes;
    constexpr uint32_t kNone = sizeof(T) == 2 ? 0xFC00FC00 : 0xFF800000;  // -infinity
    loaded[k] = u < p.units ? __ldcs(input + u) : make_uint4(kNone, kNone, kNone, kNone);
  }
  float max = -lane::kInfinity;
#pragma unroll
  for (uint32_t k = 0; k < kUnits; ++k) {
    const Numbers<T> x = NumbersOf<T>(loaded[k]);
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) max = reduce::Extreme<false>(max, x.x[j]);
  }
  max = MergeRow<Larger>(max, p.lanes, maxima);
  float sum = 0;
#pragma unroll
  for (uint32_t k = 0; k < kUnits; ++k) {
    if constexpr (sizeof(T) == 2) Forget(loaded[k]);
    Numbers<T> x = NumbersOf<T>(loaded[k]);
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) {
      const float difference = __fsub_rn(x.x[j], max);
      const float power = PowerOf<T>(difference);
      x.x[j] = p.is_log ? difference : power;
      sum = __fadd_rn(sum, power);
    }
    // Where that is exact, what is left to do starts from here.
    if constexpr (sizeof(T) == 4) {
      loaded[k] = {__float_as_uint(x.x[0]), __float_as_uint(x.x[1]), __float_as_uint(x.x[2]),
                   __float_as_uint(x.x[3])};
    }
  }
  const Finisher<T> finish(MergeRow<Total>(sum, p.lanes, sums), p.is_log);
#pragma unroll
  for (uint32_t k = 0; k < kUnits; ++k) {
    const uint32_t u = lane + k * p.lanes;
    if (u >= p.units) continue;
    if constexpr (sizeof(T) == 2) Forget(loaded[k]);
    Numbers<T> x = NumbersOf<T>(loaded[k]);
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) {
      if constexpr (sizeof(T) == 2) {
        x.x[j] = finish.OfDifference(__fsub_rn(x.x[j], max));
      } else {
        x.x[j] = p.is_log ? finish.OfDifference(x.x[j]) : finish.OfPower(x.x[j]);
      }
    }
    StoreNumbers<T>(x, output + u);
  }
}

template <typename T, uint32_t kUnits>
__global__ void __launch_bounds__(1024) SoftmaxRows(const __grid_constant__ Parameters p) {
  SoftmaxOfRow<T, kUnits>(p);
}
// Three blocks of a multiprocessor: while rows of some are computed others are loaded.
constexpr uint32_t kFewThreads = 512;
template <typename T, uint32_t kUnits>
__global__ void __launch_bounds__(kFewThreads, 3) SoftmaxRowsOfFew(const __grid_constant__ Parameters p) {
  SoftmaxOfRow<T, kUnits>(p);
}

// A row that is longer than that: read twice, by a block.
template <typename T>
__global__ void __launch_bounds__(1024) SoftmaxLongRows(const __grid_constant__ Parameters p) {
  __shared__ float maxima[32], sums[32];
  uint64_t start[2];
  p.rows.OffsetsOf(blockIdx.x, start);
  const auto* const input = reinterpret_cast<const uint4*>(static_cast<const T*>(p.input) + start[0]);
  auto* const output = reinterpret_cast<uint4*>(static_cast<T*>(p.output) + start[1]);
  float own_max = -lane::kInfinity, own_sum = 0;
#pragma unroll 4
  for (uint32_t u = threadIdx.x; u < p.units; u += p.lanes) {
    const Numbers<T> x = NumbersOf<T>(input[u]);
    float max = own_max;
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) max = reduce::Extreme<false>(max, x.x[j]);
    // Where nothing but -infinity has been seen there is nothing to add.
    if (max == -lane::kInfinity) continue;
    float sum = __fmul_rn(own_sum, PowerOf<T>(__fsub_rn(own_max, max)));
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) sum = __fadd_rn(sum, PowerOf<T>(__fsub_rn(x.x[j], max)));
    own_max = max;
    own_sum = sum;
  }
  const float max = MergeRow<Larger>(own_max, p.lanes, maxima);
  const bool nothing = own_max == -lane::kInfinity && max > -lane::kInfinity;
  own_sum = nothing ? 0 : __fmul_rn(own_sum, PowerOf<T>(__fsub_rn(own_max, max)));
  const Finisher<T> finish(MergeRow<Total>(own_sum, p.lanes, sums), p.is_log);
#pragma unroll 4
  for (uint32_t u = threadIdx.x; u < p.units; u += p.lanes) {
    Numbers<T> x = NumbersOf<T>(input[u]);
#pragma unroll
    for (uint32_t j = 0; j < kPerUnit<T>; ++j) x.x[j] = finish.OfDifference(__fsub_rn(x.x[j], max));
    StoreNumbers<T>(x, output + u);
  }
}

using Kernel = void (*)(Parameters);

template <typename T>
Kernel FindKernel(uint32_t units_per_thread, uint32_t threads) {
  constexpr bool kWide = sizeof(T) == 2;  // 8 numbers in a unit
  if (units_per_thread <= 1) return SoftmaxRows<T, 1>;
  if (units_per_thread <= 2) return SoftmaxRows<T, 2>;
  if constexpr (kWide) {
    if (units_per_thread <= 4 && threads <= kFewThreads) return SoftmaxRowsOfFew<T, 4>;
  }
  if (units_per_thread <= 4) return SoftmaxRows<T, 4>;
  if constexpr (!kWide) {
    if (units_per_thread <= 8) return SoftmaxRows<T, 8>;
  }
  return SoftmaxLongRows<T>;
}

class SoftmaxRowsCuda final : public anydml::Kernel {
 public:
  SoftmaxRowsCuda(const SoftmaxProblem& problem, const LoopNest<2>& rows, uint32_t units,
                  LoweredOperator otherwise)
      : otherwise_(std::move(otherwise.kernel)) {
    const bool is_half = problem.input.type == DataType::kFloat16;
    common_.rows = DeviceNest<2>(rows);
    common_.row_count = static_cast<uint32_t>(Iterations(rows));
    common_.units = units;
    common_.is_log = problem.kind == SoftmaxKind::kLogSoftmax;
    const uint32_t most = is_half ? 4 : 8;  // units of a thread
    const bool by_warps = units <= 32 * most / 2;
    common_.lanes = by_warps ? 32 : std::clamp(std::bit_ceil((units + most - 1) / most), 128u, 1024u);
    rows_per_block_ = by_warps ? 4 : 1;
    const uint32_t per_thread = (units + common_.lanes - 1) / common_.lanes;
    const uint32_t threads = common_.lanes * rows_per_block_;
    kernel_ = is_half ? FindKernel<__half>(per_thread, threads) : FindKernel<float>(per_thread, threads);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    if ((AddressOf(p.input) | AddressOf(p.output)) % kMaxUnitBytes != 0) return otherwise_->Run(arguments);
    KernelChain(arguments.stream)
        .Launch(kernel_, CeilDivide(p.row_count, rows_per_block_), p.lanes * rows_per_block_, p);
    return {};
  }

 private:
  Parameters common_{};  // but for addresses
  uint32_t rows_per_block_;
  softmax::Kernel kernel_;
  std::unique_ptr<const anydml::Kernel> otherwise_;  // when addresses are not aligned; needs no scratch
};

}  // namespace
}  // namespace softmax

std::unique_ptr<const Kernel> CreateSoftmaxRowsCuda(const SoftmaxProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  if (problem.kind == SoftmaxKind::kHardmax) {
    *why_not = "is not for HARDMAX";
    return nullptr;
  }
  const SoftmaxNests nests = NestsOf(problem);
  const auto& elements = nests.elements;
  const bool rows = elements.rank == 1 && elements.loops[0].strides == LoopNest<2>::Offsets{1, 1};
  const uint32_t per_unit = kMaxUnitBytes * 8 / BitSize(problem.input.type);
  uint64_t lengths = rows ? elements.loops[0].size : 0;
  for (uint32_t d = 0; d < nests.sets.rank; ++d) {
    lengths |= nests.sets.loops[d].strides[0] | nests.sets.loops[d].strides[1];
  }
  if (!rows || lengths % per_unit != 0) {
    *why_not = "sets are not rows of whole units of 16 bytes";
    return nullptr;
  }
  LoweredOperator otherwise;
  otherwise.kernel = CreateSoftmaxCuda(problem, context, why_not);
  const auto units = static_cast<uint32_t>(elements.loops[0].size / per_unit);
  return std::make_unique<softmax::SoftmaxRowsCuda>(problem, nests.sets, units, std::move(otherwise));
}

}  // namespace anydml
