#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_indices.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/common/dispatch.h"
#include "ops/device/nest.h"
#include "ops/one_hot/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;

struct Parameters {
  DeviceIndices indices;
  const void* values;
  void* output;
  uint64_t wrap;
  uint64_t on;
  uint32_t units;
  uint64_t index_step;  // from one element of a unit to the next
  uint64_t place_step;
  DeviceNest<3> nest;  // over units, in elements
};

// kCount elements, neighbours in the output, per thread.
template <typename Element, uint32_t kCount>
__global__ void __launch_bounds__(kThreads) OneHotUnits(const __grid_constant__ Parameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
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
      : indices_(problem.indices.type), wrap_(problem.wrap), on_(problem.on), nest_(OneHotNest(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = {};
    p.indices = indices_;
    p.indices.data = arguments.inputs[0].data;
    p.values = arguments.inputs[1].data;
    p.output = arguments.outputs[0].data;
    p.wrap = wrap_;
    p.on = on_;
    constexpr uint32_t kWide = kMaxUnitBytes / sizeof(Element);
    if (InWholeUnits(p.output)) {
      Launch<kWide>(p, arguments.stream);
    } else {
      Launch<1>(p, arguments.stream);
    }
    return {};
  }

 private:
  // Whether the output can be written 16 bytes at a time.
  bool InWholeUnits(const void* output) const {
    if (nest_.rank == 0 || nest_.loops[nest_.rank - 1].strides[kOneHotOutput] != 1) return false;
    uint64_t bytes = AddressOf(output) | nest_.loops[nest_.rank - 1].size * sizeof(Element);
    for (uint32_t d = 0; d + 1 < nest_.rank; ++d) {
      bytes |= nest_.loops[d].strides[kOneHotOutput] * sizeof(Element);
    }
    return bytes % kMaxUnitBytes == 0;
  }

  template <uint32_t kCount>
  void Launch(Parameters p, void* stream) const {
    LoopNest<3> in_units = nest_;
    if (kCount > 1) {
      auto& inner = in_units.loops[in_units.rank - 1];
      p.index_step = inner.strides[kOneHotIndices];
      p.place_step = inner.strides[kOneHotPlace];
      inner.size /= kCount;
      for (uint64_t& stride : inner.strides) stride *= kCount;
    }
    p.nest = DeviceNest<3>(in_units);
    p.units = static_cast<uint32_t>(Iterations(in_units));
    KernelChain chain(stream);
    chain.Launch(OneHotUnits<Element, kCount>, (uint64_t{p.units} + kThreads - 1) / kThreads, kThreads, p);
  }

  DeviceIndices indices_;
  uint64_t wrap_;
  uint64_t on_;
  LoopNest<3> nest_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateOneHotCuda(const OneHotProblem& problem, const LowerContext&,
                                               std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<OneHotCuda<Element>>(problem);
  });
}

}  // namespace anydml
