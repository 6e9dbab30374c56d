// Finds the kernels of a plan and launches them.
#include "kernel/scratch_layout.h"
#include "ops/device/cuda/reduce.cuh"
#include "ops/device/units.h"

namespace anydml {
namespace {

using reduce::Launch;

Launch FindAny(const ReduceProblem& problem) {
  const Accumulation kind = AccumulationOf(problem.function);
  const bool is_float = problem.input.type == DataType::kFloat32 || problem.input.type == DataType::kFloat16;
  return is_float ? reduce::FindFloatLaunch(kind, problem.last)
                  : reduce::FindIntegerLaunch(kind, problem.last, problem.input.type);
}

Launch FindUnits(const ReduceProblem& problem, ReduceKernel kernel) {
  const Accumulation kind = AccumulationOf(problem.function);
  switch (kernel) {
    case ReduceKernel::kRows:
      return reduce::FindRowsLaunch(kind, problem.last, problem.input.type);
    case ReduceKernel::kColumns:
      return reduce::FindColumnsLaunch(kind, problem.last, problem.input.type);
    default:
      return nullptr;
  }
}

class ReduceCuda final : public Kernel {
 public:
  ReduceCuda(const ReduceProblem& problem, const LowerContext& context)
      : plan_(MakeReducePlan(problem, *context.device)),
        any_(FindAny(problem)),
        units_(FindUnits(problem, plan_.units.kernel)) {}

  Status Run(const KernelArguments& arguments) const override {
    ReduceLaunch launch = LaunchOf(plan_, AddressOf(arguments.inputs[0].data));
    launch.parameters.input = arguments.inputs[0].data;
    launch.parameters.output = arguments.outputs[0].data;
    launch.parameters.partials = arguments.temporary.data;
    KernelChain chain(arguments.stream);
    (launch.kernel == ReduceKernel::kAny ? any_ : units_)(chain, launch.parameters, launch.grid);
    if (launch.parameters.segments == 1) return {};
    const ReduceLaunch merge = MergeLaunchOf(plan_, launch);
    any_(chain, merge.parameters, merge.grid);
    return {};
  }

  uint64_t temporary_bytes() const override { return plan_.temporary_bytes; }

 private:
  ReducePlan plan_;
  Launch any_, units_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateReduceCuda(const ReduceProblem& problem, const LowerContext& context,
                                               std::string*) {
  return std::make_unique<ReduceCuda>(problem, context);
}

}  // namespace anydml
