// Gradients, with a thread for each element that collects from windows, and MAX_UNPOOLING.
#include <cuda_runtime.h>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"
#include "ops/pooling/parts.h"

namespace anydml {
namespace {

using namespace pooling;

template <typename T>
__device__ float Collect(const GradientParameters& p, const WindowPlace& at) {
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
__global__ void __launch_bounds__(kPoolingThreads)
    CollectKernel(const __grid_constant__ GradientParameters p) {
  WaitForPrevious();
  const uint64_t step = uint64_t{gridDim.x} * kPoolingThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kPoolingThreads + threadIdx.x; i < p.count; i += step) {
    const WindowPlace at = p.places.At(static_cast<uint32_t>(i));
    StoreNumber<T>(p.output, p.output_at.Offset(at), Collect<T>(p, at));
  }
}

class PoolingGradCuda final : public GradKernel {
 public:
  PoolingGradCuda(const PoolingGradProblem& problem, const LowerContext& context, LoweredOperator maxima)
      : GradKernel(problem, std::move(maxima)), plan_(MakePoolingGradientPlan(problem, *context.device)) {}

  Status Run(const KernelArguments& arguments) const override {
    ANYDML_RETURN_IF_ERROR(FindMaxima(arguments));
    GradientParameters p = plan_.parameters;
    p.gradient = arguments.inputs[p_.is_max() ? 1 : 0].data;
    p.maxima = p_.is_max() ? Maxima(arguments) : nullptr;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    if (p_.output_gradient.type == DataType::kFloat16) {
      chain.Launch(CollectKernel<Half>, plan_.grid, p);
    } else {
      chain.Launch(CollectKernel<float>, plan_.grid, p);
    }
    return {};
  }

 private:
  PoolingGradientPlan plan_;
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
