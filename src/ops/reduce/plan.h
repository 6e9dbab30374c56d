// Plan of a GPU reduction: kernels, blocks and parameters. It depends on the problem and the device only, so
// that sums are always added in the same order. Plain data, the same for every GPU backend; the backend adds
// addresses and launches.
//
// The elements of an output may be divided into segments. One kernel then writes a partial result for each
// segment (an accumulator of at most kReducePartialBytes), and a second launch of kAny merges them.
//
// - kAny, for any layout and type: a block computes `columns` outputs, with `lanes` threads for each.
// - kRows, for floats if a 16-byte unit holds neighbours of one output: the same, with a warp or the whole
//   block per output.
// - kColumns, for floats if a 16-byte unit holds elements of different outputs: a block has `columns` units
//   of outputs, and divides the elements among its remaining threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/device_traits.h"
#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/reduce/problem.h"

namespace anydml {

enum class ReduceKernel : uint8_t { kAny, kRows, kColumns };

inline constexpr uint32_t kReduceThreads = 256;  // of kAny and kColumns
inline constexpr uint32_t kReduceLanes = 32;     // of kRows, if a block has several outputs
inline constexpr uint64_t kReducePartialBytes = 16;
// Minimum number of kColumns blocks that a multiprocessor runs concurrently.
inline constexpr uint32_t kReduceColumnBlocksAtOnce = 4;

struct ReduceParameters {
  const void* input;
  void* output;
  void* partials;  // of segment s of output o: index s * outputs + o
  DeviceNest<2> kept;
  DeviceNest<1> reduced;
  uint32_t outputs;
  uint32_t elements;  // per output
  uint32_t segments;  // per output
  uint32_t segment;   // elements per segment; the last one may have fewer
  // A block's threads: `columns` outputs, `lanes` threads for each.
  uint32_t columns;
  uint32_t lanes;
  bool lanes_first;  // neighbouring threads work on the same output
  bool merges;       // the input holds partial results instead of elements
  ReduceFunction function;
  DataType input_type;
  DataType output_type;
};

// A kernel and how it divides the problem.
struct ReduceDivision {
  ReduceKernel kernel = ReduceKernel::kAny;
  uint32_t columns = 1;
  uint32_t lanes = 1;
  bool lanes_first = true;
  uint32_t threads = kReduceThreads;
  uint32_t segments = 1;
  uint32_t segment = 1;
  uint32_t block_outputs = 1;
};

struct ReducePlan {
  ReduceParameters parameters = {};  // without addresses and the division
  ReduceDivision any;
  ReduceDivision units;  // if the input is aligned to kMaxUnitBytes; kAny if there is no such kernel
  uint32_t multiprocessors = 1;
  uint64_t temporary_bytes = 0;  // of the partial results
};

ReducePlan MakeReducePlan(const ReduceProblem& problem, const DeviceTraits& device);

struct ReduceLaunch {
  ReduceKernel kernel = ReduceKernel::kAny;
  Grid grid;
  ReduceParameters parameters;  // except addresses
};

ReduceLaunch LaunchOf(const ReducePlan& plan, uint64_t input_address);
// The launch after `first` if that has more than one segment.
ReduceLaunch MergeLaunchOf(const ReducePlan& plan, const ReduceLaunch& first);

}  // namespace anydml
