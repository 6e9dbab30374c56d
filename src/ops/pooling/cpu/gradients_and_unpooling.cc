// Gradients: an element of the output gradient sums over the windows that have a tap there. MAX_UNPOOLING.
#include <cstring>

#include "base/dispatch.h"
#include "ops/pooling/arithmetic.h"
#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cpu/units.h"
#include "ops/pooling/parts.h"

namespace anydml {
namespace {

template <typename T>
float NumberOf(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToFloat(x);
  } else {
    return x;
  }
}

template <typename T>
T ElementOf(float x) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(pooling::WithOneNan(x));
  } else {
    return pooling::WithOneNan(x);
  }
}

class PoolingGradCpu final : public GradKernel {
 public:
  PoolingGradCpu(const PoolingGradProblem& problem, const LowerContext& context, LoweredOperator maxima)
      : GradKernel(problem, std::move(maxima)),
        rows_(problem.shape.Inputs() / problem.shape.axes[2].input),
        parts_(pooling::PartsOf(problem.shape, problem.output_gradient.type, rows_, context.threads)) {}

  Status Run(const KernelArguments& arguments) const override {
    ANYDML_RETURN_IF_ERROR(FindMaxima(arguments));
    pooling::ForParts(arguments.executor, rows_, parts_, [&](uint32_t, uint64_t begin, uint64_t end) {
      for (uint64_t row = begin; row < end; ++row) {
        if (p_.output_gradient.type == DataType::kFloat16) {
          CollectRow<Half>(arguments, row);
        } else {
          CollectRow<float>(arguments, row);
        }
      }
    });
    return {};
  }

 private:
  // A row of the output gradient.
  template <typename T>
  void CollectRow(const KernelArguments& arguments, uint64_t row) const {
    const auto& axes = p_.shape.axes;
    const uint64_t first_index = row * axes[2].input;
    const auto h = static_cast<uint32_t>(row % axes[1].input);
    row /= axes[1].input;
    const auto d = static_cast<uint32_t>(row % axes[0].input);
    const uint64_t plane = row / axes[0].input;
    const uint64_t n = plane / p_.shape.channels, c = plane % p_.shape.channels;
    const auto& from_strides = p_.input_gradient.strides;
    const auto& to_strides = p_.output_gradient.strides;
    const Places places = {
        reinterpret_cast<const T*>(arguments.inputs[p_.is_max() ? 1 : 0].data) + n * from_strides[0] +
            c * from_strides[1],
        p_.is_max() ? Maxima(arguments) + plane * axes[0].windows * axes[1].windows * axes[2].windows
                    : nullptr,
        d, h};
    T* const to = reinterpret_cast<T*>(arguments.outputs[0].data) + n * to_strides[0] + c * to_strides[1] +
                  d * to_strides[2] + h * to_strides[3];
    for (uint32_t w = 0; w < axes[2].input; ++w) {
      to[w * to_strides[4]] = ElementOf<T>(Collect<T>(places, w, static_cast<uint32_t>(first_index + w)));
    }
  }

  struct Places {
    const void* gradient;    // of the channel's first window
    const uint32_t* maxima;  // positions of the channel's maxima; null for averages
    uint32_t d;
    uint32_t h;
  };

  template <typename T>
  float Collect(const Places& places, uint32_t w, uint32_t index) const {
    const auto& axes = p_.shape.axes;
    const WindowRange ds = WindowsOver(axes[0], places.d), hs = WindowsOver(axes[1], places.h),
                      ws = WindowsOver(axes[2], w);
    float sum = 0;
    for (uint32_t i = ds.begin; i < ds.end; ++i) {
      if (!HasTapAt(axes[0], i, places.d)) continue;
      for (uint32_t j = hs.begin; j < hs.end; ++j) {
        if (!HasTapAt(axes[1], j, places.h)) continue;
        for (uint32_t k = ws.begin; k < ws.end; ++k) {
          if (!HasTapAt(axes[2], k, w)) continue;
          const uint64_t number = (uint64_t{i} * axes[1].windows + j) * axes[2].windows + k;
          if (places.maxima != nullptr && places.maxima[number] != index) continue;
          const auto& strides = p_.input_gradient.strides;
          const float gradient = NumberOf(
              static_cast<const T*>(places.gradient)[i * strides[2] + j * strides[3] + k * strides[4]]);
          sum += places.maxima != nullptr ? gradient : gradient / Divisor(i, j, k);
        }
      }
    }
    return sum;
  }

  float Divisor(uint32_t i, uint32_t j, uint32_t k) const {
    const auto& axes = p_.shape.axes;
    return static_cast<float>(DivisorTaps(axes[0], i, p_.include_padding)) *
           static_cast<float>(DivisorTaps(axes[1], j, p_.include_padding)) *
           static_cast<float>(DivisorTaps(axes[2], k, p_.include_padding));
  }

  uint64_t rows_;
  uint32_t parts_;
};

class MaxUnpoolingCpu final : public UnpoolingKernel {
 public:
  using UnpoolingKernel::UnpoolingKernel;

  Status Run(const KernelArguments& arguments) const override {
    std::memset(zero_.In(arguments.temporary).data, 0, zero_.bytes);
    return RunParts(arguments);
  }
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingGradCpu(const PoolingGradProblem& problem,
                                                   const LowerContext& context, std::string* why_not) {
  return CreateGradKernel<PoolingGradCpu>(problem, context, why_not);
}

std::unique_ptr<const Kernel> CreateMaxUnpoolingCpu(const MaxUnpoolingProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  return CreateUnpoolingKernel<MaxUnpoolingCpu>(problem, context, why_not);
}

}  // namespace anydml
