// Convolutions whose filters have one input channel, of floats or of bytes.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "ops/convolution/problem.h"

namespace anydml {

// Sums are FLOAT32, which is exact for bytes: at most kMaxDepthwiseTaps products of numbers up to 255.
inline constexpr uint64_t kMaxDepthwiseTaps = 256;

// Receives an output channel's sums if they are not the output.
class DepthwiseSink {
 public:
  virtual ~DepthwiseSink() = default;
  // For positions [first, first + count).
  virtual void Finish(const KernelArguments& arguments, std::array<uint64_t, 2> outer, uint64_t channel,
                      uint64_t first, uint64_t count, const float* sums) const = 0;
};

struct DepthwiseProblem {
  ConvolutionShape shape;
  DataType input_type, filter_type, output_type;
  uint32_t input = 0, filter = 1;  // binding indices
  std::optional<uint64_t> bias = std::nullopt;
  ElementProgram activation = {};
  // What is subtracted: one number for the input, and one for each output channel or for all.
  struct ZeroPoint {
    uint32_t input;  // the binding's index
    uint64_t channel = 0, group = 0;
  };
  std::optional<ZeroPoint> input_zero = std::nullopt, filter_zero = std::nullopt;
  std::shared_ptr<const DepthwiseSink> sink = nullptr;
};

// Why kernels for filters of one channel cannot do this; empty if they can.
std::string WhyNotDepthwise(const ConvolutionShape& shape);

// Loads one filter, which begins at element `at`.
void LoadDepthwiseFilter(const ConvolutionShape& shape, DataType type, const std::byte* filter, uint64_t at,
                         float* to);

std::unique_ptr<const Kernel> CreateDepthwise(const DepthwiseProblem& problem, uint32_t threads,
                                              std::string* why_not);

}  // namespace anydml
