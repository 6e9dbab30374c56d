// Windows that are whole channels with packed rows: some threads per channel, one for each column.
#include <algorithm>
#include <bit>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"

namespace anydml {
namespace {

using namespace pooling;

constexpr uint32_t kWarp = 32;
constexpr uint32_t kPlaneThreads = 256;
constexpr uint32_t kWarps = kPlaneThreads / kWarp;
static_assert(kSumLanes == kWarp);

struct PlaneParameters {
  const void* input;
  void* output;
  uint32_t planes;
  uint32_t rows;   // per plane
  uint32_t width;  // per row
  uint32_t lanes;  // threads per plane: a power of two up to 32
  float taps;
  FastDivisor channels;
  uint64_t input_strides[2];  // N, C
  uint64_t output_strides[2];
};

template <bool kMax>
__device__ float Combined(float a, float b) {
  return kMax ? LargerOf(a, b) : a + b;
}

template <bool kMax>
__device__ float Start() {
  return kMax ? Lowest<float>() : 0;
}

// Rows are independent loads, eight of which are in flight at a time.
template <typename T, bool kMax>
__device__ float ReduceColumn(const T* column, uint32_t rows, uint32_t width) {
  float result = Start<kMax>();
  uint32_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    float x[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) x[i] = NumberOf(column[uint64_t{r + i} * width]);
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) result = Combined<kMax>(result, x[i]);
  }
  for (; r < rows; ++r) result = Combined<kMax>(result, NumberOf(column[uint64_t{r} * width]));
  return result;
}

// Into lane 0: the lower half of the lanes combines with the upper half.
template <bool kMax>
__device__ float ReduceLanes(float value) {
#pragma unroll
  for (uint32_t half = kWarp / 2; half > 0; half /= 2) {
    value = Combined<kMax>(value, __shfl_down_sync(~0u, value, half));
  }
  return value;
}

template <typename T, bool kMax>
__device__ void StoreResult(const PlaneParameters& p, const T* plane, T* to, float result) {
  if (!kMax) {
    *to = ElementOf<T>(result / p.taps);
  } else if (result == result) {
    *to = ElementOf<T>(result);
  } else {  // the first NaN
    uint64_t i = 0;
    for (float x = NumberOf(plane[0]); x == x; x = NumberOf(plane[i])) ++i;
    *to = plane[i];
  }
}

template <typename T>
__device__ const T* InputPlane(const PlaneParameters& p, uint32_t plane) {
  uint32_t c;
  const uint32_t n = p.channels.Divide(plane, &c);
  return static_cast<const T*>(p.input) + n * p.input_strides[0] + c * p.input_strides[1];
}
template <typename T>
__device__ T* Output(const PlaneParameters& p, uint32_t plane) {
  uint32_t c;
  const uint32_t n = p.channels.Divide(plane, &c);
  return static_cast<T*>(p.output) + n * p.output_strides[0] + c * p.output_strides[1];
}

// Rows of up to 32 elements: as many threads as there are columns, rounded up to a power of two.
template <typename T, bool kMax>
__global__ void __launch_bounds__(kPlaneThreads) NarrowKernel(const __grid_constant__ PlaneParameters p) {
  const uint64_t thread = uint64_t{blockIdx.x} * kPlaneThreads + threadIdx.x;
  const auto lane = static_cast<uint32_t>(thread & (p.lanes - 1));
  const uint64_t number = thread / p.lanes;
  const bool exists = number < p.planes;
  const auto plane = static_cast<uint32_t>(exists ? number : 0);
  const T* const from = InputPlane<T>(p, plane);
  float column = Start<kMax>();
  if (exists && lane < p.width) column = ReduceColumn<T, kMax>(from + lane, p.rows, p.width);
  float result;
  if (p.width > kColumnsInARow) {  // a plane has a warp
    result = ReduceLanes<kMax>(column);
  } else {
    result = Start<kMax>();
    for (uint32_t k = 0; k < p.width; ++k) {
      result =
          Combined<kMax>(result, __shfl_sync(~0u, column, static_cast<int>(k), static_cast<int>(p.lanes)));
    }
  }
  if (exists && lane == 0) StoreResult<T, kMax>(p, from, Output<T>(p, plane), result);
}

// Longer rows: a block per plane, whose warps process 32 columns at a time.
template <typename T, bool kMax>
__global__ void __launch_bounds__(kPlaneThreads) WideKernel(const __grid_constant__ PlaneParameters p) {
  __shared__ float columns[kWarps][kWarp];
  const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  for (uint32_t plane = blockIdx.x; plane < p.planes; plane += gridDim.x) {
    const T* const from = InputPlane<T>(p, plane);
    float sum = Start<kMax>();  // of a lane's columns, in the first warp
    for (uint64_t begin = 0; begin < p.width; begin += uint64_t{warps} * kWarp) {
      const uint64_t k = begin + threadIdx.x;
      columns[warp][lane] = k < p.width ? ReduceColumn<T, kMax>(from + k, p.rows, p.width) : Start<kMax>();
      __syncthreads();
      if (warp == 0) {
        for (uint32_t w = 0; w < warps; ++w) sum = Combined<kMax>(sum, columns[w][lane]);
      }
      __syncthreads();
    }
    if (warp != 0) continue;
    sum = ReduceLanes<kMax>(sum);
    if (lane == 0) StoreResult<T, kMax>(p, from, Output<T>(p, plane), sum);
  }
}

class PoolingCudaPlanes final : public Kernel {
 public:
  explicit PoolingCudaPlanes(const PoolingProblem& problem)
      : is_half_(problem.input.type == DataType::kFloat16),
        is_max_(problem.function == PoolingFunction::kMax) {
    const auto& axes = problem.shape.axes;
    PlaneParameters& p = common_;
    p.planes = problem.shape.batch * problem.shape.channels;
    p.rows = axes[0].input * axes[1].input;
    p.width = axes[2].input;
    p.taps = static_cast<float>(uint64_t{p.rows} * p.width);
    p.channels = FastDivisor(problem.shape.channels);
    std::copy_n(problem.input.strides.begin(), 2, p.input_strides);
    std::copy_n(problem.output.strides.begin(), 2, p.output_strides);
    if (p.width <= kWarp) {
      p.lanes = p.width > kColumnsInARow ? kWarp : std::bit_ceil(p.width);
      threads_ = kPlaneThreads;
      blocks_ = (uint64_t{p.planes} * p.lanes + kPlaneThreads - 1) / kPlaneThreads;
    } else {
      threads_ = std::min(kPlaneThreads, (p.width + kWarp - 1) / kWarp * kWarp);
      blocks_ = p.planes;
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    PlaneParameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    if (is_half_) {
      is_max_ ? Launch<Half, true>(p, &chain) : Launch<Half, false>(p, &chain);
    } else {
      is_max_ ? Launch<float, true>(p, &chain) : Launch<float, false>(p, &chain);
    }
    return {};
  }

 private:
  template <typename T, bool kMax>
  void Launch(const PlaneParameters& p, KernelChain* chain) const {
    chain->Launch(p.width <= kWarp ? NarrowKernel<T, kMax> : WideKernel<T, kMax>, blocks_, threads_, p);
  }

  bool is_half_;
  bool is_max_;
  PlaneParameters common_{};  // without addresses
  uint32_t threads_;
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingCudaPlanes(const PoolingProblem& problem, const LowerContext&,
                                                      std::string* why_not) {
  if (!IsPlainFloat(problem)) {
    *why_not = "is for maxima and averages of FLOAT32 and FLOAT16, without indices";
    return nullptr;
  }
  uint64_t stride = 1;
  for (uint32_t d = kSpatialRank; d-- > 0;) {
    const WindowAxis& axis = problem.shape.axes[d];
    const bool whole = axis.windows == 1 && axis.size == axis.input && axis.start == 0 && axis.dilation == 1;
    if (!whole || (axis.input > 1 && problem.input.strides[2 + d] != stride)) {
      *why_not = "is for windows that are whole channels, which are packed";
      return nullptr;
    }
    stride *= axis.input;
  }
  if (stride >= uint64_t{1} << 31) {
    *why_not = "is for channels of fewer than 2^31 elements";
    return nullptr;
  }
  return std::make_unique<PoolingCudaPlanes>(problem);
}

}  // namespace anydml
