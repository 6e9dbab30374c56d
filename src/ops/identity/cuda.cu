#include <cuda_fp16.h>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_copy.cuh"
#include "ops/common/dispatch.h"
#include "ops/identity/problem.h"
#include "ops/identity/scale_bias.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;

// The functions of an element, as a device takes them.
template <typename T>
struct ScaleBiasOf {
  ScaleBias s;
  __device__ T operator()(T x) const { return ApplyScaleBias(x, s); }
};
// The same with the device's own conversions, whose NaN is another one.
template <>
struct ScaleBiasOf<Half> {
  ScaleBias s;
  __device__ Half operator()(Half x) const {
    const float y = ApplyScaleBias(__half2float(__ushort_as_half(x.bits)), s);
    return {y != y ? uint16_t{0x7E00} : __half_as_ushort(__float2half_rn(y))};
  }
};
template <typename T>
struct ExactScaleBiasOf {
  uint64_t scale;
  uint64_t bias;
  __device__ T operator()(T x) const { return ApplyScaleBiasExact(x, scale, bias); }
};
template <typename T>
struct RoundedScaleBiasOf {
  ScaleBias s;
  __device__ T operator()(T x) const { return ApplyScaleBiasRounded(x, s); }
};

template <typename Function>
struct MapParameters {
  DeviceCopy copy;
  Function f;
};

template <typename Element, typename Function>
__global__ void __launch_bounds__(kThreads) MapKernel(const __grid_constant__ MapParameters<Function> p) {
  MapBlock<Element>(p.copy, blockIdx.x, p.f);
}

class IdentityCuda final : public Kernel {
 public:
  explicit IdentityCuda(const IdentityProblem& problem)
      : type_(problem.output.type),
        scale_bias_(problem.scale_bias),
        in_place_(SameLayout(problem.input, problem.output)),
        nest_(CopyNest(problem.input, problem.output)) {}

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* input = arguments.inputs[0].data;
    std::byte* output = arguments.outputs[0].data;
    const DeviceCopy copy = MakeDeviceCopy(nest_, BitSize(type_) / 8, input, output);
    if (scale_bias_) {
      RunScaleBias(copy, *scale_bias_, arguments.stream);
    } else if (!(in_place_ && input == output)) {
      Launch<uint8_t>(copy, KeepBits{}, arguments.stream);
    }
    return {};
  }

 private:
  void RunScaleBias(const DeviceCopy& copy, ScaleBias s, void* stream) const {
    const bool exact = IsIntegral(s.scale) && IsIntegral(s.bias);
    DispatchByType(type_, [&]<typename T>() {
      if constexpr (!std::is_integral_v<T>) {
        Launch<T>(copy, ScaleBiasOf<T>{s}, stream);
      } else if (exact) {
        // The low bits are the same for signed and unsigned numbers.
        using Bits = std::make_unsigned_t<T>;
        Launch<Bits>(copy, ExactScaleBiasOf<Bits>{Modulo64(s.scale), Modulo64(s.bias)}, stream);
      } else {
        Launch<T>(copy, RoundedScaleBiasOf<T>{s}, stream);
      }
    });
  }

  template <typename Element, typename Function>
  static void Launch(const DeviceCopy& copy, Function f, void* stream) {
    KernelChain(stream).Launch(MapKernel<Element, Function>, CopyBlocks(copy, kThreads), kThreads,
                               MapParameters<Function>{copy, f});
  }

  DataType type_;
  std::optional<ScaleBias> scale_bias_;
  bool in_place_;  // when input and output are the same memory
  LoopNest<2> nest_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIdentityCuda(const IdentityProblem& problem, const LowerContext&,
                                                 std::string*) {
  return std::make_unique<IdentityCuda>(problem);
}

}  // namespace anydml
