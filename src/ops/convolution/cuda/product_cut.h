// How a product is cut into blocks for a device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace anydml {

constexpr uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// A cut and a rough estimate of its cycles.
struct Cut {
  double cycles = -1;
  uint64_t row_tiles = 0, column_tiles = 0;
  uint32_t splits = 1;
  uint64_t per_split = 0;  // steps per split, in units that cannot be cut

  // Blocks of a tile that start together, as a cluster, add their sums through each other's shared memory;
  // otherwise a second kernel adds them.
  bool in_cluster = false;

  bool HasSecondKernel() const { return splits > 1 && !in_cluster; }
};

// The product's properties; `steps` counts units that cannot be cut.
struct CutProblem {
  uint64_t rows, columns, groups;
  uint64_t parts, steps_per_part, least_parts;
  uint32_t multiprocessors;
  bool has_second_kernel = true;  // if one is needed
};

// A rough estimate of the cycles of a product with this cut. `blocks`: the most per multiprocessor at a time.
inline double CyclesOf(const CutProblem& p, const Cut& cut, uint32_t tile_rows, uint32_t tile_columns,
                       uint32_t threads, double rate, uint64_t blocks) {
  constexpr double kStartCycles = 2000, kSecondKernelCycles = 4000, kBytesPerCycle = 1500;
  constexpr double kClusterCycles = 1500, kClusterBytesPerCycle = 24;
  const uint64_t tiles = cut.row_tiles * cut.column_tiles * p.groups;
  // The blocks of a cluster must be near each other, which leaves some multiprocessors idle, except with
  // pairs.
  const uint64_t near = cut.splits == 2 ? p.multiprocessors : p.multiprocessors * 31 / 32;
  const uint64_t clusters = std::max<uint64_t>(near / cut.splits, 1);
  const uint64_t turns =
      cut.in_cluster ? DivideUp(tiles, clusters) : DivideUp(tiles * cut.splits, p.multiprocessors);
  // Warps of a multiprocessor hide each other's latency.
  const uint64_t warps = std::min(turns, blocks) * threads / 32;
  const double slow = warps <= 4 ? 1.4 : warps <= 8 ? 1.15 : 1.0;
  const double steps = static_cast<double>(turns * cut.per_split * p.steps_per_part);
  const double cycles = steps * tile_rows * tile_columns / rate * slow + kStartCycles;
  if (cut.in_cluster)
    return cycles + kClusterCycles + tile_rows * tile_columns * sizeof(float) / kClusterBytesPerCycle;
  if (!cut.HasSecondKernel()) return cycles;
  const auto sums = static_cast<double>(p.rows * p.columns * p.groups * cut.splits);
  return cycles + kSecondKernelCycles + sums * 2 * sizeof(float) / kBytesPerCycle;
}

// The best number of splits for the tiles of a kernel with `rate` multiplications per cycle and `blocks` per
// multiprocessor at a time.
inline Cut CutFor(const CutProblem& p, uint64_t row_tiles, uint32_t tile_rows, uint32_t tile_columns,
                  uint32_t threads, double rate, uint64_t blocks) {
  constexpr uint64_t kMostSplits = 32;
  Cut best;
  for (uint64_t s = 1; s == 1 || (s <= kMostSplits && p.parts / s >= p.least_parts); ++s) {
    Cut cut = {.row_tiles = row_tiles, .column_tiles = DivideUp(p.columns, tile_columns)};
    cut.per_split = DivideUp(p.parts, s);
    cut.splits = static_cast<uint32_t>(DivideUp(p.parts, cut.per_split));
    const bool may_cluster = cut.splits == 2 || cut.splits == 4 || cut.splits == 8;
    for (cut.in_cluster = may_cluster;; cut.in_cluster = false) {
      if (cut.HasSecondKernel() && !p.has_second_kernel) break;
      cut.cycles = CyclesOf(p, cut, tile_rows, tile_columns, threads, rate, blocks);
      if (best.cycles < 0 || cut.cycles < best.cycles) best = cut;
      if (!cut.in_cluster) break;
    }
  }
  return best;
}

}  // namespace anydml
