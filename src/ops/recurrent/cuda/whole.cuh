// The host side of kernels that run all steps at once, after one product of all inputs with their weights.
#pragma once

#include <string>
#include <utility>

#include "kernel/composite.h"
#include "ops/implementation_list.h"
#include "ops/recurrent/cuda/cell.cuh"
#include "ops/recurrent/steps.h"

namespace anydml::recurrent_cuda {

inline bool IsPlain(const CellActivation& activation, ElementFunction function) {
  const auto& instructions = activation.program.instructions;
  return activation.row == RowFunction::kNone && instructions.size() == 1 &&
         instructions[0].function == function;
}

// Without addresses.
inline Cell CellOf(const RecurrentProblem& problem) {
  Cell p = {};
  p.directions = problem.directions;
  p.steps = static_cast<uint32_t>(problem.steps);
  p.batch = static_cast<uint32_t>(problem.batch);
  p.units = static_cast<uint32_t>(problem.units);
  p.gates = problem.gates();
  p.has_usual_functions = true;
  for (uint32_t direction = 0; direction < p.directions; ++direction) {
    for (uint32_t i = 0; i < ActivationsOf(problem.kind); ++i) {
      const CellActivation& activation = problem.activations[direction][i];
      const bool is_gate = i == 0 && problem.kind != CellKind::kRnn;
      p.activations[direction][i] = ActivationOf(activation);
      p.has_usual_functions = p.has_usual_functions && IsPlain(activation, is_gate ? ElementFunction::kSigmoid
                                                                                   : ElementFunction::kTanh);
    }
  }
  p.kind = problem.kind;
  p.type = problem.type;
  p.couples_input_and_forget = problem.couples_input_and_forget;
  p.linear_before_reset = problem.linear_before_reset;
  p.first_is_backward = problem.first_is_backward;
  p.lengths_stride = problem.lengths ? problem.lengths->strides[3] : 0;
  return p;
}

class WholeRecurrence : public CompositeKernel {
 protected:
  explicit WholeRecurrence(const RecurrentProblem& problem) : problem_(problem) {}

  const RecurrentProblem& problem() const { return problem_; }

  bool has_row_functions() const {
    for (const auto& direction : problem_.activations) {
      for (const CellActivation& activation : direction) {
        if (activation.row != RowFunction::kNone) return true;
      }
    }
    return false;
  }

  // False, with the reason, on failure.
  bool AddInputProduct(const LowerContext& context, std::string* why_not) {
    LoweredOperator lowered;
    const Status status = ChooseKernel(InputProduct(problem_), context.ForPart(), &lowered);
    if (!status.ok()) {
      *why_not = status.message();
      return false;
    }
    input_product_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    from_inputs_ = AddScratch("of inputs", InputProductBytes(problem_));
    return true;
  }

  Status RunInputProduct(const KernelArguments& arguments) const {
    const Buffer inputs[] = {arguments.inputs[0], arguments.inputs[1], {}};
    const Buffer from_inputs = from_inputs_.In(arguments.temporary);
    KernelArguments product = arguments;
    product.inputs = inputs;
    product.outputs = {&from_inputs, 1};
    return RunPart(input_product_, product);
  }

  void SetAddresses(const KernelArguments& arguments, Cell* p) const {
    const auto input = [&](const std::optional<TensorDesc>& tensor, uint32_t binding) {
      return TensorOf(tensor, tensor ? arguments.inputs[binding].data : nullptr);
    };
    const auto output = [&](const std::optional<TensorDesc>& tensor, uint32_t binding) {
      return TensorOf(tensor, tensor ? arguments.outputs[binding].data : nullptr);
    };
    p->recurrence = input(problem_.recurrence, 2);
    p->bias = input(problem_.bias, 3);
    p->hidden_init = input(problem_.hidden_init, 4);
    p->cell_init = input(problem_.cell_init, RecurrentProblem::kCellInit);
    p->peephole = input(problem_.peephole, RecurrentProblem::kPeephole);
    p->lengths = reinterpret_cast<const uint32_t*>(input(problem_.lengths, problem_.lengths_binding()).data);
    p->sequence = output(problem_.sequence, 0);
    p->single = output(problem_.single, 1);
    p->cell_single = output(problem_.cell_single, 2);
    p->from_inputs = from_inputs_.In<float>(arguments.temporary);
  }

 private:
  RecurrentProblem problem_;
  uint32_t input_product_ = 0;
  ScratchLayout::Piece from_inputs_;
};

}  // namespace anydml::recurrent_cuda
