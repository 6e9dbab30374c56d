#include "ops/device/cuda/softmax_rows.cuh"

#include "ops/device/units.h"
#include "ops/softmax/plan.h"

namespace anydml {
namespace softmax {
namespace {

using reduce::kPerUnit;
using reduce::Numbers;
using reduce::NumbersOf;

// Makes the compiler forget the unpacked numbers: they are unpacked again from the unit, which takes fewer
// registers to keep.
__device__ __forceinline__ void Forget(uint4& unit) {
  asm volatile("" : "+r"(unit.x), "+r"(unit.y), "+r"(unit.z), "+r"(unit.w));
}

// A row in registers, kUnits per thread: one read, one write.
template <typename T, uint32_t kUnits>
__device__ __forceinline__ void SoftmaxOfRow(const SoftmaxRowParameters& p) {
  __shared__ float maxima[32], sums[32];
  const uint64_t row = uint64_t{blockIdx.x} * (blockDim.x / p.lanes) + threadIdx.x / p.lanes;
  if (row >= p.row_count) return;  // a whole warp: blocks have one row each
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
    // If that is exact, the remaining steps start from here.
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
__global__ void __launch_bounds__(1024) SoftmaxRows(const __grid_constant__ SoftmaxRowParameters p) {
  SoftmaxOfRow<T, kUnits>(p);
}
// Three blocks per multiprocessor: while rows of some are computed, others are loaded.
template <typename T, uint32_t kUnits>
__global__ void __launch_bounds__(kSoftmaxFewThreads, 3)
    SoftmaxRowsOfFew(const __grid_constant__ SoftmaxRowParameters p) {
  SoftmaxOfRow<T, kUnits>(p);
}

// A longer row: read twice, by a block.
template <typename T>
__global__ void __launch_bounds__(1024) SoftmaxLongRows(const __grid_constant__ SoftmaxRowParameters p) {
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
    // If only -infinity has been seen, there is nothing to add.
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

using Kernel = void (*)(SoftmaxRowParameters);

template <typename T>
Kernel FindKernel(const SoftmaxRowsPlan& plan) {
  switch (plan.units_per_thread) {
    case 1:
      return SoftmaxRows<T, 1>;
    case 2:
      return SoftmaxRows<T, 2>;
    case 4:
      if constexpr (sizeof(T) == 2) {
        if (plan.grid.threads <= kSoftmaxFewThreads) return SoftmaxRowsOfFew<T, 4>;
      }
      return SoftmaxRows<T, 4>;
    case 8:
      if constexpr (sizeof(T) == 4) return SoftmaxRows<T, 8>;
      [[fallthrough]];
    default:
      return SoftmaxLongRows<T>;
  }
}

class SoftmaxRowsCuda final : public anydml::Kernel {
 public:
  SoftmaxRowsCuda(const SoftmaxProblem& problem, std::unique_ptr<const anydml::Kernel> otherwise)
      : plan_(MakeSoftmaxRowsPlan(problem)),
        kernel_(problem.input.type == DataType::kFloat16 ? FindKernel<__half>(plan_)
                                                         : FindKernel<float>(plan_)),
        otherwise_(std::move(otherwise)) {}

  Status Run(const KernelArguments& arguments) const override {
    SoftmaxRowParameters p = plan_.parameters;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    if ((AddressOf(p.input) | AddressOf(p.output)) % kMaxUnitBytes != 0) return otherwise_->Run(arguments);
    KernelChain(arguments.stream).Launch(kernel_, plan_.grid, p);
    return {};
  }

 private:
  SoftmaxRowsPlan plan_;
  softmax::Kernel kernel_;
  std::unique_ptr<const anydml::Kernel> otherwise_;  // used if addresses are not aligned; needs no scratch
};

}  // namespace
}  // namespace softmax

std::unique_ptr<const Kernel> CreateSoftmaxRowsCuda(const SoftmaxProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  *why_not = problem.kind == SoftmaxKind::kHardmax ? "is not for HARDMAX" : WhyNoSoftmaxRows(problem);
  if (!why_not->empty()) return nullptr;
  return std::make_unique<softmax::SoftmaxRowsCuda>(problem, CreateSoftmaxCuda(problem, context, why_not));
}

}  // namespace anydml
