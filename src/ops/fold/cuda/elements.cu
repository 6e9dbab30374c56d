// A thread per element of the output.
#include <algorithm>
#include <limits>
#include <type_traits>

#include <cuda_fp16.h>

#include "base/dispatch.h"
#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/nest.h"
#include "ops/fold/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;

struct Parameters {
  const void* input;
  void* output;
  uint64_t elements;  // of the output
  uint32_t rank;
  uint32_t taps;
  FastDivisor channels;
  FastDivisor all_taps;
  FastDivisor all_windows;
  WindowAxis axes[kMaxFoldRank];
  FastDivisor sizes[kMaxFoldRank];    // of windows
  FastDivisor windows[kMaxFoldRank];  // numbers of windows
  FastDivisor places[kMaxFoldRank];   // of the image
  uint64_t image_strides[kMaxDimensions];
  uint64_t column_strides[3];
};

template <typename T>
__global__ void __launch_bounds__(kThreads) UnfoldKernel(const __grid_constant__ Parameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.elements; i += step) {
    uint32_t window, tap, channel;
    const uint32_t row = p.all_windows.Divide(static_cast<uint32_t>(i), &window);
    uint64_t to = window * p.column_strides[2];
    uint32_t n = p.all_taps.Divide(row, &tap);
    n = p.channels.Divide(n, &channel);
    to += n * p.column_strides[0] + (uint64_t{channel} * p.taps + tap) * p.column_strides[1];
    uint64_t from = n * p.image_strides[0] + channel * p.image_strides[1];
    bool valid = true;
    for (uint32_t d = p.rank; d-- > 0;) {
      uint32_t w, k;
      window = p.windows[d].Divide(window, &w);
      tap = p.sizes[d].Divide(tap, &k);
      const int64_t place = PlaceOf(p.axes[d], w, k);
      valid = valid && place >= 0 && place < p.axes[d].input;
      from += static_cast<uint64_t>(place) * p.image_strides[2 + d];
    }
    static_cast<T*>(p.output)[to] = valid ? static_cast<const T*>(p.input)[from] : T{0};
  }
}

template <typename Number, typename T>
__device__ Number NumberOf(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return element_cuda::HalfToFloat(x.bits);
  } else {
    return static_cast<Number>(x);
  }
}

template <typename T, typename Number>
__device__ T Rounded(Number sum) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{static_cast<uint16_t>(element_cuda::FloatsToHalves(sum, sum))};
  } else if constexpr (std::is_floating_point_v<Number>) {
    constexpr Number kNan = std::numeric_limits<Number>::quiet_NaN();
    return sum != sum ? kNan : sum;
  } else {
    return static_cast<T>(sum);
  }
}

// The sum of taps [0, number of taps) of one element of the image, at `place`.
template <typename T, typename Number>
__device__ Number SumOfTaps(const Parameters& p, const T* column, const uint32_t (&place)[kMaxFoldRank]) {
  Number sum = 0;
  for (uint32_t t = 0; t < p.taps; ++t, column += p.column_strides[1]) {
    uint32_t rest = t;
    uint64_t window = 0, scale = 1;
    bool exists = true;
    for (uint32_t d = p.rank; d-- > 0;) {
      uint32_t k;
      rest = p.sizes[d].Divide(rest, &k);
      const uint32_t found = WindowWithTapAt(p.axes[d], k, place[d]);
      exists = exists && found < p.axes[d].windows;
      window += found * scale;
      scale *= p.axes[d].windows;
    }
    if (exists) sum = static_cast<Number>(sum + NumberOf<Number>(column[window * p.column_strides[2]]));
  }
  return sum;
}

template <typename T, typename Number>
__global__ void __launch_bounds__(kThreads) FoldKernel(const __grid_constant__ Parameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.elements; i += step) {
    uint32_t place[kMaxFoldRank] = {};
    auto rest = static_cast<uint32_t>(i);
    uint64_t to = 0;
#pragma unroll
    for (uint32_t d = kMaxFoldRank; d-- > 0;) {
      if (d >= p.rank) continue;
      rest = p.places[d].Divide(rest, &place[d]);
      to += place[d] * p.image_strides[2 + d];
    }
    uint32_t channel;
    const uint32_t n = p.channels.Divide(rest, &channel);
    to += n * p.image_strides[0] + channel * p.image_strides[1];
    const T* const column = static_cast<const T*>(p.input) + n * p.column_strides[0] +
                            uint64_t{channel} * p.taps * p.column_strides[1];
    static_cast<T*>(p.output)[to] = Rounded<T>(SumOfTaps<T, Number>(p, column, place));
  }
}

class FoldCuda final : public Kernel {
 public:
  FoldCuda(const FoldProblem& problem, const LowerContext& context) : problem_(problem) {
    Parameters& p = common_;
    p.rank = problem.rank;
    p.taps = static_cast<uint32_t>(problem.Taps());
    p.channels = FastDivisor(problem.channels);
    p.all_taps = FastDivisor(p.taps);
    p.all_windows = FastDivisor(static_cast<uint32_t>(problem.Windows()));
    for (uint32_t d = 0; d < problem.rank; ++d) {
      p.axes[d] = problem.axes[d];
      p.sizes[d] = FastDivisor(problem.axes[d].size);
      p.windows[d] = FastDivisor(problem.axes[d].windows);
      p.places[d] = FastDivisor(problem.axes[d].input);
    }
    std::copy(problem.image_strides.begin(), problem.image_strides.end(), p.image_strides);
    std::copy(problem.column_strides.begin(), problem.column_strides.end(), p.column_strides);
    p.elements = problem.unfold ? uint64_t{problem.batch} * problem.channels * p.taps * problem.Windows()
                                : problem.ImageElements();
    const uint64_t wanted = (p.elements + kThreads - 1) / kThreads;
    blocks_ = std::min<uint64_t>(wanted, uint64_t{16} * context.device->multiprocessors);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    if (problem_.unfold) {
      DispatchByWidth(problem_.type,
                      [&]<typename T>() { chain.Launch(UnfoldKernel<T>, blocks_, kThreads, p); });
      return {};
    }
    switch (problem_.type) {
      case DataType::kFloat16:
        chain.Launch(FoldKernel<Half, float>, blocks_, kThreads, p);
        return {};
      case DataType::kFloat32:
        chain.Launch(FoldKernel<float, float>, blocks_, kThreads, p);
        return {};
      case DataType::kFloat64:
        chain.Launch(FoldKernel<double, double>, blocks_, kThreads, p);
        return {};
      default:
        DispatchByWidth(problem_.type,
                        [&]<typename T>() { chain.Launch(FoldKernel<T, T>, blocks_, kThreads, p); });
    }
    return {};
  }

 private:
  FoldProblem problem_;
  Parameters common_{};  // without addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateFoldCuda(const FoldProblem& problem, const LowerContext& context,
                                             std::string*) {
  return std::make_unique<FoldCuda>(problem, context);
}

}  // namespace anydml
