// MATRIX_MULTIPLY_INTEGER, CONVOLUTION_INTEGER and their forms with scales: exact sums of products of
// integers minus their zero points, then (with scales) an element program on the sums.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/convolution/problem.h"
#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"

namespace anydml {

std::span<const Operator> IntegerProductOperators();

// The limits to which bytes are clipped.
struct ByteLimits {
  int32_t low = -128, high = 255;
};

// QUANTIZED_LINEAR_CONVOLUTION with a clipped output. The limits have the output's type and include 0.
Status LowerClippedConvolution(const OperatorDesc& desc, ByteLimits limits, const LowerContext& context,
                               LoweredOperator* out);

// Zero points of an operand.
struct ZeroPoints {
  uint32_t input = 0;   // the binding's index
  uint64_t stride = 0;  // between zero points; 0: one for all
  uint64_t group = 0;   // between those of outer[1]
};

struct IntegerSums {
  // For a matrix product, A is the filter and B the input: the input's positions are the output's columns.
  ConvolutionShape shape;
  DataType input_type = DataType::kInt8, filter_type = DataType::kInt8;
  DataType sum_type = DataType::kInt32;   // wraps; INT64 if operands have more than 8 bits
  uint32_t input = 0, filter = 0;         // binding indices
  std::optional<ZeroPoints> input_zero;   // per position
  std::optional<ZeroPoints> filter_zero;  // per output channel
  // OWNED_BY_DML, with its zero points: may be packed at initialisation.
  bool filter_is_owned = false, input_is_owned = false;
};

// Numbers per output row (output channel).
using RowNumbers = ZeroPoints;

// The program in closed form, if it converts sums to bytes, for kernels that work row by row: (sum + bias)
// times the scales, divided by the output's, rounded to nearest even, plus the zero point, within limits.
struct Requantization {
  std::optional<RowNumbers> bias;
  RowNumbers scale, other_scale, output_scale;
  std::optional<RowNumbers> output_zero;
  DataType type = DataType::kInt8;
  ConvolutionTensor output;  // of bytes; the tensor of sums is packed
  ByteLimits limits;
};

struct IntegerProductProblem {
  static constexpr std::string_view kFamily = "integer_product";

  IntegerSums sums;
  // From the sums (input 0) and the operator's own tensors to its output; empty: sums are the output.
  ElementProblem program;
  std::vector<uint32_t> program_inputs;                         // binding indices of the program's inputs
                                                                // from 1 on
  std::optional<Requantization> requantization = std::nullopt;  // equivalent to the program
};

// For problems with a program: a kernel for sums in scratch, followed by one for the program.
std::unique_ptr<const Kernel> CreateSumsThenProgram(const IntegerProductProblem& problem,
                                                    const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateIntegerDepthwise(const IntegerProductProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateIntegerFew(const IntegerProductProblem& problem,
                                               const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateIntegerDot(const IntegerProductProblem& problem,
                                               const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateIntegerSums(const IntegerProductProblem& problem,
                                                const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateIntegerReference(const IntegerProductProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateIntegerSumsCuda(const IntegerProductProblem& problem,
                                                    const LowerContext& context, std::string* why_not);

}  // namespace anydml
