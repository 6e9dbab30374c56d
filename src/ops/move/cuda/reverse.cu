// A thread per element.
#include "base/dispatch.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/nest.h"
#include "ops/move/reverse.h"

namespace anydml {
namespace {

enum Operand { kInput, kLengths, kOutput, kIndex };  // kIndex: the coordinate along the axis
constexpr uint32_t kReverseThreads = 256;

struct ReverseParameters {
  const void* input;
  const void* lengths;
  void* output;
  uint32_t elements;
  uint32_t size;  // of the axis
  uint64_t input_stride;
  bool long_lengths;
  DeviceNest<4> nest;
};

template <typename T>
__global__ void __launch_bounds__(kReverseThreads)
    ReverseKernel(const __grid_constant__ ReverseParameters p) {
  const uint64_t number = uint64_t{blockIdx.x} * kReverseThreads + threadIdx.x;
  if (number >= p.elements) return;
  uint64_t offsets[4];
  p.nest.OffsetsOf(static_cast<uint32_t>(number), offsets);
  uint64_t length = p.long_lengths ? static_cast<const uint64_t*>(p.lengths)[offsets[kLengths]]
                                   : static_cast<const uint32_t*>(p.lengths)[offsets[kLengths]];
  if (length > p.size) length = p.size;
  const uint64_t from = offsets[kInput] + ReversedIndex(offsets[kIndex], length) * p.input_stride;
  static_cast<T*>(p.output)[offsets[kOutput]] = static_cast<const T*>(p.input)[from];
}

class ReverseCuda final : public Kernel {
 public:
  explicit ReverseCuda(const ReverseProblem& problem) : type_(problem.input.type) {
    LoopNest<4> nest;
    for (uint32_t d = 0; d < problem.input.rank; ++d) {
      const bool along = d == problem.axis;
      nest.Append(problem.input.sizes[d],
                  {along ? 0 : problem.input.strides[d], along ? 0 : problem.lengths.strides[d],
                   problem.output.strides[d], along ? 1u : 0u});
    }
    nest = SortedByStride(nest, kOutput);
    parameters_.elements = static_cast<uint32_t>(Iterations(nest));
    parameters_.size = problem.input.sizes[problem.axis];
    parameters_.input_stride = problem.input.strides[problem.axis];
    parameters_.long_lengths = problem.lengths.type == DataType::kUInt64;
    parameters_.nest = DeviceNest<4>(nest);
  }

  Status Run(const KernelArguments& arguments) const override {
    ReverseParameters parameters = parameters_;
    parameters.input = arguments.inputs[0].data;
    parameters.lengths = arguments.inputs[1].data;
    parameters.output = arguments.outputs[0].data;
    KernelChain chain(arguments.stream);
    const uint64_t blocks = (uint64_t{parameters.elements} + kReverseThreads - 1) / kReverseThreads;
    DispatchByWidth(
        type_, [&]<typename T>() { chain.Launch(ReverseKernel<T>, blocks, kReverseThreads, parameters); });
    return {};
  }

 private:
  DataType type_;
  ReverseParameters parameters_ = {};
};

}  // namespace

std::unique_ptr<const Kernel> CreateReverseCuda(const ReverseProblem& problem, const LowerContext&,
                                                std::string*) {
  return std::make_unique<ReverseCuda>(problem);
}

}  // namespace anydml
