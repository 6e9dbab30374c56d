#include "base/status.h"
#include "ops/element/cuda/machine.cuh"

namespace anydml {
namespace {

using element_cuda::Machine;
using element_cuda::MachinePlan;

class ElementProgramCuda final : public Kernel {
 public:
  ElementProgramCuda(const MachinePlan& in_groups, const MachinePlan& singly)
      : in_groups_(in_groups), singly_(singly) {
    if (in_groups.wide) {
      launch_ = element_cuda::LaunchWide;
    } else if (element_cuda::HasLongFunctions(in_groups.machine)) {
      launch_ = element_cuda::LaunchNarrowWithLongFunctions;
    } else {
      launch_ = element_cuda::LaunchNarrow;
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    if (!RunPlan(in_groups_, arguments)) RunPlan(singly_, arguments);
    return {};
  }

 private:
  bool RunPlan(const MachinePlan& plan, const KernelArguments& arguments) const {
    Machine machine = plan.machine;
    for (uint32_t o = 0; o < plan.operands; ++o) {
      const auto& buffers = o < machine.inputs ? arguments.inputs : arguments.outputs;
      machine.operands[o].data = buffers[plan.bindings[o]].data;
    }
    if (!element_cuda::IsAligned(machine, plan.operands)) return false;
    launch_(plan, machine, arguments.stream);
    return true;
  }

  const MachinePlan in_groups_;  // used if addresses allow it
  const MachinePlan singly_;
  void (*launch_)(const MachinePlan&, const Machine&, void*);
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementProgramCuda(const ElementProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  MachinePlan in_groups, singly;
  if (!element_cuda::MakePlan(problem, true, &in_groups, why_not) ||
      !element_cuda::MakePlan(problem, false, &singly, why_not)) {
    return nullptr;
  }
  if (in_groups.shared_bytes > context.device->shared_bytes_per_block) {
    *why_not = StrCat("the program needs ", in_groups.shared_bytes,
                      " bytes of a block's memory, the device has ", context.device->shared_bytes_per_block);
    return nullptr;
  }
  return std::make_unique<ElementProgramCuda>(in_groups, singly);
}

}  // namespace anydml
