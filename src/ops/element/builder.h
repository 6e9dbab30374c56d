// Builds element problems from operators' descriptions, for the rows of operators.cc.
#pragma once

#include <initializer_list>

#include "ops/element/problem.h"
#include "schema/operator_desc.h"

namespace anydml {

class ElementBuilder {
 public:
  // Every present tensor becomes an operand. Sizes that are smaller than output 0's divide them: each element
  // of such a tensor applies to a block of the output.
  explicit ElementBuilder(const OperatorDesc& desc);

  const OperatorDesc& desc() const { return desc_; }
  ElementProgram& program() { return problem_.program; }
  ElementProblem Take() && { return std::move(problem_); }

  bool has_input(uint32_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  DataType input_type(uint32_t i) const { return inputs_[i]->type; }
  DataType output_type(uint32_t i) const { return outputs_[i]->type; }

  uint8_t Load(uint32_t input, Class type) { return program().Load(input, type); }
  // The input, or `otherwise` if it is absent; both as FLOAT32.
  uint8_t LoadOr(uint32_t input, float otherwise);
  void Store(uint8_t source, Class type) { program().Store(0, source, type); }

  // Reads and writes all tensors as bits.
  void ViewAsBits();

  // Applies the description's ScaleBias, if present, to a register with elements of `type`. Integers wrap in
  // their type, which needs no instructions if the store follows.
  void ApplyScaleBias(uint8_t at, Class at_class, DataType type, bool store_next = false);

 private:
  void WrapTo(uint8_t at, DataType type);
  void Append(const TensorDesc* tensor, std::vector<ElementOperand>* operands);

  const OperatorDesc& desc_;
  const std::vector<const TensorDesc*> inputs_;
  const std::vector<const TensorDesc*> outputs_;
  ElementProblem problem_;
};

// The unsigned type of as many bits, for moving elements bit for bit. 4-bit types stay as they are.
DataType BitsOf(DataType type);

// The class in which `function` is computed for elements of `type`.
Class ClassFor(ElementFunction function, DataType type);

// Appends the activation that `fused` describes to a program; it changes register `at` (FLOAT32).
void AppendActivation(const OperatorDesc& fused, ElementProgram* program, uint8_t at);

// A FLOAT field's or DML_SCALAR_UNION's value as an element of `type`, as the bits of its class.
uint64_t ElementParameter(float value, DataType type);
uint64_t ElementParameter(const Scalar& value, DataType type);

}  // namespace anydml
