// Shared by all backends: the second pass is an element program's kernel.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernel/composite.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/implementation_list.h"

namespace anydml {

class TwoPassesKernel : public CompositeKernel {
 protected:
  explicit TwoPassesKernel(LoweredOperator quantize)
      : quantize_(AddPart(quantize.implementation, std::move(quantize.kernel))) {}

  // Quantises with the scale and the zero point that the first pass has stored in outputs 1 and 2.
  Status RunQuantize(const KernelArguments& arguments) const {
    const Buffer inputs[] = {arguments.inputs[0], arguments.outputs[1], arguments.outputs[2]};
    KernelArguments second = arguments;
    second.inputs = inputs;
    second.outputs = arguments.outputs.first(1);
    return RunPart(quantize_, second);
  }

 private:
  uint32_t quantize_;
};

template <typename TwoPasses>
std::unique_ptr<const Kernel> CreateTwoPasses(const DynamicQuantizeProblem& problem,
                                              const LowerContext& context, std::string* why_not) {
  LoweredOperator quantize;
  const Status status = ChooseKernel(problem.quantize, context.ForPart(), &quantize);
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<TwoPasses>(problem, std::move(quantize), context);
}

}  // namespace anydml
