#include "base/dispatch.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/units.h"
#include "ops/generate/plan.h"

namespace anydml {
namespace {

using Kind = GenerateProblem::Kind;

template <typename Element, Kind kKind>
__device__ Element MakeElement(const GenerateParameters& p, const uint64_t (&at)[4], uint32_t i) {
  const auto& steps = p.inner.strides;
  if constexpr (kKind == Kind::kSequence) {
    return SequenceElement<Element>(p.value, p.delta, at[kGenerateNumber] + i * steps[kGenerateNumber]);
  } else if constexpr (kKind == Kind::kBand) {
    const auto diagonal = static_cast<int64_t>(at[kGenerateDiagonal] + i * steps[kGenerateDiagonal]);
    if (!FillsDiagonal(diagonal, p.begin, p.end)) {
      if (p.input == nullptr) return Element{0};
      return static_cast<const Element*>(p.input)[at[kGenerateInput] + i * steps[kGenerateInput]];
    }
    return static_cast<Element>(p.value);
  } else {
    return static_cast<Element>(p.value);
  }
}

// kCount contiguous elements of the output per thread.
template <typename Element, Kind kKind, uint32_t kCount>
__global__ void __launch_bounds__(kGenerateThreads)
    GenerateUnits(const __grid_constant__ GenerateParameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kGenerateThreads + threadIdx.x;
  if (number >= p.units) return;
  uint64_t at[4];
  p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
  struct alignas(sizeof(Element) * kCount) {
    Element elements[kCount];
  } unit;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) unit.elements[i] = MakeElement<Element, kKind>(p, at, i);
  *reinterpret_cast<decltype(unit)*>(static_cast<Element*>(p.output) + at[kGenerateOutput]) = unit;
}

template <typename Element, Kind kKind>
class GenerateCuda final : public Kernel {
 public:
  explicit GenerateCuda(const GenerateProblem& problem)
      : problem_(problem),
        aligned_(MakeGeneratePlan(problem, true)),
        any_(MakeGeneratePlan(problem, false)) {}

  Status Run(const KernelArguments& arguments) const override {
    const bool aligned = AddressOf(arguments.outputs[0].data) % kMaxUnitBytes == 0;
    const GeneratePlan& plan = aligned ? aligned_ : any_;
    GenerateParameters p = plan.parameters;
    p.input = problem_.has_input ? arguments.inputs[0].data : nullptr;
    p.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    constexpr uint32_t kWide = kMaxUnitBytes / sizeof(Element);
    chain.Launch(
        plan.unit_elements == 1 ? GenerateUnits<Element, kKind, 1> : GenerateUnits<Element, kKind, kWide>,
        plan.grid, p);
    return {};
  }

 private:
  GenerateProblem problem_;
  GeneratePlan aligned_, any_;  // whether the output is at a multiple of kMaxUnitBytes
};

}  // namespace

std::unique_ptr<const Kernel> CreateGenerateCuda(const GenerateProblem& problem, const LowerContext&,
                                                 std::string*) {
  if (problem.kind == Kind::kSequence) {
    if (problem.output.type == DataType::kFloat32) {
      return std::make_unique<GenerateCuda<float, Kind::kSequence>>(problem);
    }
    if (problem.output.type == DataType::kFloat16) {
      return std::make_unique<GenerateCuda<Half, Kind::kSequence>>(problem);
    }
  }
  return DispatchByWidth(problem.output.type, [&]<typename Element>() -> std::unique_ptr<const Kernel> {
    switch (problem.kind) {
      case Kind::kConstant:
        return std::make_unique<GenerateCuda<Element, Kind::kConstant>>(problem);
      case Kind::kSequence:
        return std::make_unique<GenerateCuda<Element, Kind::kSequence>>(problem);
      default:
        return std::make_unique<GenerateCuda<Element, Kind::kBand>>(problem);
    }
  });
}

}  // namespace anydml
