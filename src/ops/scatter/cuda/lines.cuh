// SCATTER_ELEMENTS along an axis that is short enough for the claims of whole lines to fit into
// a block's own memory: a block takes some lines, settles who wins, and writes every element
// of them once, from the update that won or from the input.
#pragma once

#include "ops/scatter/cuda/kernels.cuh"

namespace anydml {

struct LinesParameters {
  enum Operand { kInput, kIndices, kUpdates, kOutput };  // all in bytes, but indices in indices

  WriteParameters write;   // what it has in common with the other ways; unit_bytes are an element's
  const std::byte* input;  // null: in place, what no update wins stays as it is
  uint32_t lines;          // 0: they do not fit
  FastDivisor at_once;     // lines that a block takes
  FastDivisor size;        // of the axis in input and output
  FastDivisor updates;     // per line
  FastDivisor behind;      // lines that differ only in dimensions behind the axis
  bool along;              // neighbours in the output's memory are neighbours along the axis
  uint64_t strides[4];     // along the axis
  DeviceNest<4> starts;    // of the lines
};

LinesParameters PlanLines(const ScatterProblem& problem, uint32_t multiprocessors);
void LaunchLines(KernelChain* chain, const LinesParameters& parameters);

}  // namespace anydml
