#include "ops/softmax/hardmax.h"

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/softmax/plan.h"

namespace anydml {
namespace {

template <typename T>
__global__ void __launch_bounds__(kSoftmaxThreads) WriteOnes(const __grid_constant__ HardmaxParameters p) {
  const T one = sizeof(T) == 2 ? T{kOneAsFloat16} : static_cast<T>(kOneAsFloat32);
  for (uint64_t i = uint64_t{blockIdx.x} * kSoftmaxThreads + threadIdx.x; i < p.count;
       i += uint64_t{gridDim.x} * kSoftmaxThreads) {
    uint32_t inside;
    const uint32_t outside = p.inner.Divide(static_cast<uint32_t>(i), &inside);
    const uint32_t set = p.sets_first ? inside : outside;
    const uint32_t element = p.sets_first ? outside : inside;
    uint64_t offsets[2], offset[1];
    p.sets.OffsetsOf(set, offsets);
    p.elements.OffsetsOf(element, offset);
    static_cast<T*>(p.output)[offsets[1] + offset[0]] = p.positions[offsets[0]] == element ? one : T{0};
  }
}

class HardmaxCuda final : public HardmaxKernel {
 public:
  HardmaxCuda(const SoftmaxProblem& problem, LoweredOperator argmax, const LowerContext& context)
      : HardmaxKernel(problem, std::move(argmax)),
        plan_(MakeHardmaxPlan(sets_, elements_, *context.device)) {}

 private:
  Status Write(const uint32_t* positions, const KernelArguments& arguments) const override {
    HardmaxParameters p = plan_.parameters;
    p.positions = positions;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    const bool is_half = bytes_ == sizeof(uint16_t);
    chain.Launch(is_half ? WriteOnes<uint16_t> : WriteOnes<uint32_t>, plan_.grid, p);
    return {};
  }

  HardmaxPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateHardmaxCuda(const SoftmaxProblem& problem, const LowerContext& context,
                                                std::string* why_not) {
  return CreateHardmax<HardmaxCuda>(problem, context, why_not);
}

}  // namespace anydml
