// A block has a part of a row. Its elements are loaded, 16 bytes at a time if addresses allow it, before the
// parameters that they share.
#include <algorithm>

#include <cuda_fp16.h>

#include "ops/batchnorm/parameter_rows.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/device/nest.h"

namespace anydml {
namespace {

constexpr uint32_t kMostThreads = 256;
constexpr uint32_t kPacks = 4;  // per thread
constexpr uint64_t kShortest = 128;

enum Operand { kInput, kOutput, kMean, kVariance, kScale, kBias, kOperands };

struct Parameters {
  const void* x;
  void* y;
  const void* mean;
  const void* variance;
  const void* scale;
  const void* bias;
  float epsilon;
  uint32_t packs;     // per row
  uint32_t part;      // packs per block
  FastDivisor parts;  // per row
  DeviceNest<kOperands> nest;
};

template <typename T, uint32_t kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T elements[kWidth];
};

__device__ float ToNumber(float x) { return x; }
__device__ float ToNumber(__half x) { return __half2float(x); }

// Makes NaNs canonical.
__device__ void StoreNumber(float x, float* to) { *to = isnan(x) ? __uint_as_float(0x7FC00000) : x; }
__device__ void StoreNumber(float x, __half* to) {
  *to = isnan(x) ? __ushort_as_half(0x7E00) : __float2half_rn(x);
}

// Rounded after every step.
template <typename T, uint32_t kWidth>
__global__ void __launch_bounds__(kMostThreads) BatchNormalize(const __grid_constant__ Parameters p) {
  uint32_t part;
  const uint32_t row = p.parts.Divide(blockIdx.x, &part);
  uint64_t offsets[kOperands];
  p.nest.OffsetsOf(row, offsets);
  const uint64_t begin = uint64_t{part} * p.part;
  const uint32_t count = begin < p.packs ? static_cast<uint32_t>(min(uint64_t{p.part}, p.packs - begin)) : 0;
  const auto* const x = static_cast<const Pack<T, kWidth>*>(p.x) + offsets[kInput] / kWidth + begin;
  auto* const y = static_cast<Pack<T, kWidth>*>(p.y) + offsets[kOutput] / kWidth + begin;

  Pack<T, kWidth> packs[kPacks];
#pragma unroll
  for (uint32_t i = 0; i < kPacks; ++i) {
    const uint32_t at = i * blockDim.x + threadIdx.x;
    if (at < count) packs[i] = x[at];
  }
  const float mean = ToNumber(static_cast<const T*>(p.mean)[offsets[kMean]]);
  const float variance = ToNumber(static_cast<const T*>(p.variance)[offsets[kVariance]]);
  const float scale = ToNumber(static_cast<const T*>(p.scale)[offsets[kScale]]);
  const float bias = ToNumber(static_cast<const T*>(p.bias)[offsets[kBias]]);
  const float factor = scale / sqrtf(variance + p.epsilon);
#pragma unroll
  for (uint32_t i = 0; i < kPacks; ++i) {
    const uint32_t at = i * blockDim.x + threadIdx.x;
    if (at >= count) continue;
#pragma unroll
    for (T& element : packs[i].elements) {
      StoreNumber((ToNumber(element) - mean) * factor + bias, &element);
    }
    y[at] = packs[i];
  }
}

class BatchNormRowsCuda final : public Kernel {
 public:
  BatchNormRowsCuda(const BatchNormProblem& problem, const BatchNormRows& rows)
      : is_half_(problem.input.type == DataType::kFloat16),
        length_(static_cast<uint32_t>(rows.length)),
        rows_(static_cast<uint32_t>(Iterations(rows.rows))) {
    distances_ = rows.length;
    for (uint32_t d = 0; d < rows.rows.rank; ++d) {
      distances_ |= rows.rows.loops[d].strides[kInput] | rows.rows.loops[d].strides[kOutput];
    }
    distances_ *= is_half_ ? 2 : 4;
    common_.epsilon = problem.epsilon;
    common_.nest = DeviceNest<kOperands>(rows.rows);
  }

  Status Run(const KernelArguments& arguments) const override {
    constexpr auto kAt = batch_norm::InputsOf(BatchNormProblem::kInference);
    Parameters p = common_;
    p.x = arguments.inputs[0].data;
    p.y = arguments.outputs[0].data;
    p.mean = arguments.inputs[kAt.mean].data;
    p.variance = arguments.inputs[kAt.variance].data;
    p.scale = arguments.inputs[kAt.scale].data;
    p.bias = arguments.inputs[kAt.bias].data;
    const bool in_packs = LargestUnit(distances_ | AddressOf(p.x) | AddressOf(p.y)) == kMaxUnitBytes;
    if (is_half_) {
      in_packs ? Launch<__half, 8>(arguments.stream, &p) : Launch<__half, 1>(arguments.stream, &p);
    } else {
      in_packs ? Launch<float, 4>(arguments.stream, &p) : Launch<float, 1>(arguments.stream, &p);
    }
    return {};
  }

 private:
  // Parts of equal size, and as many warps as they need.
  template <typename T, uint32_t kWidth>
  void Launch(void* stream, Parameters* p) const {
    p->packs = length_ / kWidth;
    constexpr uint32_t kMost = kMostThreads * kPacks;
    const uint32_t parts = (p->packs - 1) / kMost + 1;
    p->part = (p->packs - 1) / parts + 1;
    p->parts = FastDivisor(parts);
    const uint32_t threads = ((p->part - 1) / kPacks + 32) / 32 * 32;
    KernelChain(stream).Launch(BatchNormalize<T, kWidth>, uint64_t{rows_} * parts, threads, *p);
  }

  bool is_half_;
  uint32_t length_, rows_;
  uint64_t distances_;   // which packs must divide, in bytes
  Parameters common_{};  // without addresses and the division
};

}  // namespace

std::unique_ptr<const Kernel> CreateBatchNormRowsCuda(const BatchNormProblem& problem, const LowerContext&,
                                                      std::string* why_not) {
  const std::optional<BatchNormRows> rows = RowsOf(problem, kShortest, why_not);
  if (!rows) return nullptr;
  return std::make_unique<BatchNormRowsCuda>(problem, *rows);
}

}  // namespace anydml
