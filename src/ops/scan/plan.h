// Plan of a GPU scan: kernel, blocks and parameters. Plain data, the same for every GPU backend; the backend
// adds addresses and launches.
//
// - kRows: a block (of kScanLanes threads for short sequences) processes one sequence after the other.
// - kColumns, if neighbours in memory belong to neighbouring sequences: a block has kScanColumns of them.
// - kSplit: a sequence has several parts. A first launch sums each part; a second launch, with as many
//   blocks, writes the elements.
#pragma once

#include <cstdint>

#include "kernel/device_traits.h"
#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/scan/problem.h"

namespace anydml {

enum class ScanKernel : uint8_t { kRows, kColumns, kSplit };

inline constexpr uint32_t kScanRowThreads = 256;
inline constexpr uint32_t kScanLanes = 32;
// Up to this size kScanLanes threads process a row.
inline constexpr uint32_t kScanShort = 1024;
inline constexpr uint32_t kScanColumns = 32;
inline constexpr uint32_t kScanColumnWarps = 32;
// Parts begin at multiples of this many elements.
inline constexpr uint32_t kScanPartMultiple = 16384;
// With more sequences, the totals of their parts would take too much memory.
inline constexpr uint64_t kScanMaxSplitSequences = (uint64_t{1} << 20) - 1;

struct ScanParameters {
  const void* input;
  void* output;
  void* totals;  // kSplit: one per part, of up to 8 bytes
  bool exclusive;
  bool reverse;
  bool in_units;  // rows can be read and written 16 bytes at a time
  uint32_t length;
  uint32_t sequences;
  uint32_t part_length;  // kSplit: of all parts but the last
  uint32_t parts;
  uint64_t input_stride;  // along the axis, in elements
  uint64_t output_stride;
  DeviceNest<2> nest;  // over sequences, in elements
};

struct ScanPlan {
  ScanKernel kernel = ScanKernel::kRows;
  ScanParameters parameters = {};  // except addresses and in_units
  bool rows_of_units = false;      // in_units, if input and output are at multiples of 16 bytes
  Grid grid;
  uint64_t temporary_bytes = 0;  // of totals
};

// kSplit is for at most kScanMaxSplitSequences sequences.
ScanPlan MakeScanPlan(const ScanProblem& problem, ScanKernel kernel, const DeviceTraits& device);

}  // namespace anydml
