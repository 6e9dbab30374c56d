#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/common/dispatch.h"
#include "ops/device/nest.h"
#include "ops/generate/problem.h"

namespace anydml {
namespace {

using Kind = GenerateProblem::Kind;

constexpr uint32_t kUnitThreads = 256;

struct UnitParameters {
  const void* input;
  void* output;
  uint64_t value;
  uint64_t delta;
  int64_t begin;
  int64_t end;
  uint32_t units;
  LoopNest<4>::Loop inner;  // from one element of a unit to the next
  DeviceNest<4> nest;       // over units, in elements
};

template <typename Element, Kind kKind>
__device__ Element MakeElement(const UnitParameters& p, const uint64_t (&at)[4], uint32_t i) {
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

// kCount elements, neighbours in the output, per thread.
template <typename Element, Kind kKind, uint32_t kCount>
__global__ void __launch_bounds__(kUnitThreads) GenerateUnits(const __grid_constant__ UnitParameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kUnitThreads + threadIdx.x;
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
  explicit GenerateCuda(const GenerateProblem& problem) : problem_(problem), nest_(GenerateNest(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    UnitParameters p = {};
    p.input = problem_.has_input ? arguments.inputs[0].data : nullptr;
    p.output = arguments.outputs[0].data;
    p.value = problem_.value;
    p.delta = problem_.delta;
    p.begin = problem_.begin;
    p.end = problem_.end;
    if (InWholeUnits(p.output)) {
      Launch<kMaxUnitBytes / sizeof(Element)>(p, arguments.stream);
    } else {
      Launch<1>(p, arguments.stream);
    }
    return {};
  }

 private:
  // Whether the output can be written 16 bytes at a time.
  bool InWholeUnits(const void* output) const {
    if (nest_.rank == 0 || nest_.loops[nest_.rank - 1].strides[kGenerateOutput] != 1) return false;
    uint64_t bytes = AddressOf(output) | nest_.loops[nest_.rank - 1].size * sizeof(Element);
    for (uint32_t d = 0; d + 1 < nest_.rank; ++d) {
      bytes |= nest_.loops[d].strides[kGenerateOutput] * sizeof(Element);
    }
    return bytes % kMaxUnitBytes == 0;
  }

  template <uint32_t kCount>
  void Launch(UnitParameters p, void* stream) const {
    LoopNest<4> in_units = nest_;
    if (kCount > 1) {
      auto& inner = in_units.loops[in_units.rank - 1];
      p.inner = inner;
      inner.size /= kCount;
      for (uint64_t& stride : inner.strides) stride *= kCount;
    }
    p.nest = DeviceNest<4>(in_units);
    p.units = static_cast<uint32_t>(Iterations(in_units));
    KernelChain chain(stream);
    chain.Launch(GenerateUnits<Element, kKind, kCount>, (uint64_t{p.units} + kUnitThreads - 1) / kUnitThreads,
                 kUnitThreads, p);
  }

  GenerateProblem problem_;
  LoopNest<4> nest_;
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
