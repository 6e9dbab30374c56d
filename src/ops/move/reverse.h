// REVERSE_SUBSEQUENCES: reverses the first elements of every sequence along an axis; the data give their
// number.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

const Operator& ReverseSubsequencesOperator();

struct ReverseProblem {
  static constexpr std::string_view kFamily = "reverse";

  TensorDesc input;
  TensorDesc lengths;  // UINT32 or UINT64, one per sequence
  TensorDesc output;
  uint32_t axis = 0;
};

// The source of element i of a sequence whose first `length` elements are reversed. (constexpr: compiled for
// devices, too.)
constexpr uint64_t ReversedIndex(uint64_t i, uint64_t length) { return i < length ? length - 1 - i : i; }

std::unique_ptr<const Kernel> CreateReverseCpu(const ReverseProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateReverseCuda(const ReverseProblem& problem, const LowerContext& context,
                                                std::string* why_not);
std::unique_ptr<const Kernel> CreateReverseReference(const ReverseProblem& problem,
                                                     const LowerContext& context, std::string* why_not);

}  // namespace anydml
