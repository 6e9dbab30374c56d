// Plan of a GPU gather: kernel, blocks and parameters. Plain data, the same for every GPU backend; the
// backend adds addresses and launches.
//
// - kUnits: a thread per unit of the output.
// - kRows: kGatherLanes neighbouring threads per piece of a row; a piece has a fixed number of units.
// - For the note: kFindFirstBad finds the first tuple out of range, with as many blocks as occupy the device;
//   then kWriteNote, one thread, writes the note about it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/device_traits.h"
#include "ops/device/grid.h"
#include "ops/device/indices.h"
#include "ops/device/nest.h"
#include "ops/gather/loops.h"

namespace anydml {

inline constexpr uint32_t kGatherThreads = 256;
inline constexpr uint32_t kGatherLanes = 32;
// Units that each thread of a piece has in flight.
inline constexpr uint32_t kGatherUnitsPerThread = 4;
inline constexpr uint32_t kGatherPieceUnits = kGatherLanes * kGatherUnitsPerThread;
// For shorter rows, most threads of a piece would be idle.
inline constexpr uint64_t kGatherRowBytes = 512;

// Maps an offset in the indices to an offset in the input.
struct GatherTuples {
  DeviceIndices indices;
  uint32_t tuple_size = 1;
  GatherLoops::Component tuple[kMaxDimensions];  // input strides in bytes
};

struct GatherParameters {
  GatherTuples tuples;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  DeviceNest<3> nest;  // GatherLoops' operands: output and input in bytes, indices in indices
  uint32_t count = 0;  // kUnits: iterations of the nest; kRows: the same, times pieces
  // kRows: the nest loops over rows; each row has this many units, in this many pieces.
  uint32_t row_units = 0;
  FastDivisor pieces;
};

struct GatherNoteParameters {
  GatherTuples tuples;
  DeviceNest<1> nest;  // over tuples
  uint32_t count = 0;
  uint32_t* first_bad = nullptr;  // stored as the complement, so that cleared memory means none
  DataErrorNote* note = nullptr;
};

struct GatherPlan {
  enum class Kernel : uint8_t { kUnits, kRows };

  Kernel kernel = Kernel::kUnits;
  uint32_t element_bytes = 1;
  uint32_t max_unit_bytes = 1;  // as far as sizes and strides determine it; addresses may reduce it
  LoopNest<3> nest;             // as in the parameters, over elements
  GatherTuples tuples;

  GatherNoteParameters note;  // except addresses; first_bad is at the beginning of the temporary memory
  Grid note_grid;
  uint64_t temporary_bytes = 0;
};

// A launch of the plan's kernel. The parameters lack the addresses.
struct GatherLaunch {
  uint32_t unit_bytes = 1;  // that a thread reads and writes at one time
  Grid grid;
  GatherParameters parameters;
};

// Bytes of contiguous neighbours that one tuple moves in input and output; 0 if neighbours are not
// contiguous.
uint64_t GatherRowBytes(const GatherProblem& problem);

// kRows is for rows of kGatherRowBytes or more.
GatherPlan MakeGatherPlan(const GatherProblem& problem, GatherPlan::Kernel kernel,
                          const DeviceTraits& device);

// `addresses`: of input and output, or-ed together.
GatherLaunch LaunchOf(const GatherPlan& plan, uint64_t addresses);

}  // namespace anydml
