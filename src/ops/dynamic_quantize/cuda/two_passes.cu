#include <algorithm>

#include <cuda_fp16.h>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/nest.h"
#include "ops/dynamic_quantize/two_passes.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 512;

struct Parameters {
  const void* input;
  Range* ranges;  // one per block
  uint32_t blocks;
  uint32_t elements;
  bool is_half;
  bool contiguous;
  DataType quantized;
  float* scale;
  uint8_t* zero_point;
  DeviceNest<1> nest;
};

__device__ Range Merge(Range a, Range b) {
  return {b.min < a.min ? b.min : a.min, b.max > a.max ? b.max : a.max};
}

// Over all threads, into thread 0.
__device__ Range MergeBlock(Range range) {
  __shared__ Range warps[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    range = Merge(range,
                  {__shfl_down_sync(~0u, range.min, distance), __shfl_down_sync(~0u, range.max, distance)});
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = range;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (uint32_t w = 1; w < kThreads / 32; ++w) range = Merge(range, warps[w]);
  }
  return range;
}

// Comparisons with NaN are false.
__device__ void Include(Range* range, float x) {
  if (x < range->min) range->min = x;
  if (x > range->max) range->max = x;
}

__device__ float ElementAt(const Parameters& p, uint64_t offset) {
  if (p.is_half) return __half2float(static_cast<const __half*>(p.input)[offset]);
  return static_cast<const float*>(p.input)[offset];
}

// Words of four bytes of a contiguous tensor: one number or two.
__device__ void IncludeWord(const Parameters& p, Range* range, uint32_t word) {
  if (p.is_half) {
    Include(range, __half2float(__ushort_as_half(static_cast<uint16_t>(word))));
    Include(range, __half2float(__ushort_as_half(static_cast<uint16_t>(word >> 16))));
  } else {
    Include(range, __uint_as_float(word));
  }
}

__global__ void __launch_bounds__(kThreads) FindRanges(const __grid_constant__ Parameters p) {
  Range range;
  const uint64_t first = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  if (p.contiguous) {
    const uint32_t per_unit = p.is_half ? 8 : 4;
    const uint64_t units = p.elements / per_unit;
    for (uint64_t i = first; i < units; i += step) {
      const uint4 unit = static_cast<const uint4*>(p.input)[i];
      for (const uint32_t word : {unit.x, unit.y, unit.z, unit.w}) IncludeWord(p, &range, word);
    }
    const uint64_t tail = units * per_unit + first;
    if (tail < p.elements) Include(&range, ElementAt(p, tail));
  } else {
    for (uint64_t i = first; i < p.elements; i += step) {
      uint64_t offsets[1];
      p.nest.OffsetsOf(static_cast<uint32_t>(i), offsets);
      Include(&range, ElementAt(p, offsets[0]));
    }
  }
  range = MergeBlock(range);
  if (threadIdx.x == 0) p.ranges[blockIdx.x] = range;
}

__global__ void __launch_bounds__(kThreads) FindParameters(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  Range range;
  for (uint32_t i = threadIdx.x; i < p.blocks; i += kThreads) range = Merge(range, p.ranges[i]);
  range = MergeBlock(range);
  if (threadIdx.x != 0) return;
  const QuantizationParameters found = ParametersOf(range, p.quantized);
  *p.scale = found.scale;
  *p.zero_point = static_cast<uint8_t>(static_cast<int32_t>(found.zero_point));
}

class TwoPassesCuda final : public TwoPassesKernel {
 public:
  TwoPassesCuda(const DynamicQuantizeProblem& problem, LoweredOperator quantize, const LowerContext& context)
      : TwoPassesKernel(std::move(quantize)) {
    const TensorDesc& input = problem.input;
    LoopNest<1> nest;
    for (uint32_t d = 0; d < input.rank; ++d) nest.Append(input.sizes[d], {input.strides[d]});
    nest = SortedByStride(nest, 0);
    common_.elements = static_cast<uint32_t>(ElementCount(input));
    common_.is_half = input.type == DataType::kFloat16;
    contiguous_ = nest.rank == 0 || (nest.rank == 1 && nest.loops[0].strides[0] == 1);
    common_.quantized = problem.quantized;
    common_.nest = DeviceNest<1>(nest);
    const uint64_t wanted = (uint64_t{common_.elements} + 8 * kThreads - 1) / (8 * kThreads);
    common_.blocks =
        static_cast<uint32_t>(std::min<uint64_t>(wanted, uint64_t{4} * context.device->multiprocessors));
    ranges_ = AddScratch("ranges", common_.blocks * sizeof(Range));
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.contiguous = contiguous_ && reinterpret_cast<uintptr_t>(p.input) % sizeof(uint4) == 0;
    p.ranges = ranges_.In<Range>(arguments.temporary);
    p.scale = reinterpret_cast<float*>(arguments.outputs[1].data);
    p.zero_point = reinterpret_cast<uint8_t*>(arguments.outputs[2].data);
    KernelChain chain(arguments.stream);
    chain.Launch(FindRanges, p.blocks, kThreads, p);
    chain.Launch(FindParameters, 1, kThreads, p);
    return RunQuantize(arguments);
  }

 private:
  Parameters common_{};  // without addresses
  bool contiguous_;
  ScratchLayout::Piece ranges_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateDynamicQuantizeCuda(const DynamicQuantizeProblem& problem,
                                                        const LowerContext& context, std::string* why_not) {
  return CreateTwoPasses<TwoPassesCuda>(problem, context, why_not);
}

}  // namespace anydml
