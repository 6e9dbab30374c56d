#include "ops/softmax/hardmax.h"

#include <algorithm>

#include "ops/common/cuda_chain.cuh"
#include "ops/device/nest.h"

namespace anydml {
namespace {

constexpr uint32_t kHardmaxThreads = 256;

struct HardmaxParameters {
  const uint32_t* positions;
  void* output;
  DeviceNest<2> sets;      // of positions and the output
  DeviceNest<1> elements;  // of the output, in the order of positions
  FastDivisor inner;       // how many of which are side by side: sets, or a set's elements
  uint64_t count;
  bool sets_first;  // neighbours belong to different sets
};

template <typename T>
__global__ void __launch_bounds__(kHardmaxThreads) WriteOnes(const __grid_constant__ HardmaxParameters p) {
  const T one = sizeof(T) == 2 ? T{kOneAsFloat16} : static_cast<T>(kOneAsFloat32);
  for (uint64_t i = uint64_t{blockIdx.x} * kHardmaxThreads + threadIdx.x; i < p.count;
       i += uint64_t{gridDim.x} * kHardmaxThreads) {
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
      : HardmaxKernel(problem, std::move(argmax)) {
    common_.sets = DeviceNest<2>(sets_);
    common_.elements = DeviceNest<1>(elements_);
    common_.count = ElementCount(problem.output);
    common_.sets_first =
        sets_.rank > 0 && (elements_.rank == 0 || sets_.loops[sets_.rank - 1].strides[1] <
                                                      elements_.loops[elements_.rank - 1].strides[0]);
    common_.inner =
        FastDivisor(static_cast<uint32_t>(common_.sets_first ? Iterations(sets_) : Iterations(elements_)));
    blocks_ = std::min<uint64_t>((common_.count + kHardmaxThreads - 1) / kHardmaxThreads,
                                 uint64_t{32} * context.device->multiprocessors);
  }

 private:
  Status Write(const uint32_t* positions, const KernelArguments& arguments) const override {
    HardmaxParameters p = common_;
    p.positions = positions;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    if (bytes_ == sizeof(uint16_t)) {
      chain.Launch(WriteOnes<uint16_t>, blocks_, kHardmaxThreads, p);
    } else {
      chain.Launch(WriteOnes<uint32_t>, blocks_, kHardmaxThreads, p);
    }
    return {};
  }

  HardmaxParameters common_{};  // but for addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateHardmaxCuda(const SoftmaxProblem& problem, const LowerContext& context,
                                                std::string* why_not) {
  return CreateHardmax<HardmaxCuda>(problem, context, why_not);
}

}  // namespace anydml
