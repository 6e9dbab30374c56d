// How a GPU gathers: which kernel, in how many blocks, with which parameters. Plain data, the same for every
// GPU backend, which adds addresses and launches.
//
// - kUnits: a thread per unit of the output.
// - kRows: kGatherLanes neighbouring threads per piece of a row, which is one of so many units.
// - For the note: kFindFirstBad finds the first tuple out of range, as many blocks as the device is busy
// with;
//   then kWriteNote, one thread, writes down what is there.
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
// Each thread of a piece has so many units under way.
inline constexpr uint32_t kGatherUnitsPerThread = 4;
inline constexpr uint32_t kGatherPieceUnits = kGatherLanes * kGatherUnitsPerThread;
// Shorter rows would leave most threads of a piece idle.
inline constexpr uint64_t kGatherRowBytes = 512;

// From an offset in the indices to one in the input.
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
  // kRows: the nest is over rows, which consist of so many units, in so many pieces.
  uint32_t row_units = 0;
  FastDivisor pieces;
};

struct GatherNoteParameters {
  GatherTuples tuples;
  DeviceNest<1> nest;  // over tuples
  uint32_t count = 0;
  uint32_t* first_bad = nullptr;  // stored as the complement, so that cleared memory means that there is none
  DataErrorNote* note = nullptr;
};

struct GatherPlan {
  enum class Kernel : uint8_t { kUnits, kRows };

  Kernel kernel = Kernel::kUnits;
  uint32_t element_bytes = 1;
  uint32_t max_unit_bytes = 1;  // as far as sizes and strides decide; addresses may allow less
  LoopNest<3> nest;             // as in the parameters, over elements
  GatherTuples tuples;

  GatherNoteParameters note;  // but for addresses; first_bad is at the beginning of the temporary memory
  Grid note_grid;
  uint64_t temporary_bytes = 0;
};

// A launch of the plan's kernel. The parameters lack the addresses.
struct GatherLaunch {
  uint32_t unit_bytes = 1;  // that a thread reads and writes at once
  Grid grid;
  GatherParameters parameters;
};

// The bytes of neighbours in input and output that one tuple brings; 0 where neighbours are apart.
uint64_t GatherRowBytes(const GatherProblem& problem);

// kRows is for rows of kGatherRowBytes or more.
GatherPlan MakeGatherPlan(const GatherProblem& problem, GatherPlan::Kernel kernel,
                          const DeviceTraits& device);

// `addresses`: of input and output, or-ed together.
GatherLaunch LaunchOf(const GatherPlan& plan, uint64_t addresses);

}  // namespace anydml
