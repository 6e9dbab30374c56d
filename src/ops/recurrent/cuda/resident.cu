#include "ops/recurrent/cuda/resident.cuh"

#include <cuda_runtime.h>

#include "ops/device/cuda/launch.h"
#include "ops/recurrent/cuda/whole.cuh"

namespace anydml {
namespace {

using namespace recurrent_cuda;

constexpr uint64_t kMaxUnits = 8192;  // far more than fit into shared memory
constexpr uint64_t kMaxBatch = 32;

template <uint32_t kBatch>
__global__ void __launch_bounds__(kResidentThreads, 1) RunResident(const __grid_constant__ Resident p) {
  extern __shared__ float4 shared[];
  ResidentBlock<kBatch>(p, reinterpret_cast<float*>(shared)).Run();
}

using ResidentKernel = void (*)(Resident);

struct Launch {
  ResidentKernel kernel;
  uint64_t shared_bytes;
};

template <uint32_t kBatch>
Launch LaunchOf(const Resident& p) {
  return {RunResident<kBatch>, SharedLayout<kBatch>(p).total * sizeof(float)};
}

// The smallest tiles that contain the batch.
Launch FindLaunch(const Resident& p) {
  return p.batch <= 8 ? LaunchOf<8>(p) : p.batch <= 16 ? LaunchOf<16>(p) : LaunchOf<32>(p);
}

class RecurrentResident final : public WholeRecurrence {
 public:
  explicit RecurrentResident(const RecurrentProblem& problem) : WholeRecurrence(problem) {}

  // To be called once, before anything else; false, with the reason, on failure.
  bool Create(const LowerContext& context, std::string* why_not) {
    if (has_row_functions() || problem().units > kMaxUnits || problem().batch > kMaxBatch) {
      *why_not = StrCat("it does up to ", kMaxUnits, " units, a batch of up to ", kMaxBatch,
                        " and activations of single numbers");
      return false;
    }
    Plan(context.device->multiprocessors);
    launch_ = FindLaunch(common_);
    if (!AllowSharedMemory(*context.device, launch_.kernel, launch_.shared_bytes, why_not)) return false;
    const uint32_t most = BlocksAtOnce(*context.device, launch_.kernel, kResidentThreads,
                                       static_cast<uint32_t>(launch_.shared_bytes), why_not);
    if (most < blocks()) {
      if (most > 0) *why_not = StrCat("it needs ", blocks(), " blocks at once, ", most, " fit");
      return false;
    }
    return AddParts(context, why_not);
  }

  Status Run(const KernelArguments& arguments) const override {
    ANYDML_RETURN_IF_ERROR(RunInputProduct(arguments));
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const Buffer arrived = arrived_.In(arguments.temporary);
    cudaMemsetAsync(arrived.data, 0, arrived.size, stream);
    LaunchTogether(launch_.kernel, blocks(), kResidentThreads, static_cast<uint32_t>(launch_.shared_bytes),
                   stream, ParametersOf(arguments));
    return {};
  }

 private:
  uint32_t blocks() const { return common_.directions * common_.blocks_per_direction; }

  void Plan(uint32_t multiprocessors) {
    Resident& p = common_;
    static_cast<Cell&>(p) = CellOf(problem());
    p.unit_stride = (p.units + 3) / 4 * 4;
    const uint32_t most_blocks = std::max(1u, multiprocessors / p.directions);
    p.block_units = static_cast<uint32_t>(CeilDivide(p.units, most_blocks));
    p.blocks_per_direction = static_cast<uint32_t>(CeilDivide(p.units, p.block_units));
  }

  bool AddParts(const LowerContext& context, std::string* why_not) {
    if (!AddInputProduct(context, why_not)) return false;
    const uint64_t state_bytes =
        problem().directions * problem().batch * uint64_t{common_.unit_stride} * sizeof(float);
    hidden_ = AddScratch("hidden state, before and after", 2 * state_bytes);
    reset_ = AddScratch("reset state", problem().resets_first() ? state_bytes : 0);
    arrived_ = AddScratch("blocks that have arrived", 2 * sizeof(uint32_t));
    return true;
  }

  Resident ParametersOf(const KernelArguments& arguments) const {
    Resident p = common_;
    SetAddresses(arguments, &p);
    p.hidden = hidden_.In<float>(arguments.temporary);
    p.reset = reset_.In<float>(arguments.temporary);
    p.arrived = arrived_.In<uint32_t>(arguments.temporary);
    return p;
  }

  Resident common_{};  // without addresses
  Launch launch_{};
  ScratchLayout::Piece hidden_, reset_, arrived_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentResident(const RecurrentProblem& problem,
                                                      const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<RecurrentResident>(problem);
  if (!kernel->Create(context, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
