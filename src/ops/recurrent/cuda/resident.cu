#include "ops/recurrent/cuda/resident.cuh"

#include <cuda_runtime.h>

#include <utility>

#include "kernel/composite.h"
#include "ops/operator_table.h"
#include "ops/recurrent/steps.h"
#include "ops/top_k/cuda/launch.h"

namespace anydml {
namespace {

using namespace recurrent_cuda;

constexpr uint64_t kMaxUnits = 8192;  // far more than shared memory has room for
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

// The smallest tiles that hold the batch.
Launch FindLaunch(const Resident& p) {
  return p.batch <= 8 ? LaunchOf<8>(p) : p.batch <= 16 ? LaunchOf<16>(p) : LaunchOf<32>(p);
}

bool HasRowFunctions(const RecurrentProblem& problem) {
  for (const auto& direction : problem.activations) {
    for (const CellActivation& activation : direction) {
      if (activation.row != RowFunction::kNone) return true;
    }
  }
  return false;
}

class RecurrentResident final : public CompositeKernel {
 public:
  explicit RecurrentResident(const RecurrentProblem& problem) : problem_(problem) {}

  // Once, before anything else; false with the reason.
  bool Create(const LowerContext& context, std::string* why_not) {
    if (HasRowFunctions(problem_) || problem_.units > kMaxUnits || problem_.batch > kMaxBatch) {
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
    const Buffer inputs[] = {arguments.inputs[0], arguments.inputs[1], {}};
    const Buffer from_inputs = from_inputs_.In(arguments.temporary);
    KernelArguments product = arguments;
    product.inputs = inputs;
    product.outputs = {&from_inputs, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(input_product_, product));
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
    const RecurrentProblem& problem = problem_;
    Resident& p = common_;
    p.directions = problem.directions;
    p.steps = static_cast<uint32_t>(problem.steps);
    p.batch = static_cast<uint32_t>(problem.batch);
    p.units = static_cast<uint32_t>(problem.units);
    p.gates = problem.gates();
    p.unit_stride = (p.units + 3) / 4 * 4;
    const uint32_t most_blocks = std::max(1u, multiprocessors / p.directions);
    p.block_units = reduce::CeilDivide(p.units, most_blocks);
    p.blocks_per_direction = reduce::CeilDivide(p.units, p.block_units);
    for (uint32_t direction = 0; direction < p.directions; ++direction) {
      for (uint32_t i = 0; i < kMaxCellActivations; ++i) {
        p.activations[direction][i] = ActivationOf(problem.activations[direction][i]);
      }
    }
    p.kind = problem.kind;
    p.type = problem.type;
    p.couples_input_and_forget = problem.couples_input_and_forget;
    p.linear_before_reset = problem.linear_before_reset;
    p.first_is_backward = problem.first_is_backward;
    p.lengths_stride = problem.lengths ? problem.lengths->strides[3] : 0;
  }

  bool AddParts(const LowerContext& context, std::string* why_not) {
    LoweredOperator lowered;
    const Status status = ChooseKernel(OperatorTableOf(context.backend).gemm, InputProduct(problem_),
                                       context.ForPart(), &lowered);
    if (!status.ok()) {
      *why_not = status.message();
      return false;
    }
    input_product_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    const uint64_t state_bytes =
        problem_.directions * problem_.batch * uint64_t{common_.unit_stride} * sizeof(float);
    from_inputs_ = AddScratch("of inputs", InputProductBytes(problem_));
    hidden_ = AddScratch("hidden state, before and after", 2 * state_bytes);
    reset_ = AddScratch("reset state", problem_.resets_first() ? state_bytes : 0);
    arrived_ = AddScratch("blocks that have arrived", 2 * sizeof(uint32_t));
    return true;
  }

  Resident ParametersOf(const KernelArguments& arguments) const {
    const RecurrentProblem& problem = problem_;
    const auto input = [&](const std::optional<TensorDesc>& tensor, uint32_t binding) {
      return TensorOf(tensor, tensor ? arguments.inputs[binding].data : nullptr);
    };
    const auto output = [&](const std::optional<TensorDesc>& tensor, uint32_t binding) {
      return TensorOf(tensor, tensor ? arguments.outputs[binding].data : nullptr);
    };
    Resident p = common_;
    p.recurrence = input(problem.recurrence, 2);
    p.bias = input(problem.bias, 3);
    p.hidden_init = input(problem.hidden_init, 4);
    p.cell_init = input(problem.cell_init, RecurrentProblem::kCellInit);
    p.peephole = input(problem.peephole, RecurrentProblem::kPeephole);
    p.lengths = reinterpret_cast<const uint32_t*>(input(problem.lengths, problem.lengths_binding()).data);
    p.sequence = output(problem.sequence, 0);
    p.single = output(problem.single, 1);
    p.cell_single = output(problem.cell_single, 2);
    p.from_inputs = from_inputs_.In<float>(arguments.temporary);
    p.hidden = hidden_.In<float>(arguments.temporary);
    p.reset = reset_.In<float>(arguments.temporary);
    p.arrived = arrived_.In<uint32_t>(arguments.temporary);
    return p;
  }

  RecurrentProblem problem_;
  Resident common_{};  // but for addresses
  Launch launch_{};
  uint32_t input_product_ = 0;
  ScratchLayout::Piece from_inputs_, hidden_, reset_, arrived_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentResident(const RecurrentProblem& problem,
                                                      const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<RecurrentResident>(problem);
  if (!kernel->Create(context, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
