// DYNAMIC_QUANTIZE_LINEAR: computes a scale and a zero point from the range of the input, extended to 0, and
// quantises the input with them.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

const Operator& DynamicQuantizeOperator();

struct DynamicQuantizeProblem {
  static constexpr std::string_view kFamily = "dynamic_quantize";

  TensorDesc input;
  DataType quantized = DataType::kUInt8;  // or INT8
  ElementProblem quantize;                // inputs: the input, the scale, the zero point; output: the output
};

// The smallest and the largest number, and 0. NaNs are ignored.
struct Range {
  float min = 0;
  float max = 0;
};

struct QuantizationParameters {
  float scale;
  float zero_point;  // an integer
};

// constexpr functions are compiled for devices, too.
constexpr float LowestQuantized(DataType type) { return type == DataType::kInt8 ? -128.0f : 0.0f; }

// For the empty range [0, 0] the scale is 1. If the range is not finite, neither is the scale.
inline
#ifdef __CUDACC__
    __host__ __device__
#endif
        QuantizationParameters
        ParametersOf(Range range, DataType type) {
  const float low = LowestQuantized(type), high = low + 255;
  float scale = (range.max - range.min) / 255;
  if (scale == 0) scale = 1;
  const float quotient = range.min / scale;
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  const float exact = quotient == quotient ? low - quotient : low;
  const float whole = nearbyintf(exact);
  return {scale, whole < low ? low : whole > high ? high : whole};
}

std::unique_ptr<const Kernel> CreateDynamicQuantizeCpu(const DynamicQuantizeProblem& problem,
                                                       const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateDynamicQuantizeCuda(const DynamicQuantizeProblem& problem,
                                                        const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateDynamicQuantizeReference(const DynamicQuantizeProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not);

}  // namespace anydml
