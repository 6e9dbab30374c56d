// Softmax over any layout: a block takes some sets, each with some threads, and reads everything twice.
#include <algorithm>
#include <bit>

#include "ops/reduce/cuda/device.cuh"
#include "ops/softmax/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kSetThreads = 256;

struct SetParameters {
  const void* input;
  void* output;
  DeviceNest<2> sets;
  DeviceNest<2> elements;
  uint32_t set_count;
  uint32_t element_count;  // of each set
  uint32_t columns;        // sets of a block
  uint32_t lanes;          // threads for each, a power of two
  bool lanes_first;        // neighbouring threads belong to one set
  bool is_log;
  DataType type;
};

__global__ void __launch_bounds__(kSetThreads) SoftmaxSets(const __grid_constant__ SetParameters p) {
  using reduce::LogSumExp;
  __shared__ LogSumExp shared[kSetThreads];
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
  explicit SoftmaxCuda(const SoftmaxProblem& problem) {
    const SoftmaxNests nests = NestsOf(problem);
    common_.sets = DeviceNest<2>(nests.sets);
    common_.elements = DeviceNest<2>(nests.elements);
    common_.set_count = static_cast<uint32_t>(Iterations(nests.sets));
    common_.element_count = static_cast<uint32_t>(Iterations(nests.elements));
    common_.is_log = problem.kind == SoftmaxKind::kLogSoftmax;
    common_.type = problem.input.type;
    const auto& sets = nests.sets;
    const auto& elements = nests.elements;
    common_.lanes_first =
        elements.rank > 0 && (sets.rank == 0 || elements.loops[elements.rank - 1].strides[0] <=
                                                    sets.loops[sets.rank - 1].strides[0]);
    const uint32_t most = common_.lanes_first ? kSetThreads : 8;
    common_.lanes = std::bit_ceil(std::min(common_.element_count, most));
    common_.columns = kSetThreads / common_.lanes;
  }

  Status Run(const KernelArguments& arguments) const override {
    SetParameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    KernelChain(arguments.stream).Launch(SoftmaxSets, CeilDivide(p.set_count, p.columns), kSetThreads, p);
    return {};
  }

 private:
  SetParameters common_{};  // but for addresses
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
