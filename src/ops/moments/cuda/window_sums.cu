#include <algorithm>

#include <cuda_fp16.h>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/nest.h"
#include "ops/moments/window_sums.h"

namespace anydml {
namespace {

constexpr uint32_t kWindowThreads = 256;

struct WindowParameters {
  const void* input;
  float* output;
  uint32_t elements;
  uint32_t before, after;
  bool is_half;
  bool squares;
  FastDivisor inside;  // number of elements in the dimensions after the axis
  FastDivisor size;    // of the axis
  uint64_t stride;     // of the axis
  DeviceNest<1> nest;
};

__device__ float TermAt(const WindowParameters& p, uint64_t offset) {
  const float x = p.is_half ? __half2float(static_cast<const __half*>(p.input)[offset])
                            : static_cast<const float*>(p.input)[offset];
  return p.squares ? x * x : x;
}

__global__ void __launch_bounds__(kWindowThreads) SumWindows(const __grid_constant__ WindowParameters p) {
  const uint64_t step = uint64_t{gridDim.x} * kWindowThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kWindowThreads + threadIdx.x; i < p.elements; i += step) {
    const auto element = static_cast<uint32_t>(i);
    uint64_t offsets[1];
    p.nest.OffsetsOf(element, offsets);
    uint32_t at, rest;
    p.size.Divide(p.inside.Divide(element, &rest), &at);
    const uint32_t before = min(at, p.before);
    const uint32_t after = min(p.size.divisor() - 1 - at, p.after);
    const uint64_t first = offsets[0] - before * p.stride;
    float sum = 0;
    for (uint32_t k = 0; k <= before + after; ++k) sum += TermAt(p, first + k * p.stride);
    p.output[i] = sum;
  }
}

class WindowSumsCuda final : public Kernel {
 public:
  explicit WindowSumsCuda(const WindowSumsProblem& problem) {
    const TensorDesc& input = problem.input;
    LoopNest<1> nest;
    uint64_t inside = 1;
    for (uint32_t d = 0; d < input.rank; ++d) {
      nest.Append(input.sizes[d], {input.strides[d]});
      if (d > problem.axis) inside *= input.sizes[d];
    }
    common_.elements = static_cast<uint32_t>(ElementCount(input));
    common_.before = problem.before;
    common_.after = problem.after;
    common_.is_half = input.type == DataType::kFloat16;
    common_.squares = problem.squares;
    common_.inside = FastDivisor(static_cast<uint32_t>(inside));
    common_.size = FastDivisor(input.sizes[problem.axis]);
    common_.stride = input.strides[problem.axis];
    common_.nest = DeviceNest<1>(nest);
    blocks_ = std::min<uint64_t>((uint64_t{common_.elements} + kWindowThreads - 1) / kWindowThreads, 1 << 20);
  }

  Status Run(const KernelArguments& arguments) const override {
    WindowParameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = reinterpret_cast<float*>(arguments.outputs[0].data);
    KernelChain(arguments.stream).Launch(SumWindows, blocks_, kWindowThreads, p);
    return {};
  }

 private:
  WindowParameters common_{};  // without addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateWindowSumsCuda(const WindowSumsProblem& problem, const LowerContext&,
                                                   std::string*) {
  return std::make_unique<WindowSumsCuda>(problem);
}

}  // namespace anydml
