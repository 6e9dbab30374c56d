// Sums of any number of elements in up to four dimensions, a thread each; also gradients.
#include "ops/device/cuda/float_elements.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/resample/cuda/targets.cuh"
#include "ops/resample/taps.h"

namespace anydml {
namespace {

// What a number of the target takes in one level.
template <bool kGradient>
struct LevelTaps;

template <>
struct LevelTaps<false> {
  Taps taps;

  __device__ LevelTaps(const ResampleAxis& axis, uint32_t at) : taps(TapsOf(axis, at)) {}
  __device__ uint32_t first() const { return taps.first; }
  __device__ uint32_t count() const { return taps.count; }
  __device__ float Weight(const ResampleAxis& axis, uint32_t k) const { return WeightOf(axis, taps, k); }
};

template <>
struct LevelTaps<true> {
  uint32_t index;
  TakerRange takers;

  __device__ LevelTaps(const ResampleAxis& axis, uint32_t at) : index(at), takers(TakersOf(axis, at)) {}
  __device__ uint32_t first() const { return takers.first; }
  __device__ uint32_t count() const { return takers.count; }
  __device__ float Weight(const ResampleAxis& axis, uint32_t k) const {
    return WeightBetween(axis, takers.first + k, index);
  }
};

template <bool kGradient, uint32_t kLevel>
__device__ float SumOf(const ResampleSumParameters& p, const LevelTaps<kGradient> (&taps)[kMaxLevels],
                       uint64_t offset) {
  if constexpr (kLevel == kMaxLevels) {
    return LoadNumber(p.source, offset, p.type);
  } else {
    const ResampleAxis& axis = p.targets.levels[kLevel];
    const LevelTaps<kGradient>& own = taps[kLevel];
    float sum = 0;
    bool is_first = true;
    for (uint32_t k = 0; k < own.count(); ++k) {
      const float weight = own.Weight(axis, k);
      if (weight == 0) continue;
      const uint64_t at = offset + uint64_t{own.first() + k} * axis.source_stride;
      const float product = SumOf<kGradient, kLevel + 1>(p, taps, at) * weight;
      sum = is_first ? product : sum + product;
      is_first = false;
    }
    return sum;
  }
}

template <bool kGradient>
__global__ void __launch_bounds__(kResampleSumThreads)
    ComputeSums(const __grid_constant__ ResampleSumParameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kResampleSumThreads + threadIdx.x;
  if (number >= p.targets.count) return;
  const TargetPlace place = PlaceOf(p.targets, static_cast<uint32_t>(number));
  using Level = LevelTaps<kGradient>;
  const Level taps[kMaxLevels] = {
      Level(p.targets.levels[0], place.at[0]), Level(p.targets.levels[1], place.at[1]),
      Level(p.targets.levels[2], place.at[2]), Level(p.targets.levels[3], place.at[3])};
  StoreNumber(p.target, place.target, p.type, SumOf<kGradient, 0>(p, taps, place.source));
}

class ResampleSumsCuda final : public Kernel {
 public:
  explicit ResampleSumsCuda(const ResampleProblem& problem)
      : gradient_(problem.gradient), plan_(MakeResampleSumsPlan(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    ResampleSumParameters p = plan_.parameters;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    chain.Launch(gradient_ ? ComputeSums<true> : ComputeSums<false>, plan_.grid, p);
    return {};
  }

 private:
  bool gradient_;
  ResampleSumsPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleSumsCuda(const ResampleProblem& problem, const LowerContext&,
                                                     std::string* why_not) {
  if (IsNearest(problem)) {
    *why_not = "elements are only moved";
    return nullptr;
  }
  return std::make_unique<ResampleSumsCuda>(problem);
}

}  // namespace anydml
