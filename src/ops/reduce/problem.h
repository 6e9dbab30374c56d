// REDUCE, ARGMIN and ARGMAX: one output element from all input elements whose coordinates differ only along
// the axes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "ops/reduce/axes.h"
#include "schema/descriptions.generated.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> ReduceOperators();

struct ReduceProblem {
  static constexpr std::string_view kFamily = "reduce";

  ReduceFunction function = ReduceFunction::kSum;
  bool last = false;  // of equal extremes the last index, not the first (ARGMIN, ARGMAX)
  TensorDesc input;
  TensorDesc output;  // sizes are 1 along the axes
  AxisSet axes = 0;
};

constexpr bool IsArg(ReduceFunction function) {
  return function == ReduceFunction::kArgmax || function == ReduceFunction::kArgmin;
}

// How elements are combined. Whatever else a function does, it does to the combined value (FinishNumber).
enum class Accumulation : uint8_t {
  kSum,
  kSumAbs,
  kSumSquare,
  kProduct,
  kMax,
  kMin,
  kLogSumExp,
  kArgmax,
  kArgmin,
};

constexpr Accumulation AccumulationOf(ReduceFunction function) {
  switch (function) {
    case ReduceFunction::kArgmax:
      return Accumulation::kArgmax;
    case ReduceFunction::kArgmin:
      return Accumulation::kArgmin;
    case ReduceFunction::kL1:
      return Accumulation::kSumAbs;
    case ReduceFunction::kL2:
    case ReduceFunction::kSumSquare:
      return Accumulation::kSumSquare;
    case ReduceFunction::kLogSumExp:
      return Accumulation::kLogSumExp;
    case ReduceFunction::kMax:
      return Accumulation::kMax;
    case ReduceFunction::kMin:
      return Accumulation::kMin;
    case ReduceFunction::kMultiply:
      return Accumulation::kProduct;
    default:
      return Accumulation::kSum;
  }
}

// The loops of a reduction.
struct ReduceNests {
  LoopNest<2> kept;     // input, output; the input's smallest stride innermost
  LoopNest<1> reduced;  // input; in row-major order if positions matter, otherwise sorted by strides
};
ReduceNests NestsOf(const ReduceProblem& problem);

// How far kernels may be from the reference.
Exactness ReduceBound(const ReduceProblem& problem);

std::unique_ptr<const Kernel> CreateReduceCpu(const ReduceProblem& problem, const LowerContext& context,
                                              std::string* why_not);
std::unique_ptr<const Kernel> CreateReduceCuda(const ReduceProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateReduceReference(const ReduceProblem& problem, const LowerContext& context,
                                                    std::string* why_not);

}  // namespace anydml
