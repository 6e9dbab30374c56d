// Sums over windows along one dimension, of which local response normalisation consists.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/implementation_list.h"
#include "schema/tensor_desc.h"

namespace anydml {

// Output: a packed FLOAT32 tensor of the input's sizes. An element is the sum of up to `before` previous
// elements along the axis, in order, the element itself, and up to `after` following ones; elements outside
// do not count.
struct WindowSumsProblem {
  static constexpr std::string_view kFamily = "window_sums";

  TensorDesc input;
  uint32_t axis = 0;
  uint32_t before = 0;
  uint32_t after = 0;
  bool squares = false;  // sums squares
};

std::unique_ptr<const Kernel> CreateWindowSumsCpu(const WindowSumsProblem& problem,
                                                  const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateWindowSumsCuda(const WindowSumsProblem& problem,
                                                   const LowerContext& context, std::string* why_not);

}  // namespace anydml
