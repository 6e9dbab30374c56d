// CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: a running sum or product along an axis. NONZERO_COORDINATES is
// in nonzero.h.
#pragma once

#include <cstdint>
#include <span>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> ScanOperators();

// Input and output may be the same memory if their layouts are identical: before kernels write an element
// they have read it, and everything they need of later ones.
struct ScanProblem {
  static constexpr std::string_view kFamily = "scan";

  TensorDesc input;
  TensorDesc output;
  uint32_t axis = 0;
  bool multiplies = false;
  bool exclusive = false;  // an element counts from the next one on
  bool reverse = false;    // from the end of the axis
};

// Running totals: FLOAT16 is converted to FLOAT32 and rounded when it is stored; integers wrap, so signed
// ones can be treated as unsigned.

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

// Whether elements that are contiguous in memory belong to different sequences.
bool NeighboursAreBeside(const ScanLoops& loops);

// The possible error of a sum in any order.
Exactness ScanBound(const ScanProblem& problem);

CreateFunction<ScanProblem> CreateScanCpuBlocks, CreateScanCpuLines, CreateScanReference;
CreateFunction<ScanProblem> CreateScanCudaSplit, CreateScanCudaColumns, CreateScanCudaRows;
BetterNotFunction<ScanProblem> ScanCpuBlocksBetterNot;
BetterNotFunction<ScanProblem> ScanCudaSplitBetterNot, ScanCudaColumnsBetterNot;

}  // namespace anydml
