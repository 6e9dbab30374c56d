#include "graph/plan/lower_node.h"

#include <algorithm>

#include "kernel/host_kernel.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// Whether an element program may write an output over an input: it must load each element before it replaces
// it.
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

// Whether the implementation exists for the operator: one that is forced for a graph is forced where it
// exists.
bool IsKnown(const Operator& op, std::string_view implementation) {
  const auto is_it = [&](const char* name) { return implementation == name; };
  if (implementation.starts_with(kHostPrefix)) {
    implementation.remove_prefix(kHostPrefix.size());
    const auto names = HostColumn().NamesOf(op.family);
    return implementation.empty() || std::any_of(names.begin(), names.end(), is_it);
  }
  const auto names = ImplementationNames(op);
  return std::any_of(names.begin(), names.end(), is_it);
}

}  // namespace

Status LowerNode(GraphNode& node, LowerContext context, LoweredOperator* out) {
  if (GraphOperator* op = node.op()) {
    if (!IsKnown(*op->op, context.implementation)) context.implementation = {};
    if (!op->limits && !op->tail) return LowerOperator(*op->op, op->desc, context, out);
    const auto lower = [&](const LowerContext& where, LoweredOperator* lowered) {
      return op->limits ? LowerClippedConvolution(op->desc, *op->limits, where, lowered)
                        : LowerConvolutionWithTail(op->desc, *op->tail, where, lowered);
    };
    return LowerOrRunOnHost(op->desc, context, lower, out);
  }
  // Only the host as such can be forced for work that is no operator's.
  if (context.implementation != kHostPrefix) context.implementation = {};
  if (const auto* const attention = std::get_if<AttentionProblem>(&node.work)) {
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
  return ChooseKernel(problem, context, out);
}

}  // namespace anydml
