#include <cstdlib>
#include <string_view>

#include "ops/element/cuda/compiled_kernels.h"
#include "ops/element/cuda/machine.cuh"
#include "ops/element/cuda/ptx_program.h"

namespace anydml {
namespace {

using element_cuda::CompiledKernel;
using element_cuda::MachinePlan;

// The number of functions times elements from which compiling a program, which takes tens of milliseconds,
// pays. A function with long code counts more, since the interpreting machine calls it for every element.
constexpr uint64_t kWorthCompiling = uint64_t{1} << 20;
constexpr uint64_t kLongFunction = 4;

// ANYDML_CUDA_COMPILE: compile programs of any size, or none. Read when the module is loaded.
enum class When { kWorth, kAlways, kNever };
When ReadWhen() {
  const char* const text = std::getenv("ANYDML_CUDA_COMPILE");
  const std::string_view word = text != nullptr ? text : "";
  if (word == "always") return When::kAlways;
  return word == "never" ? When::kNever : When::kWorth;
}
const When kWhen = ReadWhen();

class ElementCompiledCuda final : public Kernel {
 public:
  ElementCompiledCuda(const MachinePlan& plan, const CompiledKernel& kernel) : plan_(plan), kernel_(kernel) {}

  Status Run(const KernelArguments& arguments) const override {
    element_cuda::Machine machine = plan_.machine;
    void* parameters[element_cuda::kMaxOperands + 2];
    for (uint32_t o = 0; o < plan_.operands; ++o) {
      const auto& buffers = o < machine.inputs ? arguments.inputs : arguments.outputs;
      machine.operands[o].data = buffers[plan_.bindings[o]].data;
      parameters[o] = &machine.operands[o].data;
    }
    uint32_t aligned = element_cuda::IsAligned(machine, plan_.operands) ? 1 : 0;
    parameters[plan_.operands] = &machine.elements;
    parameters[plan_.operands + 1] = &aligned;
    return kernel_.Launch(plan_.blocks, element_cuda::kThreads, parameters, arguments.stream);
  }

 private:
  const MachinePlan plan_;
  const CompiledKernel& kernel_;
};

}  // namespace

std::string BetterNotElementCompiledCuda(const ElementProblem& problem, const LowerContext&) {
  if (kWhen == When::kAlways) return {};
  if (kWhen == When::kNever) return "ANYDML_CUDA_COMPILE says never";
  uint64_t functions = 0;
  for (const Instruction& i : problem.program.instructions) {
    switch (i.function) {
      case ElementFunction::kLoad:
      case ElementFunction::kStore:
      case ElementFunction::kConstant:
      case ElementFunction::kConvert:
      case ElementFunction::kRoundToHalf:
        break;
      default:
        functions += element_cuda::IsLongFunction(i) ? kLongFunction : 1;
    }
  }
  if (functions < 2) return "one short function takes no longer where it is not compiled";
  if (functions * problem.Elements() < kWorthCompiling) return "too few elements to compile the program for";
  return {};
}

std::unique_ptr<const Kernel> CreateElementCompiledCuda(const ElementProblem& problem,
                                                        const LowerContext& context, std::string* why_not) {
  static const auto* const functions = new element_cuda::PtxFunctions(element_cuda::CompiledFunctionsPtx());
  MachinePlan plan;
  std::string text;
  if (!element_cuda::MakePlan(problem, true, &plan, why_not) ||
      !element_cuda::WritePtxProgram(plan, *functions, &text, why_not)) {
    return nullptr;
  }
  const CompiledKernel* const kernel =
      element_cuda::CompileKernel(*context.device, text, element_cuda::kPtxProgramName, why_not);
  if (kernel == nullptr) return nullptr;
  return std::make_unique<ElementCompiledCuda>(plan, *kernel);
}

}  // namespace anydml
