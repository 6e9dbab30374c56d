// Many scalars into a large output. To write them one by one costs more than to copy it all: a
// million accesses to random places take 20 microseconds of an H200 when the cache has them and
// 50 when it does not. So positions are put in order by part of the output first, in large blocks
// that need no help from each other, and then every tile of the output is read, updated and
// written once.
#pragma once

#include "ops/scatter/cuda_kernels.cuh"

namespace anydml {

struct TilesParameters {
  DeviceTuples tuples;
  const std::byte* input;
  const std::byte* updates;
  std::byte* output;
  DataErrorNote* note;
  uint32_t slots;
  uint32_t bin_shift;  // slots >> bin_shift is the number of the bin
  uint32_t bins;
  uint32_t sorters;  // blocks that put positions in order

  // In temporary memory:
  uint32_t* first_bad;  // see KeepFirstBad; cleared if there is a note
  uint32_t* begins;     // of bin b in the list of sorter s, at [b * sorters + s]; b up to `bins`
  uint64_t* lists;      // slot << 32 | position; kSortedPositions for each sorter
};

inline constexpr uint32_t kSortedPositions = 8192;
// The first part of temporary memory, that is cleared.
inline constexpr uint64_t kTilesClearedBytes = 16;

// Slots are neighbours in input and output, in the order of their numbers.
TilesParameters PlanTiles(const DeviceTuples& tuples, uint64_t slots);
uint64_t TilesTemporaryBytes(const TilesParameters& parameters);
// Input and output are aligned to units.
void LaunchTiles(KernelChain* chain, uint32_t element_bytes, TilesParameters parameters,
                 std::byte* temporary);

}  // namespace anydml
