// Contiguous channels: a thread has 16 bytes of them, for one window.
#include <algorithm>
#include <array>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"

namespace anydml {
namespace {

using namespace pooling;

constexpr uint32_t kChannelThreads = 256;
constexpr uint32_t kUnitBytes = 16;

struct ChannelParameters {
  const void* input;
  void* output;
  bool include_padding;
  DeviceWindows windows;         // windows whose channels are counted in units
  DevicePoolingTensor input_at;  // strides in elements, for channels that of a unit
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
__device__ T FirstNan(const ChannelParameters& p, const Taps& taps, const T* unit, uint32_t c) {
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

template <bool kMax>
__device__ void Combine(float& to, float x) {
  to = kMax ? LargerOf(to, x) : to + x;
}

// Column `w` of a window.
template <typename T, bool kMax>
__device__ void ReadColumn(const ChannelParameters& p, const Taps& taps, const T* input, uint32_t w,
                           float (&sums)[Unit<T>::kCount]) {
  const T* const column = input + TapPlace(p.windows, taps, 2, w) * p.input_at.strides[4];
#pragma unroll
  for (float& sum : sums) sum = kMax ? Lowest<float>() : 0;
  for (uint32_t d = taps.range[0].begin; d < taps.range[0].end; ++d) {
    const T* const plane = column + TapPlace(p.windows, taps, 0, d) * p.input_at.strides[2];
    for (uint32_t h = taps.range[1].begin; h < taps.range[1].end; ++h) {
      const Unit<T> unit = LoadUnit(plane + TapPlace(p.windows, taps, 1, h) * p.input_at.strides[3]);
#pragma unroll
      for (uint32_t c = 0; c < Unit<T>::kCount; ++c) Combine<kMax>(sums[c], NumberOf(unit.elements[c]));
    }
  }
}

template <typename T, bool kMax>
__device__ void StoreWindow(const ChannelParameters& p, const WindowPlace& at, const Taps& taps,
                            const T* input, const float (&results)[Unit<T>::kCount]) {
  const float divisor = kMax ? 1 : DivisorOf(p.windows, taps, at, p.include_padding);
  Unit<T> output;
#pragma unroll
  for (uint32_t c = 0; c < Unit<T>::kCount; ++c) {
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

template <typename T>
__device__ const T* UnitsOf(const ChannelParameters& p, const WindowPlace& at) {
  return static_cast<const T*>(p.input) + at.n * p.input_at.strides[0] + at.c * p.input_at.strides[1];
}

template <typename T, bool kMax>
__global__ void __launch_bounds__(kChannelThreads)
    ChannelsKernel(const __grid_constant__ ChannelParameters p) {
  constexpr uint32_t kCount = Unit<T>::kCount;
  WaitForPrevious();
  LetNextStart();
  const uint64_t step = uint64_t{gridDim.x} * kChannelThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kChannelThreads + threadIdx.x; i < p.windows.count; i += step) {
    const WindowPlace at = p.windows.At(static_cast<uint32_t>(i));
    const Taps taps = TapsOf(p.windows, at);
    const T* const input = UnitsOf<T>(p, at);
    float results[kCount], sums[kCount];
#pragma unroll
    for (float& result : results) result = kMax ? Lowest<float>() : 0;
    for (uint32_t w = taps.range[2].begin; w < taps.range[2].end; ++w) {
      ReadColumn<T, kMax>(p, taps, input, w, sums);
#pragma unroll
      for (uint32_t c = 0; c < kCount; ++c) Combine<kMax>(results[c], sums[c]);
    }
    StoreWindow<T, kMax>(p, at, taps, input, results);
  }
}

// For few windows of many taps: a thread has a column.
template <typename T, bool kMax>
__global__ void __launch_bounds__(kChannelThreads)
    ColumnsKernel(const __grid_constant__ ChannelParameters p) {
  constexpr uint32_t kCount = Unit<T>::kCount, kUnits = kChannelThreads / kColumnsInARow;
  __shared__ float columns[kColumnsInARow][kUnits][kCount + 1];
  WaitForPrevious();
  LetNextStart();
  const uint32_t unit = threadIdx.x % kUnits, w = threadIdx.x / kUnits;
  const uint64_t i = uint64_t{blockIdx.x} * kUnits + unit;
  const bool exists = i < p.windows.count;
  const WindowPlace at = p.windows.At(exists ? static_cast<uint32_t>(i) : 0);
  const Taps taps = TapsOf(p.windows, at);
  const T* const input = UnitsOf<T>(p, at);
  if (exists && w >= taps.range[2].begin && w < taps.range[2].end) {
    float sums[kCount];
    ReadColumn<T, kMax>(p, taps, input, w, sums);
#pragma unroll
    for (uint32_t c = 0; c < kCount; ++c) columns[w][unit][c] = sums[c];
  }
  __syncthreads();
  if (!exists || w != 0) return;
  float results[kCount];
#pragma unroll
  for (float& result : results) result = kMax ? Lowest<float>() : 0;
  for (uint32_t column = taps.range[2].begin; column < taps.range[2].end; ++column) {
#pragma unroll
    for (uint32_t c = 0; c < kCount; ++c) Combine<kMax>(results[c], columns[column][unit][c]);
  }
  StoreWindow<T, kMax>(p, at, taps, input, results);
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
    constexpr uint32_t kFewTaps = 4, kFewThreads = 512;  // per column; per multiprocessor
    const uint64_t count = common_.windows.count, multiprocessors = context.device->multiprocessors;
    const WindowAxis* const axes = problem.shape.axes.data();
    by_columns_ = uint64_t{axes[0].size} * axes[1].size >= kFewTaps && axes[2].size >= kFewTaps &&
                  axes[2].size <= kColumnsInARow && count < kFewThreads * multiprocessors;
    const uint64_t per_block = by_columns_ ? kChannelThreads / kColumnsInARow : kChannelThreads;
    blocks_ = (count + per_block - 1) / per_block;
    if (!by_columns_) blocks_ = std::min(blocks_, 64 * multiprocessors);
  }

  Status Run(const KernelArguments& arguments) const override {
    ChannelParameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    const auto addresses = reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.output);
    if (addresses % kUnitBytes != 0) return unaligned_->Run(arguments);
    KernelChain chain(arguments.stream, /*all_wait=*/true);
    if (is_half_) {
      is_max_ ? Launch<Half, true>(p, &chain) : Launch<Half, false>(p, &chain);
    } else {
      is_max_ ? Launch<float, true>(p, &chain) : Launch<float, false>(p, &chain);
    }
    return {};
  }

 private:
  template <typename T, bool kMax>
  void Launch(const ChannelParameters& p, KernelChain* chain) const {
    chain->Launch(by_columns_ ? ColumnsKernel<T, kMax> : ChannelsKernel<T, kMax>, blocks_, kChannelThreads,
                  p);
  }

  bool is_half_;
  bool is_max_;
  bool by_columns_;
  std::unique_ptr<const Kernel> unaligned_;  // runs instead if a tensor is not aligned
  ChannelParameters common_{};               // without addresses
  uint64_t blocks_;
};

// Whether a thread can load or store units of channels at once; `sizes` of the other dimensions.
bool HasUnits(const PoolingTensor& tensor, const std::array<uint32_t, 4>& sizes, uint32_t unit) {
  constexpr uint32_t kDimensions[] = {0, 2, 3, 4};
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1 && tensor.strides[kDimensions[i]] % unit != 0) return false;
  }
  return tensor.strides[1] == 1;
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
  const PoolingShape& s = problem.shape;
  if (s.channels % unit != 0 ||
      !HasUnits(problem.input, {s.batch, s.axes[0].input, s.axes[1].input, s.axes[2].input}, unit) ||
      !HasUnits(problem.output, {s.batch, s.axes[0].windows, s.axes[1].windows, s.axes[2].windows}, unit)) {
    *why_not = "is for channels that are side by side, 16 bytes of them or a multiple";
    return nullptr;
  }
  return std::make_unique<PoolingCudaChannels>(problem, context);
}

}  // namespace anydml
