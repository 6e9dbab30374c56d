// A row is in the registers of a warp or a block: read once, written once.
#include "ops/mvn/contiguous_rows.h"

#include <algorithm>
#include <bit>

#include <cuda_fp16.h>

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/device/nest.h"

namespace anydml {
namespace {

constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostNumbers = 32;  // per thread
constexpr uint32_t kRowsOfBlock = 4;   // if a warp has a row

struct Parameters {
  const void* x;
  void* y;
  const void* scale;
  const void* bias;
  uint32_t rows;
  uint32_t length;
  uint32_t lanes;  // threads per row
  float epsilon;
  bool use_mean, use_variance;
  bool has_scale, has_bias, scale_along_row, bias_along_row;
  DeviceNest<4> nest;
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
template <typename T, uint32_t kWidth>
__device__ void StoreNumbers(const float (&x)[kWidth], Pack<T, kWidth>* to) {
  if constexpr (sizeof(T) == 2 && kWidth % 2 == 0) {
    uint32_t words[kWidth / 2];
#pragma unroll
    for (uint32_t i = 0; i < kWidth / 2; ++i) words[i] = element_cuda::FloatsToHalves(x[2 * i], x[2 * i + 1]);
    memcpy(to, words, sizeof(words));
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) StoreNumber(x[i], &to->elements[i]);
  }
}

// The sum over the threads of a row, returned to all of them. `shared` has room for a number per warp.
__device__ float SumOfRow(float sum, uint32_t lanes, float* shared) {
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (lanes <= 32) return sum;
  const uint32_t warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
  if (in_warp == 0) shared[warp] = sum;
  __syncthreads();
  sum = in_warp < lanes / 32 ? shared[in_warp] : 0;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

// Makes the compiler forget the unpacked numbers: they are unpacked again from the pack, which takes fewer
// registers to keep.
__device__ __forceinline__ void Forget(Pack<__half, 8>& pack) {
  uint32_t words[4];
  memcpy(words, &pack, sizeof(words));
  asm volatile("" : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3]));
  memcpy(&pack, words, sizeof(words));
}
template <typename Other>
__device__ __forceinline__ void Forget(Other&) {}

// A thread has kPacks packs of kWidth contiguous elements, `lanes` packs apart.
template <typename T, uint32_t kWidth, uint32_t kPacks>
__global__ void __launch_bounds__(kMostThreads) NormalizeRows(const __grid_constant__ Parameters p) {
  __shared__ float sums[2][32];
  const uint32_t lane = threadIdx.x % p.lanes;
  const uint32_t row = blockIdx.x * (blockDim.x / p.lanes) + threadIdx.x / p.lanes;
  const bool exists = row < p.rows;
  uint64_t offsets[4] = {};
  if (exists) p.nest.OffsetsOf(row, offsets);
  const auto* const x = static_cast<const Pack<T, kWidth>*>(p.x) + offsets[0] / kWidth;
  auto* const y = static_cast<Pack<T, kWidth>*>(p.y) + offsets[1] / kWidth;
  const auto* const scale = static_cast<const T*>(p.scale) + offsets[2];
  const auto* const bias = static_cast<const T*>(p.bias) + offsets[3];
  const uint32_t packs = exists ? p.length / kWidth : 0;

  WaitForPrevious();
  Pack<T, kWidth> loaded[kPacks];
  float sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < kPacks; ++i) {
    const uint32_t pack = i * p.lanes + lane;
    loaded[i] = {};
    if (pack < packs) loaded[i] = x[pack];
  }
#pragma unroll
  for (uint32_t i = 0; i < kPacks; ++i) {
#pragma unroll
    for (uint32_t k = 0; k < kWidth; ++k) sum += ToNumber(loaded[i].elements[k]);
  }
  LetNextStart();
  const float mean = p.use_mean ? SumOfRow(sum, p.lanes, sums[0]) / static_cast<float>(p.length) : 0;
  float factor = 1;
  if (p.use_variance) {
    float squares = 0;
#pragma unroll
    for (uint32_t i = 0; i < kPacks; ++i) {
      if (i * p.lanes + lane >= packs) continue;
      Forget(loaded[i]);
#pragma unroll
      for (uint32_t k = 0; k < kWidth; ++k) {
        const float distance = ToNumber(loaded[i].elements[k]) - mean;
        squares = __fmaf_rn(distance, distance, squares);
      }
    }
    const float variance = SumOfRow(squares, p.lanes, sums[1]) / static_cast<float>(p.length);
    factor = 1 / sqrtf(variance + p.epsilon);
  }
  if (!exists) return;
  if (p.has_scale && !p.scale_along_row) factor *= ToNumber(*scale);
  const float offset = p.has_bias && !p.bias_along_row ? ToNumber(*bias) : 0;
#pragma unroll
  for (uint32_t i = 0; i < kPacks; ++i) {
    const uint32_t pack = i * p.lanes + lane;
    if (pack >= packs) continue;
    Forget(loaded[i]);
    Pack<T, kWidth> scales, biases, stored;
    if (p.scale_along_row) scales = reinterpret_cast<const Pack<T, kWidth>*>(scale)[pack];
    if (p.bias_along_row) biases = reinterpret_cast<const Pack<T, kWidth>*>(bias)[pack];
    float values[kWidth];
#pragma unroll
    for (uint32_t k = 0; k < kWidth; ++k) {
      const float value = (ToNumber(loaded[i].elements[k]) - mean) * factor;
      const float added = p.bias_along_row ? ToNumber(biases.elements[k]) : offset;
      values[k] = p.scale_along_row ? __fmaf_rn(value, ToNumber(scales.elements[k]), added) : value + added;
    }
    StoreNumbers(values, &stored);
    y[pack] = stored;
  }
}

using RowsKernel = void (*)(Parameters);

// The kernel for rows of `packs` packs of `width` elements, and the number of threads per row.
template <typename T, uint32_t kWidth>
RowsKernel FindKernel(uint64_t packs, uint32_t* lanes) {
  constexpr uint32_t kMost = kMostNumbers / kWidth;  // packs per thread
  const auto threads = [&](uint32_t packs_of_thread) {
    const uint64_t needed = (packs + packs_of_thread - 1) / packs_of_thread;
    return static_cast<uint32_t>(std::max<uint64_t>(32, std::bit_ceil(needed)));
  };
  for (const uint32_t packs_of_thread : {1u, 2u, 4u, kMost}) {
    *lanes = threads(packs_of_thread);
    // A warp if that is enough, then blocks with 4 packs per thread, then more.
    if (*lanes > 32 && packs_of_thread < 4) continue;
    if (*lanes > kMostThreads && packs_of_thread < kMost) continue;
    switch (packs_of_thread) {
      case 1:
        return NormalizeRows<T, kWidth, 1>;
      case 2:
        return NormalizeRows<T, kWidth, 2>;
      case 4:
        return NormalizeRows<T, kWidth, 4>;
      default:
        return NormalizeRows<T, kWidth, kMost>;
    }
  }
  return nullptr;
}

// What every row's packs must divide, in bytes.
uint64_t Distances(const MvnRows& rows, uint64_t element_bytes) {
  uint64_t bytes = rows.length * element_bytes;
  for (uint32_t d = 0; d < rows.rows.rank; ++d) {
    const auto& strides = rows.rows.loops[d].strides;
    bytes |= (strides[0] | strides[1]) * element_bytes;
    if (rows.scale_along_row) bytes |= strides[2] * element_bytes;
    if (rows.bias_along_row) bytes |= strides[3] * element_bytes;
  }
  return bytes;
}

class MvnRowsCuda final : public Kernel {
 public:
  MvnRowsCuda(const MvnProblem& problem, const MvnRows& rows)
      : is_half_(problem.input.type == DataType::kFloat16), distances_(Distances(rows, is_half_ ? 2 : 4)) {
    common_.rows = static_cast<uint32_t>(Iterations(rows.rows));
    common_.length = static_cast<uint32_t>(rows.length);
    common_.epsilon = problem.epsilon;
    common_.use_mean = problem.use_mean;
    common_.use_variance = problem.use_variance;
    common_.has_scale = rows.has_scale;
    common_.has_bias = rows.has_bias;
    common_.scale_along_row = rows.scale_along_row;
    common_.bias_along_row = rows.bias_along_row;
    common_.nest = DeviceNest<4>(rows.rows);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.x = arguments.inputs[0].data;
    p.y = arguments.outputs[0].data;
    if (p.has_scale) p.scale = arguments.inputs[1].data;
    if (p.has_bias) p.bias = arguments.inputs[2].data;
    uint64_t bytes = distances_ | AddressOf(p.x) | AddressOf(p.y);
    if (p.scale_along_row) bytes |= AddressOf(p.scale);
    if (p.bias_along_row) bytes |= AddressOf(p.bias);
    const bool in_packs = LargestUnit(bytes) == kMaxUnitBytes;
    const RowsKernel kernel = is_half_ ? (in_packs ? FindKernel<__half, 8>(p.length / 8, &p.lanes)
                                                   : FindKernel<__half, 1>(p.length, &p.lanes))
                                       : (in_packs ? FindKernel<float, 4>(p.length / 4, &p.lanes)
                                                   : FindKernel<float, 1>(p.length, &p.lanes));
    const uint32_t rows_of_block = p.lanes == 32 ? kRowsOfBlock : 1;
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(kernel, (uint64_t{p.rows} + rows_of_block - 1) / rows_of_block, p.lanes * rows_of_block, p);
    return {};
  }

 private:
  bool is_half_;
  uint64_t distances_;
  Parameters common_{};  // without addresses
};

constexpr uint64_t kLongest = kMostNumbers * kMostThreads;

}  // namespace

std::unique_ptr<const Kernel> CreateMvnRowsCuda(const MvnProblem& problem, const LowerContext&,
                                                std::string* why_not) {
  const std::optional<MvnRows> rows = RowsOf(problem, kLongest, why_not);
  if (!rows) return nullptr;
  return std::make_unique<MvnRowsCuda>(problem, *rows);
}

}  // namespace anydml
