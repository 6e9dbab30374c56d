// How a GPU finds what is not zero: in how many blocks, with which parameters. Plain data, the same for every
// GPU backend, which adds addresses and launches.
//
// One block does small tensors alone (kAll). For others three launches follow each other: kCount counts each
// tile's, kAddUp, one block, finds how many come before each tile, kWrite writes coordinates.
#pragma once

#include <cstdint>

#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/scan/nonzero.h"

namespace anydml {

inline constexpr uint32_t kNonzeroThreads = 256;        // kCount, kWrite
inline constexpr uint32_t kNonzeroSmallThreads = 1024;  // kAll, kAddUp
// Elements of a thread per tile: those of 32 threads are neighbours, 32 at a time.
inline constexpr uint32_t kNonzeroPerThread = 16;

struct NonzeroParameters {
  const void* input;
  uint32_t* count_output;
  uint32_t* coordinates;
  uint32_t* counts;  // per tile; then the number of elements before it
  uint32_t mask;
  uint32_t elements;
  uint32_t tiles;
  bool contiguous;
  DeviceNest<1> nest;  // row-major
  uint32_t columns;
  FastDivisor sizes[kMaxDimensions];
  uint64_t row_stride;
  uint64_t column_stride;
};

struct NonzeroPlan {
  NonzeroParameters parameters = {};  // but for addresses
  bool is_small = false;              // kAll does everything
  Grid tiles_grid;                    // of kCount and kWrite
  uint64_t temporary_bytes = 0;       // of counts
};

NonzeroPlan MakeNonzeroPlan(const NonzeroProblem& problem);

}  // namespace anydml
