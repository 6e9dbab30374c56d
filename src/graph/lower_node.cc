#include "graph/lower_node.h"

#include <algorithm>

#include "kernel/host_kernel.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// Whether an element program may write an output where an input lies: it loads what it replaces before.
bool MayReplaceElements(const ElementProblem& problem, uint32_t input, uint32_t output) {
  const ElementOperand& from = problem.inputs[input];
  const ElementOperand& to = problem.outputs[output];
  if (BitSize(from.type) != BitSize(to.type) || from.strides != to.strides) return false;
  bool stored = false;
  for (const Instruction& i : problem.program.instructions) {
    if (i.function == ElementFunction::kStore && i.target == output) stored = true;
    if (i.function == ElementFunction::kLoad && i.sources[0] == input && stored) return false;
  }
  return true;
}

}  // namespace

Status LowerNode(GraphNode& node, LowerContext context, LoweredOperator* out) {
  if (GraphOperator* op = node.op()) {
    // What is forced is forced wherever it exists.
    const auto names = ImplementationNames(*op->op);
    const bool known = context.implementation.starts_with(kHostPrefix) ||
                       std::any_of(names.begin(), names.end(),
                                   [&](const char* name) { return context.implementation == name; });
    if (!known) context.implementation = {};
    if (op->limits) return LowerClippedConvolution(op->desc, *op->limits, context, out);
    if (op->tail) return LowerConvolutionWithTail(op->desc, *op->tail, context, out);
    return LowerOperator(*op->op, op->desc, context, out);
  }
  if (const auto* const attention = std::get_if<AttentionProblem>(&node.work)) {
    context.implementation = {};
    return ChooseKernel(*attention, context, out);
  }
  if (const auto* const blocks = std::get_if<RowBlocks>(&node.work)) {
    return LowerRowBlocks(*blocks, context, out);
  }
  const ElementProblem& problem = *node.elements();
  for (uint32_t i = 0; i < problem.inputs.size(); ++i) {
    for (uint32_t o = 0; o < problem.outputs.size(); ++o) {
      if (MayReplaceElements(problem, i, o)) out->in_place.emplace_back(i, o);
    }
  }
  context.implementation = {};
  return ChooseKernel(problem, context, out);
}

}  // namespace anydml
