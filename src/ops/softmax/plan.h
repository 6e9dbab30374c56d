// Plan of GPU softmax: kernel, blocks and parameters. Plain data, the same for every GPU backend; the backend
// adds addresses and launches.
//
// - Sets, for any layout: a block takes `columns` sets, with `lanes` threads for each, and reads everything
//   twice.
// - Rows, for sets that are rows of 16-byte units: kSoftmaxLanes threads or the whole block process a row.
// - Hardmax, after an ARGMAX: a thread writes elements: one at the set's position, zero elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/device_traits.h"
#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/softmax/problem.h"

namespace anydml {

inline constexpr uint32_t kSoftmaxThreads = 256;  // of a block that takes sets or writes ones
inline constexpr uint32_t kSoftmaxLanes = 32;
// Threads for rows that are kept in registers: few enough for several blocks to share a multiprocessor.
inline constexpr uint32_t kSoftmaxFewThreads = 512;

struct SoftmaxSetParameters {
  const void* input;
  void* output;
  DeviceNest<2> sets;
  DeviceNest<2> elements;
  uint32_t set_count;
  uint32_t element_count;  // per set
  uint32_t columns;        // sets per block
  uint32_t lanes;          // threads per set, a power of two
  bool lanes_first;        // neighbouring threads belong to one set
  bool is_log;
  DataType type;
};

struct SoftmaxSetsPlan {
  SoftmaxSetParameters parameters = {};  // except addresses
  Grid grid;
};
SoftmaxSetsPlan MakeSoftmaxSetsPlan(const SoftmaxProblem& problem);

struct SoftmaxRowParameters {
  const void* input;
  void* output;
  DeviceNest<2> rows;
  uint32_t row_count;
  uint32_t units;  // per row
  uint32_t lanes;  // threads for a row: kSoftmaxLanes, or the block
  bool is_log;
};

// For inputs and outputs at multiples of 16 bytes.
struct SoftmaxRowsPlan {
  SoftmaxRowParameters parameters = {};  // except addresses
  // Units that each thread keeps in registers; 0 if a row is too long for that and is read twice.
  uint32_t units_per_thread = 0;
  Grid grid;
};
// The reason why a set is not a row of whole units; empty if it is.
std::string WhyNoSoftmaxRows(const SoftmaxProblem& problem);
SoftmaxRowsPlan MakeSoftmaxRowsPlan(const SoftmaxProblem& problem);

struct HardmaxParameters {
  const uint32_t* positions;
  void* output;
  DeviceNest<2> sets;      // of positions and the output
  DeviceNest<1> elements;  // of the output, in the order of positions
  FastDivisor inner;       // number of contiguous ones: sets, or elements of a set
  uint64_t count;
  bool sets_first;  // neighbours belong to different sets
};

struct HardmaxPlan {
  HardmaxParameters parameters = {};  // except addresses
  Grid grid;                          // whose threads continue with further elements
};
HardmaxPlan MakeHardmaxPlan(const LoopNest<2>& sets, const LoopNest<1>& elements, const DeviceTraits& device);

}  // namespace anydml
