// cuda.rounds: one block per sequence, for problems that no other implementation takes.
#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/rounds.cuh"
#include "ops/top_k/plan.h"

namespace anydml {
namespace {

constexpr int kThreads = kTopKRoundThreads;

template <int kBytes>
__global__ void __launch_bounds__(kThreads) Rounds(const __grid_constant__ TopKSequences all) {
  using Select = BlockSelect<LongWords<kBytes>, kThreads, 4 * kThreads>;
  __shared__ typename Select::Shared shared;
  extern __shared__ __align__(16) unsigned char dynamic[];
  for (uint64_t s = blockIdx.x; s < all.count; s += gridDim.x) {
    SelectInRounds<kBytes, Select, kThreads>(CudaSequence<kBytes>(all, s), all.k, Select(&shared, all.order),
                                             reinterpret_cast<WordFor<kBytes>*>(dynamic), kTopKRoundCapacity);
  }
}

template <int kBytes>
class TopKRounds final : public Kernel {
 public:
  static_assert(sizeof(WordFor<kBytes>) == CandidateBytes(kBytes));

  explicit TopKRounds(const TopKRoundsPlan& plan) : plan_(plan) {}

  Status Run(const KernelArguments& arguments) const override {
    const Grid& grid = plan_.grid;
    Rounds<kBytes><<<static_cast<uint32_t>(grid.blocks), grid.threads, grid.shared_bytes,
                     static_cast<cudaStream_t>(arguments.stream)>>>(Bind(plan_.sequences, arguments));
    return {};
  }

 private:
  TopKRoundsPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaRounds(const TopKProblem& problem, const LowerContext& context,
                                                   std::string* why_not) {
  return DispatchBySize(problem.input.type, [&]<int kBytes>() -> std::unique_ptr<const Kernel> {
    const TopKRoundsPlan plan = MakeTopKRoundsPlan(problem);
    if (!AllowSharedMemory(*context.device, Rounds<kBytes>, plan.grid.shared_bytes, why_not)) return nullptr;
    return std::make_unique<TopKRounds<kBytes>>(plan);
  });
}

}  // namespace anydml
