// Channels that are side by side: a thread has 16 bytes of them, of one window.
#include <algorithm>

#include "ops/common/cuda_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"

namespace anydml {
namespace {

using namespace pooling;

constexpr uint32_t kThreads = 256;
constexpr uint32_t kUnitBytes = 16;

struct Parameters {
  const void* input;
  void* output;
  bool include_padding;
  DeviceWindows windows;         // whose channels are units of them
  DevicePoolingTensor input_at;  // strides in elements, that of a unit for the channels
  DevicePoolingTensor output_at;
};

template <typename T>
struct Unit {
  static constexpr uint32_t kCount = kUnitBytes / sizeof(T);
  T elements[kCount];
};

template <typename T>
__device__ Unit<T> LoadUnit(const T* from) {
  const uint4 bytes = *reinterpret_cast<const uint4*>(from);
  Unit<T> unit;
  memcpy(&unit, &bytes, sizeof(unit));
  return unit;
}

// The first NaN of channel `c` of the unit, which has one.
template <typename T>
__device__ T FirstNan(const Parameters& p, const Taps& taps, const T* unit, uint32_t c) {
  for (uint32_t d = taps.range[0].begin; d < taps.range[0].end; ++d) {
    for (uint32_t h = taps.range[1].begin; h < taps.range[1].end; ++h) {
      for (uint32_t w = taps.range[2].begin; w < taps.range[2].end; ++w) {
        const T x = unit[TapPlace(p.windows, taps, 0, d) * p.input_at.strides[2] +
                         TapPlace(p.windows, taps, 1, h) * p.input_at.strides[3] +
                         TapPlace(p.windows, taps, 2, w) * p.input_at.strides[4] + c];
        const float number = NumberOf(x);
        if (number != number) return x;
      }
    }
  }
  return T{};
}

template <typename T, bool kMax>
__global__ void __launch_bounds__(kThreads) ChannelsKernel(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = Unit<T>::kCount;
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  const auto combine = [](float& to, float x) { to = kMax ? LargerOf(to, x) : to + x; };
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.windows.count; i += step) {
    const WindowPlace at = p.windows.At(static_cast<uint32_t>(i));
    const Taps taps = TapsOf(p.windows, at);
    const T* const input =
        static_cast<const T*>(p.input) + at.n * p.input_at.strides[0] + at.c * p.input_at.strides[1];
    float results[kCount];
#pragma unroll
    for (float& result : results) result = kMax ? Lowest<float>() : 0;
    for (uint32_t w = taps.range[2].begin; w < taps.range[2].end; ++w) {
      const T* const column = input + TapPlace(p.windows, taps, 2, w) * p.input_at.strides[4];
      float sums[kCount];
#pragma unroll
      for (float& sum : sums) sum = kMax ? Lowest<float>() : 0;
      for (uint32_t d = taps.range[0].begin; d < taps.range[0].end; ++d) {
        const T* const plane = column + TapPlace(p.windows, taps, 0, d) * p.input_at.strides[2];
        for (uint32_t h = taps.range[1].begin; h < taps.range[1].end; ++h) {
          const Unit<T> unit = LoadUnit(plane + TapPlace(p.windows, taps, 1, h) * p.input_at.strides[3]);
#pragma unroll
          for (uint32_t c = 0; c < kCount; ++c) combine(sums[c], NumberOf(unit.elements[c]));
        }
      }
#pragma unroll
      for (uint32_t c = 0; c < kCount; ++c) combine(results[c], sums[c]);
    }
    const float divisor = kMax ? 1 : DivisorOf(p.windows, taps, at, p.include_padding);
    Unit<T> output;
#pragma unroll
    for (uint32_t c = 0; c < kCount; ++c) {
      if constexpr (kMax) {
        const bool is_number = results[c] == results[c];
        output.elements[c] = is_number ? ElementOf<T>(results[c]) : FirstNan(p, taps, input, c);
      } else {
        output.elements[c] = ElementOf<T>(divisor > 0 ? results[c] / divisor : 0);
      }
    }
    uint4 bytes;
    memcpy(&bytes, &output, sizeof(bytes));
    *reinterpret_cast<uint4*>(static_cast<T*>(p.output) + p.output_at.Offset(at)) = bytes;
  }
}

class PoolingCudaChannels final : public Kernel {
 public:
  PoolingCudaChannels(const PoolingProblem& problem, const LowerContext& context)
      : is_half_(problem.input.type == DataType::kFloat16),
        is_max_(problem.function == PoolingFunction::kMax),
        unaligned_(CreatePoolingCudaWindows(problem, context, nullptr)) {
    const uint32_t unit = kUnitBytes / (BitSize(problem.input.type) / 8);
    PoolingShape shape = problem.shape;
    shape.channels /= unit;
    common_.include_padding = problem.include_padding;
    common_.windows = DeviceWindows(shape, problem.output);
    common_.windows.channels_last = true;
    common_.input_at = DevicePoolingTensor(problem.input);
    common_.output_at = DevicePoolingTensor(problem.output);
    common_.input_at.strides[1] = common_.output_at.strides[1] = unit;
    const uint64_t wanted = (common_.windows.count + kThreads - 1) / kThreads;
    blocks_ = std::min<uint64_t>(wanted, uint64_t{64} * context.device->multiprocessors);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    const auto addresses = reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.output);
    if (addresses % kUnitBytes != 0) return unaligned_->Run(arguments);
    KernelChain chain(arguments.stream);
    if (is_half_) {
      chain.Launch(is_max_ ? ChannelsKernel<Half, true> : ChannelsKernel<Half, false>, blocks_, kThreads, p);
    } else {
      chain.Launch(is_max_ ? ChannelsKernel<float, true> : ChannelsKernel<float, false>, blocks_, kThreads,
                   p);
    }
    return {};
  }

 private:
  bool is_half_;
  bool is_max_;
  std::unique_ptr<const Kernel> unaligned_;  // runs instead when a tensor is not aligned
  Parameters common_{};                      // but for addresses
  uint64_t blocks_;
};

// Whether units of channels are where a thread can load or store them at once.
bool HasUnits(const PoolingTensor& tensor, uint32_t unit) {
  if (tensor.strides[1] != 1) return false;
  for (const uint32_t d : {0u, 2u, 3u, 4u}) {
    if (tensor.strides[d] % unit != 0) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingCudaChannels(const PoolingProblem& problem,
                                                        const LowerContext& context, std::string* why_not) {
  if (!IsPlainFloat(problem)) {
    *why_not = "is for maxima and averages of FLOAT32 and FLOAT16, without indices";
    return nullptr;
  }
  if (problem.function == PoolingFunction::kAverage && problem.shape.axes[2].size > kColumnsInARow) {
    *why_not = "is for averages of windows of up to 16 columns";
    return nullptr;
  }
  const uint32_t unit = kUnitBytes / (BitSize(problem.input.type) / 8);
  if (problem.shape.channels % unit != 0 || !HasUnits(problem.input, unit) ||
      !HasUnits(problem.output, unit)) {
    *why_not = "is for channels that are side by side, 16 bytes of them or a multiple";
    return nullptr;
  }
  return std::make_unique<PoolingCudaChannels>(problem, context);
}

}  // namespace anydml
