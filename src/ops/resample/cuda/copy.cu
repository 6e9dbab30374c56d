// Nearest elements: a thread moves a few.
#include <optional>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/resample/cuda/targets.cuh"
#include "ops/resample/taps.h"

namespace anydml {
namespace {

template <typename T>
__global__ void __launch_bounds__(kResampleCopyThreads)
    CopyNearest(const __grid_constant__ ResampleCopyParameters p) {
  const uint64_t first = uint64_t{blockIdx.x} * kResampleCopyThreads * kResamplePerThread + threadIdx.x;
  T elements[kResamplePerThread];
  uint64_t offsets[kResamplePerThread];
#pragma unroll
  for (uint32_t i = 0; i < kResamplePerThread; ++i) {
    const uint64_t number = first + i * kResampleCopyThreads;
    if (number >= p.targets.count) break;
    const TargetPlace place = PlaceOf(p.targets, static_cast<uint32_t>(number));
    uint64_t from = place.source;
#pragma unroll
    for (uint32_t l = 0; l < kMaxLevels; ++l) {
      const ResampleAxis& axis = p.targets.levels[l];
      from += uint64_t{NearestIndex(axis, place.at[l])} * axis.source_stride;
    }
    elements[i] = static_cast<const T*>(p.source)[from];
    offsets[i] = place.target;
  }
#pragma unroll
  for (uint32_t i = 0; i < kResamplePerThread; ++i) {
    if (first + i * kResampleCopyThreads >= p.targets.count) break;
    static_cast<T*>(p.target)[offsets[i]] = elements[i];
  }
}

class ResampleCopyCuda final : public Kernel {
 public:
  explicit ResampleCopyCuda(const ResampleProblem& problem)
      : elements_(MakeResampleCopyPlan(problem)), units_(MakeResampleUnitsPlan(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    const uint64_t addresses = AddressOf(arguments.inputs[0].data) | AddressOf(arguments.outputs[0].data);
    const ResampleCopyPlan& plan = units_ && addresses % kMaxUnitBytes == 0 ? *units_ : elements_;
    ResampleCopyParameters p = plan.parameters;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    DispatchByUnit(plan.element_bytes, [&]<typename T>() {
      if constexpr (sizeof(T) != 8) chain.Launch(CopyNearest<T>, plan.grid, p);
    });
    return {};
  }

 private:
  ResampleCopyPlan elements_;
  std::optional<ResampleCopyPlan> units_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleCopyCuda(const ResampleProblem& problem, const LowerContext&,
                                                     std::string* why_not) {
  if (!IsNearest(problem)) {
    *why_not = "elements are added up";
    return nullptr;
  }
  return std::make_unique<ResampleCopyCuda>(problem);
}

}  // namespace anydml
