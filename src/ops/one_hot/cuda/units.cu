#include "base/dispatch.h"
#include "ops/device/cuda/indices.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/units.h"
#include "ops/one_hot/plan.h"

namespace anydml {
namespace {

// kCount contiguous elements of the output per thread.
template <typename Element, uint32_t kCount>
__global__ void __launch_bounds__(kOneHotThreads) OneHotUnits(const __grid_constant__ OneHotParameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kOneHotThreads + threadIdx.x;
  if (number >= p.units) return;
  uint64_t at[3];
  p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
  const Element off = static_cast<const Element*>(p.values)[0];
  const Element on = static_cast<const Element*>(p.values)[p.on];
  struct alignas(sizeof(Element) * kCount) {
    Element elements[kCount];
  } unit;
  uint64_t place = 0;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    if (i == 0 || p.index_step != 0) {
      place =
          PlaceOf(LoadIndex(p.indices, at[kOneHotIndices] + i * p.index_step), p.indices.is_signed, p.wrap);
    }
    unit.elements[i] = place == at[kOneHotPlace] + i * p.place_step ? on : off;
  }
  *reinterpret_cast<decltype(unit)*>(static_cast<Element*>(p.output) + at[kOneHotOutput]) = unit;
}

template <typename Element>
class OneHotCuda final : public Kernel {
 public:
  explicit OneHotCuda(const OneHotProblem& problem)
      : aligned_(MakeOneHotPlan(problem, true)), any_(MakeOneHotPlan(problem, false)) {}

  Status Run(const KernelArguments& arguments) const override {
    const bool aligned = AddressOf(arguments.outputs[0].data) % kMaxUnitBytes == 0;
    const OneHotPlan& plan = aligned ? aligned_ : any_;
    OneHotParameters p = plan.parameters;
    p.indices.data = arguments.inputs[0].data;
    p.values = arguments.inputs[1].data;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    constexpr uint32_t kWide = kMaxUnitBytes / sizeof(Element);
    chain.Launch(plan.unit_elements == 1 ? OneHotUnits<Element, 1> : OneHotUnits<Element, kWide>, plan.grid,
                 p);
    return {};
  }

 private:
  OneHotPlan aligned_, any_;  // whether the output is at a multiple of kMaxUnitBytes
};

}  // namespace

std::unique_ptr<const Kernel> CreateOneHotCuda(const OneHotProblem& problem, const LowerContext&,
                                               std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<OneHotCuda<Element>>(problem);
  });
}

}  // namespace anydml
