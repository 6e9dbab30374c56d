// Kernels that consist of a few steps: sums over sets or windows of elements, and element programs over their
// results.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ops/element/problem.h"
#include "ops/moments/problem.h"
#include "ops/moments/window_sums.h"
#include "ops/operator.h"

namespace anydml {

// The place of a step's tensor: among the kernel's inputs or outputs, or in its scratch.
struct StepOperand {
  enum Where : uint8_t { kInput, kOutput, kScratch } where = kInput;
  uint32_t index = 0;
};

struct Step {
  std::variant<MomentsProblem, WindowSumsProblem, ElementProblem> problem;
  std::vector<StepOperand> inputs;  // in number and order as the problem's inputs; outputs likewise
  std::vector<StepOperand> outputs;
};

struct StepList {
  std::vector<Step> steps;
  std::vector<uint64_t> scratch;  // FLOAT32 elements of each piece

  // A new piece of scratch.
  StepOperand AddScratch(uint64_t elements) {
    scratch.push_back(elements);
    return {StepOperand::kScratch, static_cast<uint32_t>(scratch.size() - 1)};
  }
};

inline constexpr uint32_t kMaxStepOperands = 12;

std::unique_ptr<const Kernel> CreateSteps(const StepList& list, const LowerContext& context,
                                          std::string* why_not);

// Builds the element programs of a list. Their loops are over the dimensions of one tensor; other tensors
// have its sizes, or 1 to broadcast.
class ElementProgramStep {
 public:
  explicit ElementProgramStep(const TensorDesc& whole);
  // Over the kept dimensions of a tensor only.
  ElementProgramStep(const TensorDesc& whole, const DimensionSet& reduced);

  // Loads into a register of FLOAT32 elements.
  uint8_t Load(StepOperand operand, const TensorDesc& tensor);
  // Loads from a packed result of the kept dimensions.
  uint8_t LoadResult(StepOperand operand, const DimensionSet& reduced);
  ElementProgram& program() { return problem_.program; }
  uint8_t Apply(ElementFunction function, std::initializer_list<uint8_t> sources, float parameter0 = 0,
                float parameter1 = 0) {
    return program().Apply(function, Class::kF32, sources, ParameterOf(parameter0), ParameterOf(parameter1));
  }
  void Store(StepOperand operand, const TensorDesc& tensor, uint8_t source);
  void StoreResult(StepOperand operand, const DimensionSet& reduced, uint8_t source);

  Step Take() && { return {std::move(problem_), std::move(inputs_), std::move(outputs_)}; }

 private:
  ElementOperand Operand(const TensorDesc& tensor) const;
  ElementOperand Result(const DimensionSet& reduced) const;
  uint8_t LoadFrom(StepOperand operand, const ElementOperand& element_operand);
  void StoreTo(StepOperand operand, const ElementOperand& element_operand, uint8_t source);

  ElementProblem problem_;
  std::vector<StepOperand> inputs_, outputs_;
};

}  // namespace anydml
