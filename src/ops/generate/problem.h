// Generators of tensors: FILL_VALUE_CONSTANT, FILL_VALUE_SEQUENCE, DIAGONAL_MATRIX and DIAGONAL_MATRIX1.
// RANDOM_GENERATOR is in random.h.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> GenerateOperators();

struct GenerateProblem {
  static constexpr std::string_view kFamily = "generate";

  enum class Kind { kConstant, kSequence, kBand };

  Kind kind = Kind::kConstant;
  TensorDesc output;
  uint64_t value = 0;  // bits of the element; for a sequence of the first one
  uint64_t delta = 0;  // kSequence

  // kBand: `value` if FillsDiagonal(x - y), elsewhere the input's element, or 0 without an input.
  int64_t begin = 0;
  int64_t end = 0;
  bool has_input = false;
  TensorDesc input;
};

// Constexpr functions are compiled for devices, too.

// Between begin and end, or outside [end, begin) if they are reversed.
constexpr bool FillsDiagonal(int64_t diagonal, int64_t begin, int64_t end) {
  return ((end >= begin) != (diagonal >= begin)) != (diagonal < end);
}

// Element `number` of a sequence. Integers of all widths wrap, so only their low bits matter.
template <typename Element>
constexpr Element SequenceElement(uint64_t start, uint64_t delta, uint64_t number) {
  return static_cast<Element>(start + delta * number);
}
template <>
constexpr float SequenceElement<float>(uint64_t start, uint64_t delta, uint64_t number) {
  const auto first = std::bit_cast<float>(static_cast<uint32_t>(start));
  const auto step = std::bit_cast<float>(static_cast<uint32_t>(delta));
  const float value = first + static_cast<float>(static_cast<uint32_t>(number)) * step;
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  return value == value ? value : std::bit_cast<float>(0x7FC00000u);
}
template <>
constexpr Half SequenceElement<Half>(uint64_t start, uint64_t delta, uint64_t number) {
  const auto bits = [](uint64_t half) {
    return std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(half)}));
  };
  return ToHalf(SequenceElement<float>(bits(start), bits(delta), number));
}

// Over the output's elements, in the order of its addresses. kNumber is the row-major index of an element,
// kDiagonal is x - y, modulo 2^64; unused ones have strides of 0.
enum GenerateOperand { kGenerateOutput, kGenerateInput, kGenerateNumber, kGenerateDiagonal };
LoopNest<4> GenerateNest(const GenerateProblem& problem);

CreateFunction<GenerateProblem> CreateGenerateCpu, CreateGenerateCuda, CreateGenerateReference;

}  // namespace anydml
