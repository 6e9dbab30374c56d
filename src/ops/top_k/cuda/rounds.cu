// cuda.rounds: one block per sequence, for problems that no other implementation takes.
#include "ops/top_k/cuda/launch.h"
#include "ops/top_k/cuda/rounds.cuh"

namespace anydml {
namespace {

constexpr int kThreads = 1024;
constexpr uint32_t kCapacity = 4096;

template <int kBytes>
__global__ void __launch_bounds__(kThreads) Rounds(const __grid_constant__ CudaSequences all) {
  using Select = BlockSelect<LongWords<kBytes>, kThreads, 4 * kThreads>;
  __shared__ typename Select::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  for (uint64_t s = blockIdx.x; s < all.count; s += gridDim.x) {
    SelectInRounds<kBytes, Select, kThreads>(CudaSequence<kBytes>(all, s), all.k, Select(&shared, all.order),
                                             reinterpret_cast<WordFor<kBytes>*>(dynamic), kCapacity);
  }
}

template <int kBytes>
class TopKRounds final : public Kernel {
 public:
  static constexpr uint32_t kSharedBytes = 2 * kCapacity * sizeof(WordFor<kBytes>);

  explicit TopKRounds(const TopKProblem& problem) : sequences_(CudaSequencesOf(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    const auto blocks = static_cast<uint32_t>(std::min<uint64_t>(sequences_.count, 1u << 20));
    Rounds<kBytes><<<blocks, kThreads, kSharedBytes, static_cast<cudaStream_t>(arguments.stream)>>>(
        Bind(sequences_, arguments));
    return {};
  }

 private:
  CudaSequences sequences_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaRounds(const TopKProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  return DispatchBySize(problem.input.type, [&]<int kBytes>() -> std::unique_ptr<const Kernel> {
    if (!AllowSharedMemory(*context.device, Rounds<kBytes>, TopKRounds<kBytes>::kSharedBytes, why_not))
      return nullptr;
    return std::make_unique<TopKRounds<kBytes>>(problem);
  });
}

}  // namespace anydml
