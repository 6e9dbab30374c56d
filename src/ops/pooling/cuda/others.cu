// Gradients, with a thread for each element that collects from windows, and MAX_UNPOOLING.
#include <cuda_runtime.h>

#include <algorithm>

#include "ops/common/cuda_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"
#include "ops/pooling/parts.h"

namespace anydml {
namespace {

using namespace pooling;

constexpr uint32_t kOtherThreads = 256;

struct OtherParameters {
  const void* gradient;    // of the windows
  const uint32_t* maxima;  // where they are; null for averages
  void* output;
  uint64_t count;  // of the output's elements
  bool include_padding;
  uint32_t channels;
  PlaceNumbers places;  // of the output
  WindowAxis axes[kSpatialRank];
  DevicePoolingTensor gradient_at;
  DevicePoolingTensor output_at;
};

template <typename T>
__device__ float Collect(const OtherParameters& p, const WindowPlace& at) {
  const WindowAxis(&axes)[kSpatialRank] = p.axes;
  const WindowRange ds = WindowsOver(axes[0], at.d), hs = WindowsOver(axes[1], at.h),
                    ws = WindowsOver(axes[2], at.w);
  const uint64_t channel = uint64_t{at.n} * p.channels + at.c;
  const uint64_t index = ((channel * axes[0].input + at.d) * axes[1].input + at.h) * axes[2].input + at.w;
  float sum = 0;
  for (uint32_t d = ds.begin; d < ds.end; ++d) {
    if (!HasTapAt(axes[0], d, at.d)) continue;
    for (uint32_t h = hs.begin; h < hs.end; ++h) {
      if (!HasTapAt(axes[1], h, at.h)) continue;
      const float rows = p.maxima != nullptr
                             ? 1
                             : static_cast<float>(DivisorTaps(axes[0], d, p.include_padding)) *
                                   static_cast<float>(DivisorTaps(axes[1], h, p.include_padding));
      for (uint32_t w = ws.begin; w < ws.end; ++w) {
        if (!HasTapAt(axes[2], w, at.w)) continue;
        const uint64_t number = ((channel * axes[0].windows + d) * axes[1].windows + h) * axes[2].windows + w;
        if (p.maxima != nullptr && p.maxima[number] != index) continue;
        const WindowPlace window = {at.n, at.c, d, h, w};
        const float gradient = NumberOf(static_cast<const T*>(p.gradient)[p.gradient_at.Offset(window)]);
        sum += p.maxima != nullptr
                   ? gradient
                   : gradient / (rows * static_cast<float>(DivisorTaps(axes[2], w, p.include_padding)));
      }
    }
  }
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kOtherThreads) CollectKernel(const __grid_constant__ OtherParameters p) {
  WaitForPrevious();
  const uint64_t step = uint64_t{gridDim.x} * kOtherThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kOtherThreads + threadIdx.x; i < p.count; i += step) {
    const WindowPlace at = p.places.At(static_cast<uint32_t>(i));
    StoreNumber<T>(p.output, p.output_at.Offset(at), Collect<T>(p, at));
  }
}

class PoolingGradCuda final : public GradKernel {
 public:
  PoolingGradCuda(const PoolingGradProblem& problem, const LowerContext& context, LoweredOperator maxima)
      : GradKernel(problem, std::move(maxima)) {
    const PoolingShape& shape = problem.shape;
    common_.count = shape.Inputs();
    common_.include_padding = problem.include_padding;
    common_.channels = shape.channels;
    common_.places.channels = FastDivisor(shape.channels);
    common_.places.channels_last = HasChannelsLast(problem.output_gradient);
    for (uint32_t d = 0; d < kSpatialRank; ++d) {
      common_.axes[d] = shape.axes[d];
      common_.places.sizes[d] = FastDivisor(shape.axes[d].input);
    }
    common_.gradient_at = DevicePoolingTensor(problem.input_gradient);
    common_.output_at = DevicePoolingTensor(problem.output_gradient);
    const uint64_t wanted = (common_.count + kOtherThreads - 1) / kOtherThreads;
    blocks_ = std::min<uint64_t>(wanted, uint64_t{64} * context.device->multiprocessors);
  }

  Status Run(const KernelArguments& arguments) const override {
    ANYDML_RETURN_IF_ERROR(FindMaxima(arguments));
    OtherParameters p = common_;
    p.gradient = arguments.inputs[p_.is_max() ? 1 : 0].data;
    p.maxima = p_.is_max() ? Maxima(arguments) : nullptr;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    if (p_.output_gradient.type == DataType::kFloat16) {
      chain.Launch(CollectKernel<Half>, blocks_, kOtherThreads, p);
    } else {
      chain.Launch(CollectKernel<float>, blocks_, kOtherThreads, p);
    }
    return {};
  }

 private:
  OtherParameters common_{};  // but for addresses
  uint64_t blocks_;
};

class MaxUnpoolingCuda final : public UnpoolingKernel {
 public:
  using UnpoolingKernel::UnpoolingKernel;

  Status Run(const KernelArguments& arguments) const override {
    cudaMemsetAsync(zero_.In(arguments.temporary).data, 0, zero_.bytes,
                    static_cast<cudaStream_t>(arguments.stream));
    return RunParts(arguments);
  }
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingGradCuda(const PoolingGradProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  return CreateGradKernel<PoolingGradCuda>(problem, context, why_not);
}

std::unique_ptr<const Kernel> CreateMaxUnpoolingCuda(const MaxUnpoolingProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  return CreateUnpoolingKernel<MaxUnpoolingCuda>(problem, context, why_not);
}

}  // namespace anydml
