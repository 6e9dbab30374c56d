// CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: a running sum or product along an axis. NONZERO_COORDINATES is
// nonzero.h's.
#pragma once

#include <cstdint>
#include <span>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> ScanOperators();

// Input and output may be the same memory where their layouts are identical: kernels have read an element,
// and all that they need of those behind it, when they write it.
struct ScanProblem {
  static constexpr std::string_view kFamily = "scan";

  TensorDesc input;
  TensorDesc output;
  uint32_t axis = 0;
  bool multiplies = false;
  bool exclusive = false;  // an element counts from the next one on
  bool reverse = false;    // from the end of the axis
};

// Running totals: FLOAT16 is converted to FLOAT32 and rounded when it is stored; integers wrap, so that
// signed ones are as good as unsigned ones.

// (constexpr: nvcc compiles them for the device, too.)
template <typename T, bool kMultiplies>
constexpr T ScanNeutral() {
  return kMultiplies ? T{1} : T{0};
}
template <typename T, bool kMultiplies>
constexpr T ScanCombine(T a, T b) {
  return kMultiplies ? a * b : a + b;
}

// The axis, and all other dimensions.
struct ScanLoops {
  enum Operand { kInput, kOutput };
  LoopNest<2>::Loop along;
  LoopNest<2> sequences;  // in the order of the output's addresses
};
ScanLoops MakeScanLoops(const ScanProblem& problem);

// Whether neighbours in memory are in neighbouring sequences, rather than in the same one.
bool NeighboursAreBeside(const ScanLoops& loops);

// What a sum in any order may be off.
Exactness ScanBound(const ScanProblem& problem);

CreateFunction<ScanProblem> CreateScanCpuBlocks, CreateScanCpuLines, CreateScanReference;
CreateFunction<ScanProblem> CreateScanCudaSplit, CreateScanCudaColumns, CreateScanCudaRows;
BetterNotFunction<ScanProblem> ScanCpuBlocksBetterNot;
BetterNotFunction<ScanProblem> ScanCudaSplitBetterNot, ScanCudaColumnsBetterNot;

}  // namespace anydml
