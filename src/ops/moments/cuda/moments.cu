#include <algorithm>
#include <bit>

#include <cuda_fp16.h>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/moments/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 512;
constexpr uint32_t kAddedInFloat = 64;  // numbers of a thread before their sum goes to a wider one

struct Parameters {
  const void* input;
  const void* gradient;
  const void* center;
  float* results[2];
  uint32_t sets;
  uint32_t elements;  // of a set
  bool is_half;
  bool has_gradient;
  uint32_t passes;
  MomentPass pass[2];
  // A block does some sets at a time, with some threads (`lanes`, a power of 2) for each: those of a set are
  // neighbours, or those that are at the same place of neighbouring sets.
  uint32_t sets_of_block;
  uint32_t lanes;
  bool neighbouring_sets;
  DeviceNest<4> kept;
  DeviceNest<2> reduced;
};

__device__ float ElementAt(const Parameters& p, const void* tensor, uint64_t offset) {
  if (p.is_half) return __half2float(static_cast<const __half*>(tensor)[offset]);
  return static_cast<const float*>(tensor)[offset];
}

__device__ float TermAt(const Parameters& p, MomentTerm term, const uint64_t (&set)[4], uint32_t element,
                        float center) {
  uint64_t at[2];
  p.reduced.OffsetsOf(element, at);
  const auto x = [&] { return ElementAt(p, p.input, set[0] + at[0]); };
  const auto gradient = [&] { return ElementAt(p, p.gradient, set[1] + at[1]); };
  switch (term) {
    case MomentTerm::kElement:
      return x();
    case MomentTerm::kMagnitude:
      return fabsf(x());
    case MomentTerm::kSquare: {
      const float distance = x() - center;
      return distance * distance;
    }
    case MomentTerm::kGradient:
      return gradient();
    default:
      return gradient() * (x() - center);
  }
}

// Of the threads of a set, in all of them. Called by all threads of the block.
__device__ double SumOfLanes(double sum, uint32_t lane, uint32_t lanes, uint32_t step) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (uint32_t half = lanes / 2; half > 0; half /= 2) {
    if (lane < half) sums[threadIdx.x] += sums[threadIdx.x + half * step];
    __syncthreads();
  }
  const double total = sums[threadIdx.x - lane * step];
  __syncthreads();
  return total;
}

__global__ void __launch_bounds__(kThreads) FindMoments(const __grid_constant__ Parameters p) {
  const uint32_t lane = p.neighbouring_sets ? threadIdx.x / p.sets_of_block : threadIdx.x % p.lanes;
  const uint32_t place = p.neighbouring_sets ? threadIdx.x % p.sets_of_block : threadIdx.x / p.lanes;
  const uint32_t step = p.neighbouring_sets ? p.sets_of_block : 1;
  for (uint64_t first = uint64_t{blockIdx.x} * p.sets_of_block; first < p.sets;
       first += uint64_t{gridDim.x} * p.sets_of_block) {
    const uint64_t set = first + place;
    const bool exists = set < p.sets;
    uint64_t offsets[4] = {};
    if (exists) p.kept.OffsetsOf(static_cast<uint32_t>(set), offsets);
    float center = exists && p.has_gradient ? ElementAt(p, p.center, offsets[2]) : 0;
    for (uint32_t pass = 0; pass < p.passes; ++pass) {
      double sum = 0;
      for (uint64_t i = lane; exists && i < p.elements;) {
        float in_float = 0;
        for (uint32_t k = 0; k < kAddedInFloat && i < p.elements; ++k, i += p.lanes) {
          in_float += TermAt(p, p.pass[pass].term, offsets, static_cast<uint32_t>(i), center);
        }
        sum += in_float;
      }
      const double total = SumOfLanes(sum, lane, p.lanes, step);
      const auto result = static_cast<float>(p.pass[pass].is_mean ? total / p.elements : total);
      if (exists && lane == 0) p.results[pass][offsets[3]] = result;
      if (!p.has_gradient) center = result;
    }
  }
}

class MomentsCuda final : public Kernel {
 public:
  explicit MomentsCuda(const MomentsProblem& problem) {
    const LoopNest<4> kept = KeptNest(problem);
    const LoopNest<2> reduced = ReducedNest(problem);
    common_.sets = static_cast<uint32_t>(KeptElements(problem.input, problem.reduced));
    common_.elements = static_cast<uint32_t>(ReducedElements(problem.input, problem.reduced));
    common_.is_half = problem.input.type == DataType::kFloat16;
    common_.has_gradient = problem.has_gradient();
    common_.passes = problem.passes();
    for (uint32_t i = 0; i < common_.passes; ++i) common_.pass[i] = problem.pass(i);
    common_.neighbouring_sets = SetsAreNeighbours(kept, reduced);
    const uint64_t wanted = (uint64_t{common_.elements} + 3) / 4;  // elements of a thread: 4 or more
    common_.lanes = static_cast<uint32_t>(
        std::bit_ceil(std::min<uint64_t>(wanted, common_.neighbouring_sets ? kThreads / 32 : kThreads)));
    common_.sets_of_block = kThreads / common_.lanes;
    common_.kept = DeviceNest<4>(kept);
    common_.reduced = DeviceNest<2>(reduced);
    blocks_ = std::min<uint64_t>((uint64_t{common_.sets} + common_.sets_of_block - 1) / common_.sets_of_block,
                                 1 << 20);
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    if (p.has_gradient) {
      p.gradient = arguments.inputs[1].data;
      p.center = arguments.inputs[2].data;
    }
    for (uint32_t i = 0; i < p.passes; ++i)
      p.results[i] = reinterpret_cast<float*>(arguments.outputs[i].data);
    KernelChain(arguments.stream).Launch(FindMoments, blocks_, kThreads, p);
    return {};
  }

 private:
  Parameters common_{};  // but for addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMomentsCuda(const MomentsProblem& problem, const LowerContext&,
                                                std::string*) {
  return std::make_unique<MomentsCuda>(problem);
}

}  // namespace anydml
