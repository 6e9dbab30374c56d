// A thread per window: every function, type and layout.
#include "base/dispatch.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"

namespace anydml {
namespace {

using namespace pooling;

template <typename T>
__global__ void __launch_bounds__(kPoolingThreads) MaxKernel(const __grid_constant__ WindowParameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kPoolingThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kPoolingThreads + threadIdx.x; i < p.windows.count; i += step) {
    const WindowPlace at = p.windows.At(static_cast<uint32_t>(i));
    const Taps taps = TapsOf(p.windows, at);
    const T* const channel =
        static_cast<const T*>(p.input) + at.n * p.input_at.strides[0] + at.c * p.input_at.strides[1];
    T best = Lowest<T>();
    Key<T> best_key{};
    uint64_t place = 0;
    bool any = false;
    for (uint32_t d = taps.range[0].begin; d < taps.range[0].end; ++d) {
      const uint64_t plane = TapPlace(p.windows, taps, 0, d);
      for (uint32_t h = taps.range[1].begin; h < taps.range[1].end; ++h) {
        const uint64_t row = TapPlace(p.windows, taps, 1, h);
        const T* const from = channel + plane * p.input_at.strides[2] + row * p.input_at.strides[3];
        for (uint32_t w = taps.range[2].begin; w < taps.range[2].end; ++w) {
          const uint64_t column = TapPlace(p.windows, taps, 2, w);
          const T x = from[column * p.input_at.strides[4]];
          const Key<T> key = KeyOf(x);
          if (any && key <= best_key) continue;
          any = true;
          best = x;
          best_key = key;
          place = (plane * p.windows.axes[1].input + row) * p.windows.axes[2].input + column;
        }
      }
    }
    if (p.output != nullptr) static_cast<T*>(p.output)[p.output_at.Offset(at)] = best;
    if (p.indices == nullptr) continue;
    const uint64_t channel_size =
        uint64_t{p.windows.axes[0].input} * p.windows.axes[1].input * p.windows.axes[2].input;
    const uint64_t index =
        any ? (uint64_t{at.n} * p.windows.channels.divisor() + at.c) * channel_size + place : 0;
    if (p.index_type == DataType::kUInt64) {
      static_cast<uint64_t*>(p.indices)[p.indices_at.Offset(at)] = index;
    } else {
      static_cast<uint32_t*>(p.indices)[p.indices_at.Offset(at)] = static_cast<uint32_t>(index);
    }
  }
}

__device__ float ParameterOf(const WindowParameters& p, PoolingProblem::Parameter which, DataType type,
                             uint32_t channel) {
  const void* const data = p.parameters[which];
  if (data == nullptr) return 0;
  const uint64_t at = channel * p.parameter_strides[which];
  if (type == DataType::kInt8) return static_cast<float>(static_cast<const int8_t*>(data)[at]);
  if (type == DataType::kUInt8) return static_cast<float>(static_cast<const uint8_t*>(data)[at]);
  return static_cast<const float*>(data)[at];
}

template <typename T>
constexpr DataType kTypeOf = std::is_same_v<T, float>    ? DataType::kFloat32
                             : std::is_same_v<T, Half>   ? DataType::kFloat16
                             : std::is_same_v<T, int8_t> ? DataType::kInt8
                                                         : DataType::kUInt8;

// The sum of column `w` of a window.
template <typename T>
__device__ float SumOfColumn(const WindowParameters& p, const Taps& taps, const T* channel, uint32_t w,
                             float zero_point) {
  const T* const column = channel + TapPlace(p.windows, taps, 2, w) * p.input_at.strides[4];
  float sum = 0;
  for (uint32_t d = taps.range[0].begin; d < taps.range[0].end; ++d) {
    const T* const plane = column + TapPlace(p.windows, taps, 0, d) * p.input_at.strides[2];
    for (uint32_t h = taps.range[1].begin; h < taps.range[1].end; ++h) {
      const float x = NumberOf(plane[TapPlace(p.windows, taps, 1, h) * p.input_at.strides[3]]);
      sum += p.function == PoolingFunction::kLp ? LpTerm(x, p.p) : x - zero_point;
    }
  }
  return sum;
}

template <typename T>
__device__ float SumOfWindow(const WindowParameters& p, const Taps& taps, const T* channel,
                             float zero_point) {
  float sum = 0;
  if (p.windows.axes[2].size <= kColumnsInARow) {
    for (uint32_t w = taps.range[2].begin; w < taps.range[2].end; ++w) {
      sum += SumOfColumn(p, taps, channel, w, zero_point);
    }
    return sum;
  }
  float lanes[kSumLanes] = {};
  for (uint32_t w = taps.range[2].begin; w < taps.range[2].end; ++w) {
    lanes[w % kSumLanes] += SumOfColumn(p, taps, channel, w, zero_point);
  }
  for (uint32_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <typename T>
__device__ void StoreResult(const WindowParameters& p, const Taps& taps, const WindowPlace& at, float sum) {
  const uint64_t to = p.output_at.Offset(at);
  if (p.function == PoolingFunction::kLp) return StoreNumber<T>(p.output, to, LpRoot(sum, p.p));
  const float divisor = DivisorOf(p.windows, taps, at, p.include_padding);
  if (p.function == PoolingFunction::kAverage) {
    return StoreNumber<T>(p.output, to, divisor > 0 ? sum / divisor : 0);
  }
  const bool is_signed = p.output_type == DataType::kInt8;
  const Quantization q = {ParameterOf(p, PoolingProblem::kInputScale, DataType::kFloat32, at.c),
                          ParameterOf(p, PoolingProblem::kOutputScale, DataType::kFloat32, at.c),
                          ParameterOf(p, PoolingProblem::kOutputZeroPoint, p.output_type, at.c),
                          is_signed ? -128.0f : 0.0f};
  const auto whole = static_cast<int32_t>(QuantizedMean(sum, divisor, q));
  static_cast<uint8_t*>(p.output)[to] = static_cast<uint8_t>(whole);
}

template <typename T>
__global__ void __launch_bounds__(kPoolingThreads) SumKernel(const __grid_constant__ WindowParameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kPoolingThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kPoolingThreads + threadIdx.x; i < p.windows.count; i += step) {
    const WindowPlace at = p.windows.At(static_cast<uint32_t>(i));
    const Taps taps = TapsOf(p.windows, at);
    const T* const channel =
        static_cast<const T*>(p.input) + at.n * p.input_at.strides[0] + at.c * p.input_at.strides[1];
    const float zero_point = ParameterOf(p, PoolingProblem::kInputZeroPoint, kTypeOf<T>, at.c);
    StoreResult<T>(p, taps, at, SumOfWindow(p, taps, channel, zero_point));
  }
}

class PoolingCudaWindows final : public Kernel {
 public:
  PoolingCudaWindows(const PoolingProblem& problem, const LowerContext& context)
      : p_(problem), plan_(MakePoolingWindowsPlan(problem, *context.device)) {}

  Status Run(const KernelArguments& arguments) const override {
    WindowParameters p = plan_.parameters;
    p.input = arguments.inputs[0].data;
    if (p_.output.present()) p.output = arguments.outputs[0].data;
    if (p_.indices.present()) p.indices = arguments.outputs[1].data;
    for (uint32_t i = 0; i < PoolingProblem::kParameters; ++i) {
      if (p_.has_parameter[i]) p.parameters[i] = arguments.inputs[1 + i].data;
    }
    KernelChain chain(arguments.stream);
    if (p_.function == PoolingFunction::kMax) {
      DispatchByType(p_.input.type, [&]<typename T>() {
        if constexpr (!std::is_same_v<T, double>) chain.Launch(MaxKernel<T>, plan_.grid, p);
      });
      return {};
    }
    switch (p_.input.type) {
      case DataType::kFloat16:
        chain.Launch(SumKernel<Half>, plan_.grid, p);
        break;
      case DataType::kInt8:
        chain.Launch(SumKernel<int8_t>, plan_.grid, p);
        break;
      case DataType::kUInt8:
        chain.Launch(SumKernel<uint8_t>, plan_.grid, p);
        break;
      default:
        chain.Launch(SumKernel<float>, plan_.grid, p);
    }
    return {};
  }

 private:
  PoolingProblem p_;
  PoolingWindowsPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingCudaWindows(const PoolingProblem& problem,
                                                       const LowerContext& context, std::string*) {
  return std::make_unique<PoolingCudaWindows>(problem, context);
}

}  // namespace anydml
