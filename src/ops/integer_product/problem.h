// MATRIX_MULTIPLY_INTEGER, CONVOLUTION_INTEGER and their forms with scales: exact sums of products of
// integers less their zero points, then (where there are scales) an element program of the sums.
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

// What bytes are clipped to.
struct ByteLimits {
  int32_t low = -128, high = 255;
};

// QUANTIZED_LINEAR_CONVOLUTION whose output is clipped. The limits are of the output's type, and 0 is among
// them.
Status LowerClippedConvolution(const OperatorDesc& desc, ByteLimits limits, const LowerContext& context,
                               LoweredOperator* out);

// Zero points of an operand.
struct ZeroPoints {
  uint32_t input = 0;   // the binding
  uint64_t stride = 0;  // between them; 0: one for all
  uint64_t group = 0;   // between those of outer[1]
};

struct IntegerSums {
  // For a product of matrices A is the filter, B the input: the input's positions are the output's columns.
  ConvolutionShape shape;
  DataType input_type = DataType::kInt8, filter_type = DataType::kInt8;
  DataType sum_type = DataType::kInt32;   // wraps; INT64 where operands have more than 8 bits
  uint32_t input = 0, filter = 0;         // bindings
  std::optional<ZeroPoints> input_zero;   // for each position
  std::optional<ZeroPoints> filter_zero;  // for each output channel
  // By the library, with its zero points: may be packed at initialisation.
  bool filter_is_owned = false, input_is_owned = false;
};

// Numbers of the output's rows (output channels).
using RowNumbers = ZeroPoints;

// What a program does that makes bytes of the sums, for kernels that do it row by row: (sum + bias) times the
// scales, by the output's, rounded to the nearest even, plus the zero point, within limits.
struct Requantization {
  std::optional<RowNumbers> bias;
  RowNumbers scale, other_scale, output_scale;
  std::optional<RowNumbers> output_zero;
  DataType type = DataType::kInt8;
  ConvolutionTensor output;  // of bytes; that of the sums is packed
  ByteLimits limits;
};

struct IntegerProductProblem {
  static constexpr std::string_view kFamily = "integer_product";

  IntegerSums sums;
  // From the sums (input 0) and the operator's own tensors to its output; no instructions: sums are the
  // output.
  ElementProblem program;
  std::vector<uint32_t> program_inputs;                         // bindings of the program's inputs from 1 on
  std::optional<Requantization> requantization = std::nullopt;  // the same as the program
};

// Where there is a program, a kernel of sums in scratch with one of the program after it.
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
