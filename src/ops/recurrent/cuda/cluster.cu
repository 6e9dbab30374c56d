#include "ops/recurrent/cuda/cluster.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <iterator>

#include "ops/device/cuda/launch.h"
#include "ops/recurrent/cuda/whole.cuh"

namespace anydml {
namespace {

using namespace recurrent_cuda;

constexpr uint64_t kMostBlocks = 16;  // per cluster
constexpr uint64_t kMaxUnits = kMostBlocks * kBlockUnits;
constexpr uint64_t kMaxBatch = 1 << 20;
constexpr uint32_t kPortableBlocks = 8;

template <uint32_t kBlocks, uint32_t kGroups>
__global__ void __launch_bounds__(kClusterThreads, 1) RunCluster(const __grid_constant__ Cell p) {
  __shared__ GroupState<kBlocks> states[kGroups];
  ClusterBlock<kBlocks, kGroups>(p, states).Run();
}

using ClusterKernel = void (*)(Cell);

struct ClusterLaunch {
  ClusterKernel kernel;
  uint32_t blocks;  // per cluster
  uint32_t groups;
};

template <uint32_t kGroups>
ClusterLaunch FindClusterLaunch(uint32_t units) {
  if (units <= 4 * kBlockUnits) return {RunCluster<4, kGroups>, 4, kGroups};
  if (units <= 8 * kBlockUnits) return {RunCluster<8, kGroups>, 8, kGroups};
  return {RunCluster<16, kGroups>, 16, kGroups};
}

// Its magnitude is never more than 1.
bool IsBounded(const CellActivation& activation) {
  using Function = ElementFunction;
  constexpr Function kBounded[] = {Function::kTanh, Function::kSigmoid, Function::kHardSigmoid,
                                   Function::kSoftsign};
  const auto& instructions = activation.program.instructions;
  return !instructions.empty() && std::find(std::begin(kBounded), std::end(kBounded),
                                            instructions.back().function) != std::end(kBounded);
}

// Whether the state fits into FLOAT16 for all inputs: GRU's is between the previous state and its bounded
// input.
bool StateIsBounded(const RecurrentProblem& problem) {
  using Function = ElementFunction;
  for (uint32_t direction = 0; direction < problem.directions; ++direction) {
    const auto& activations = problem.activations[direction];
    if (!IsBounded(activations[0]) || !IsBounded(activations[ActivationsOf(problem.kind) - 1])) return false;
    if (problem.kind != CellKind::kGru) continue;
    const Function z = activations[0].program.instructions.back().function;
    if (z != Function::kSigmoid && z != Function::kHardSigmoid) return false;
  }
  return true;
}

class RecurrentCluster final : public WholeRecurrence {
 public:
  explicit RecurrentCluster(const RecurrentProblem& problem) : WholeRecurrence(problem) {}

  // To be called once, before anything else; false, with the reason, on failure.
  bool Create(const LowerContext& context, std::string* why_not) {
    const RecurrentProblem& p = problem();
    if (p.type != DataType::kFloat16 || p.units > kMaxUnits || p.batch > kMaxBatch || p.resets_first() ||
        has_row_functions() || !StateIsBounded(p)) {
      *why_not = StrCat("it does FLOAT16, up to ", kMaxUnits, " units, a batch of up to ", kMaxBatch,
                        ", GRU with LinearBeforeReset, and activations that keep the state within 1");
      return false;
    }
    common_ = CellOf(p);
    launch_ = FindClusterLaunch<1>(common_.units);
    const uint32_t at_once = ClustersAtOnce(why_not);
    if (at_once == 0) return false;
    // Two groups take less than twice the time of one.
    if (clusters() > at_once) launch_ = FindClusterLaunch<2>(common_.units);
    return ClustersAtOnce(why_not) > 0 && AddInputProduct(context, why_not);
  }

  Status Run(const KernelArguments& arguments) const override {
    ANYDML_RETURN_IF_ERROR(RunInputProduct(arguments));
    Cell p = common_;
    SetAddresses(arguments, &p);
    LaunchClusters(launch_.kernel, clusters(), launch_.blocks, kClusterThreads, 0,
                   static_cast<cudaStream_t>(arguments.stream), p);
    return {};
  }

 private:
  uint32_t clusters() const {
    return common_.directions * CeilDivide(common_.batch, kGroupElements * launch_.groups);
  }

  // Not every device can run clusters of this size: 0, with the reason, if it cannot.
  uint32_t ClustersAtOnce(std::string* why_not) const {
    cudaError_t error = cudaSuccess;
    if (launch_.blocks > kPortableBlocks) {
      error = cudaFuncSetAttribute(launch_.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    int clusters = 0;
    if (error == cudaSuccess) {
      cudaLaunchAttribute cluster{};
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim = {launch_.blocks, 1, 1};
      cudaLaunchConfig_t config{};
      config.gridDim = launch_.blocks;
      config.blockDim = kClusterThreads;
      config.attrs = &cluster;
      config.numAttrs = 1;
      error = cudaOccupancyMaxActiveClusters(&clusters, launch_.kernel, &config);
    }
    if (error == cudaSuccess && clusters > 0) return static_cast<uint32_t>(clusters);
    cudaGetLastError();
    *why_not = StrCat("the device has no room for a cluster of ", launch_.blocks, " blocks (",
                      cudaGetErrorString(error), ")");
    return 0;
  }

  Cell common_{};  // without addresses
  ClusterLaunch launch_{};
};

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentCluster(const RecurrentProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<RecurrentCluster>(problem);
  if (!kernel->Create(context, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
