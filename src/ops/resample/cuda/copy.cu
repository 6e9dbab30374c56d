// Nearest elements: a thread moves a few.
#include <optional>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/common/dispatch.h"
#include "ops/resample/cuda/targets.cuh"

namespace anydml {
namespace {

constexpr uint32_t kCopyThreads = 256;
constexpr uint32_t kPerThread = 4;

struct CopyParameters {
  const void* source = nullptr;
  void* target = nullptr;
  DeviceTargets targets;
};

template <typename T>
__global__ void __launch_bounds__(kCopyThreads) CopyNearest(const __grid_constant__ CopyParameters p) {
  const uint64_t first = uint64_t{blockIdx.x} * kCopyThreads * kPerThread + threadIdx.x;
  T elements[kPerThread];
  uint64_t offsets[kPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    const uint64_t number = first + i * kCopyThreads;
    if (number >= p.targets.count) break;
    const DeviceTargets::Place place = p.targets.PlaceOf(static_cast<uint32_t>(number));
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
  for (uint32_t i = 0; i < kPerThread; ++i) {
    if (first + i * kCopyThreads >= p.targets.count) break;
    static_cast<T*>(p.target)[offsets[i]] = elements[i];
  }
}

// The same of units of 16 bytes, where a dimension's neighbours stay together (channels that are innermost);
// none where they do not, or something is no multiple of a unit.
std::optional<ResampleProblem> InUnits(const ResampleProblem& problem) {
  const uint32_t unit = sizeof(uint4) * 8 / BitSize(problem.type);
  ResampleProblem units = problem;
  bool found = false;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    ResampleAxis& axis = units.axes[d];
    const bool is_row =
        KeepsElements(axis) && axis.to > 1 && axis.source_stride == 1 && axis.target_stride == 1;
    if (is_row && axis.to % unit == 0) {
      axis.from = axis.to = axis.to / unit;
      axis.rule = ResampleRule::kSame;
      found = true;
      continue;
    }
    if ((axis.from > 1 && axis.source_stride % unit != 0) || (axis.to > 1 && axis.target_stride % unit != 0))
      return std::nullopt;
    axis.source_stride /= unit;
    axis.target_stride /= unit;
  }
  if (!found) return std::nullopt;
  return units;
}

class ResampleCopyCuda final : public Kernel {
 public:
  explicit ResampleCopyCuda(const ResampleProblem& problem)
      : type_(problem.type), parameters_{nullptr, nullptr, DeviceTargets(problem)} {
    if (const auto units = InUnits(problem)) units_ = CopyParameters{nullptr, nullptr, DeviceTargets(*units)};
  }

  Status Run(const KernelArguments& arguments) const override {
    const uint64_t addresses = AddressOf(arguments.inputs[0].data) | AddressOf(arguments.outputs[0].data);
    const bool in_units = units_ && addresses % sizeof(uint4) == 0;
    CopyParameters p = in_units ? *units_ : parameters_;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    const uint64_t blocks =
        (uint64_t{p.targets.count} + kCopyThreads * kPerThread - 1) / (kCopyThreads * kPerThread);
    KernelChain chain(arguments.stream);
    if (in_units) {
      chain.Launch(CopyNearest<uint4>, blocks, kCopyThreads, p);
      return {};
    }
    DispatchByWidth(type_, [&]<typename T>() {
      if constexpr (sizeof(T) <= 4) chain.Launch(CopyNearest<T>, blocks, kCopyThreads, p);
    });
    return {};
  }

 private:
  DataType type_;
  CopyParameters parameters_;
  std::optional<CopyParameters> units_;
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
