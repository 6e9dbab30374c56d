// SCATTER_ELEMENTS along an axis that is so short that the claims of whole lines fit into shared memory: a
// block takes some lines, resolves which updates win, and writes every element of the lines once, from the
// winning update or from the input.
#pragma once

#include "ops/scatter/cuda/kernels.cuh"

namespace anydml {

struct LinesParameters {
  enum Operand { kInput, kIndices, kUpdates, kOutput };  // all in bytes, except indices, which are in indices

  WriteParameters write;   // shared with the other algorithms; unit_bytes is an element's size
  const std::byte* input;  // null: in place, elements without an update stay as they are
  uint32_t lines;          // 0: they do not fit
  FastDivisor at_once;     // lines per block
  FastDivisor size;        // of the axis in input and output
  FastDivisor updates;     // per line
  FastDivisor behind;      // lines that differ only in dimensions after the axis
  bool along;              // the output is contiguous along the axis
  uint64_t strides[4];     // along the axis
  DeviceNest<4> starts;    // of the lines
};

LinesParameters PlanLines(const ScatterProblem& problem, uint32_t multiprocessors);
void LaunchLines(KernelChain* chain, const LinesParameters& parameters);

}  // namespace anydml
