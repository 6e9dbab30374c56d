// Softmax over any layout: a block computes several sets, each with some threads, and reads everything twice.
#include "ops/device/cuda/reduce.cuh"
#include "ops/softmax/plan.h"

namespace anydml {
namespace {

__global__ void __launch_bounds__(kSoftmaxThreads)
    SoftmaxSets(const __grid_constant__ SoftmaxSetParameters p) {
  using reduce::LogSumExp;
  __shared__ LogSumExp shared[kSoftmaxThreads];
  const lane::Tag<float> d;
  const uint32_t column = p.lanes_first ? threadIdx.x / p.lanes : threadIdx.x % p.columns;
  const uint32_t lane = p.lanes_first ? threadIdx.x % p.lanes : threadIdx.x / p.columns;
  const uint64_t set = uint64_t{blockIdx.x} * p.columns + column;
  uint64_t start[2] = {};
  LogSumExp all = LogSumExp::Start();
  if (set < p.set_count) {
    p.sets.OffsetsOf(static_cast<uint32_t>(set), start);
#pragma unroll 4
    for (uint64_t i = lane; i < p.element_count; i += p.lanes) {
      uint64_t offsets[2];
      p.elements.OffsetsOf(static_cast<uint32_t>(i), offsets);
      all.Add(reduce::LoadAs<float>(p.input, p.type, start[0] + offsets[0]), 0);
    }
  }
  shared[column * p.lanes + lane] = all;
  for (uint32_t half = p.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) {
      all.Merge(shared[column * p.lanes + lane + half]);
      shared[column * p.lanes + lane] = all;
    }
  }
  __syncthreads();
  if (set >= p.set_count) return;
  all = shared[column * p.lanes];
  const bool finite = all.value < lane::kInfinity && all.value > -lane::kInfinity;
  const float sum = finite ? all.second : lane::kNan;
  const float log = lane::Log(d, sum), factor = lane::Div(1.0f, sum);
  for (uint64_t i = lane; i < p.element_count; i += p.lanes) {
    uint64_t offsets[2];
    p.elements.OffsetsOf(static_cast<uint32_t>(i), offsets);
    const float x = reduce::LoadAs<float>(p.input, p.type, start[0] + offsets[0]);
    const float difference = lane::Sub(x, all.value);
    const float y = p.is_log ? lane::Sub(difference, log) : lane::Mul(lane::Exp(d, difference), factor);
    reduce::StoreAs(p.output, p.type, start[1] + offsets[1], reduce::IsNan(y) ? lane::kNan : y);
  }
}

class SoftmaxCuda final : public Kernel {
 public:
  explicit SoftmaxCuda(const SoftmaxProblem& problem) : plan_(MakeSoftmaxSetsPlan(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    SoftmaxSetParameters p = plan_.parameters;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    KernelChain(arguments.stream).Launch(SoftmaxSets, plan_.grid, p);
    return {};
  }

 private:
  SoftmaxSetsPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateSoftmaxCuda(const SoftmaxProblem& problem, const LowerContext&,
                                                std::string* why_not) {
  if (problem.kind == SoftmaxKind::kHardmax) {
    *why_not = "is not for HARDMAX";
    return nullptr;
  }
  return std::make_unique<SoftmaxCuda>(problem);
}

}  // namespace anydml
