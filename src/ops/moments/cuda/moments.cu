#include <algorithm>
#include <bit>

#include <cuda_fp16.h>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/nest.h"
#include "ops/moments/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 512;
constexpr uint32_t kAtOnce = 8;  // independent loads per thread

struct Parameters {
  const void* input;
  const void* gradient;
  const void* center;
  float* results[2];
  uint32_t sets;
  uint32_t elements;  // per set
  bool is_half;
  bool has_gradient;
  uint32_t passes;
  MomentPass pass[2];
  // A block processes several sets at a time, each with some threads (`lanes`, a power of 2): either the
  // threads of a set are neighbours, or those at the same place of neighbouring sets.
  uint32_t sets_of_block;
  uint32_t lanes;
  bool neighbouring_sets;
  // If there are few sets, blocks sum slices of them: the sums of pass 0, then of pass 1, slice by slice.
  uint32_t slices;
  double* partial;
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

// The sum over the threads of a set, returned to all of them. All threads of the block must call it.
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

// A thread's place in its block.
struct Place {
  uint32_t lane;  // among the threads of the set
  uint32_t set;   // among the sets of the block
  uint32_t step;  // to the next lane's thread
};

__device__ Place PlaceOf(const Parameters& p) {
  if (p.neighbouring_sets) {
    return {threadIdx.x / p.sets_of_block, threadIdx.x % p.sets_of_block, p.sets_of_block};
  }
  return {threadIdx.x % p.lanes, threadIdx.x / p.lanes, 1};
}

// Over elements i, i + lanes, ... below `end`.
__device__ double SumOfThread(const Parameters& p, MomentTerm term, const uint64_t (&set)[4], uint64_t i,
                              uint64_t end, float center) {
  double sum = 0;
  for (; i + (kAtOnce - 1) * p.lanes < end; i += kAtOnce * p.lanes) {
    float terms[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      terms[k] = TermAt(p, term, set, static_cast<uint32_t>(i + k * p.lanes), center);
    }
#pragma unroll
    for (uint32_t distance = kAtOnce / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (uint32_t k = 0; k < distance; ++k) terms[k] += terms[k + distance];
    }
    sum += terms[0];
  }
  for (; i < end; i += p.lanes) sum += TermAt(p, term, set, static_cast<uint32_t>(i), center);
  return sum;
}

__device__ float ResultOf(const Parameters& p, uint32_t pass, double total) {
  return static_cast<float>(p.pass[pass].is_mean ? total / p.elements : total);
}

__global__ void __launch_bounds__(kThreads) FindMoments(const __grid_constant__ Parameters p) {
  const Place place = PlaceOf(p);
  for (uint64_t first = uint64_t{blockIdx.x} * p.sets_of_block; first < p.sets;
       first += uint64_t{gridDim.x} * p.sets_of_block) {
    const uint64_t set = first + place.set;
    const bool exists = set < p.sets;
    uint64_t offsets[4] = {};
    if (exists) p.kept.OffsetsOf(static_cast<uint32_t>(set), offsets);
    float center = exists && p.has_gradient ? ElementAt(p, p.center, offsets[2]) : 0;
    for (uint32_t pass = 0; pass < p.passes; ++pass) {
      const double sum =
          exists ? SumOfThread(p, p.pass[pass].term, offsets, place.lane, p.elements, center) : 0;
      const float result = ResultOf(p, pass, SumOfLanes(sum, place.lane, p.lanes, place.step));
      if (exists && place.lane == 0) p.results[pass][offsets[3]] = result;
      if (!p.has_gradient) center = result;
    }
  }
}

__device__ double TotalOfSlices(const Parameters& p, uint32_t pass, uint32_t set) {
  double total = 0;
  for (uint32_t slice = 0; slice < p.slices; ++slice) {
    total += p.partial[(uint64_t{pass} * p.slices + slice) * p.sets + set];
  }
  return total;
}

template <uint32_t kPass>
__global__ void __launch_bounds__(kThreads) SumSlices(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  const Place place = PlaceOf(p);
  const uint32_t slice = blockIdx.x % p.slices;
  const uint64_t set = uint64_t{blockIdx.x / p.slices} * p.sets_of_block + place.set;
  const bool exists = set < p.sets;
  double sum = 0;
  if (exists) {
    uint64_t offsets[4];
    p.kept.OffsetsOf(static_cast<uint32_t>(set), offsets);
    float center = 0;
    if (p.has_gradient) {
      center = ElementAt(p, p.center, offsets[2]);
    } else if (kPass == 1) {
      center = ResultOf(p, 0, TotalOfSlices(p, 0, static_cast<uint32_t>(set)));
    }
    const uint64_t begin = uint64_t{p.elements} * slice / p.slices;
    const uint64_t end = uint64_t{p.elements} * (slice + 1) / p.slices;
    sum = SumOfThread(p, p.pass[kPass].term, offsets, begin + place.lane, end, center);
  }
  sum = SumOfLanes(sum, place.lane, p.lanes, place.step);
  if (exists && place.lane == 0) p.partial[(uint64_t{kPass} * p.slices + slice) * p.sets + set] = sum;
}

__global__ void __launch_bounds__(kThreads) AddSlices(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  const uint64_t set = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (set >= p.sets) return;
  uint64_t offsets[4];
  p.kept.OffsetsOf(static_cast<uint32_t>(set), offsets);
  for (uint32_t pass = 0; pass < p.passes; ++pass) {
    p.results[pass][offsets[3]] = ResultOf(p, pass, TotalOfSlices(p, pass, static_cast<uint32_t>(set)));
  }
}

// The number of blocks that share a set, so that all multiprocessors have work. `blocks`: without sharing.
uint32_t SlicesOf(uint64_t blocks, uint64_t elements_of_thread, const LowerContext& context) {
  const uint64_t wanted = 2 * uint64_t{context.device->multiprocessors} / blocks;
  return static_cast<uint32_t>(std::clamp<uint64_t>(std::min(wanted, elements_of_thread / 16), 1, 64));
}

class MomentsCuda final : public Kernel {
 public:
  MomentsCuda(const MomentsProblem& problem, const LowerContext& context) {
    const LoopNest<4> kept = KeptNest(problem);
    const LoopNest<2> reduced = ReducedNest(problem);
    common_.sets = static_cast<uint32_t>(KeptElements(problem.input, problem.reduced));
    common_.elements = static_cast<uint32_t>(ReducedElements(problem.input, problem.reduced));
    common_.is_half = problem.input.type == DataType::kFloat16;
    common_.has_gradient = problem.has_gradient();
    common_.passes = problem.passes();
    for (uint32_t i = 0; i < common_.passes; ++i) common_.pass[i] = problem.pass(i);
    common_.neighbouring_sets = SetsAreNeighbours(kept, reduced);
    const uint64_t wanted = (uint64_t{common_.elements} + 3) / 4;  // elements per thread: at least 4
    common_.lanes = static_cast<uint32_t>(
        std::bit_ceil(std::min<uint64_t>(wanted, common_.neighbouring_sets ? kThreads / 32 : kThreads)));
    common_.sets_of_block = kThreads / common_.lanes;
    common_.kept = DeviceNest<4>(kept);
    common_.reduced = DeviceNest<2>(reduced);
    blocks_ = (uint64_t{common_.sets} + common_.sets_of_block - 1) / common_.sets_of_block;
    common_.slices = SlicesOf(blocks_, common_.elements / common_.lanes, context);
  }

  uint64_t temporary_bytes() const override {
    if (common_.slices == 1) return 0;
    return uint64_t{common_.passes} * common_.slices * common_.sets * sizeof(double);
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
    KernelChain chain(arguments.stream);
    if (p.slices == 1) {
      chain.Launch(FindMoments, std::min<uint64_t>(blocks_, 1 << 20), kThreads, p);
      return {};
    }
    p.partial = reinterpret_cast<double*>(arguments.temporary.data);
    chain.Launch(SumSlices<0>, blocks_ * p.slices, kThreads, p);
    if (p.passes == 2) chain.Launch(SumSlices<1>, blocks_ * p.slices, kThreads, p);
    chain.Launch(AddSlices, (uint64_t{p.sets} + kThreads - 1) / kThreads, kThreads, p);
    return {};
  }

 private:
  Parameters common_{};  // without addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMomentsCuda(const MomentsProblem& problem, const LowerContext& context,
                                                std::string*) {
  return std::make_unique<MomentsCuda>(problem, context);
}

}  // namespace anydml
