// How a product is cut into blocks for a device.
#pragma once

#include <cstdint>

namespace anydml {

constexpr uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// With a rough count of the cycles that it takes then.
struct Cut {
  double cycles = -1;
  uint64_t row_tiles = 0, column_tiles = 0;
  uint32_t splits = 1;
  uint64_t per_split = 0;  // of the parts into which steps may be cut

  // The blocks of a tile add their sums up by themselves, in each other's memory.
  bool IsInCluster() const { return splits == 2 || splits == 4 || splits == 8; }
  bool HasSecondKernel() const { return splits > 1 && !IsInCluster(); }
};

// What is the product's own; `steps` in parts that are not cut.
struct CutProblem {
  uint64_t rows, columns, groups;
  uint64_t parts, steps_per_part, least_parts;
  uint32_t multiprocessors;
};

// The best number of splits for tiles of a kernel that does `rate` multiplications a cycle.
inline Cut CutFor(const CutProblem& p, uint64_t row_tiles, uint32_t tile_rows, uint32_t tile_columns,
                  uint32_t threads, double rate) {
  constexpr uint64_t kMostSplits = 32;
  constexpr double kStartCycles = 2000, kSecondKernelCycles = 4000, kBytesPerCycle = 1500;
  constexpr double kClusterCycles = 1500, kClusterBytesPerCycle = 24;
  Cut best;
  const uint64_t across = DivideUp(p.columns, tile_columns);
  for (uint64_t s = 1; s == 1 || (s <= kMostSplits && p.parts / s >= p.least_parts); ++s) {
    const uint64_t each = DivideUp(p.parts, s), splits = DivideUp(p.parts, each);
    const uint64_t turns = DivideUp(row_tiles * across * p.groups * splits, p.multiprocessors);
    // Warps of a multiprocessor hide each other's waiting.
    const uint64_t warps = turns * threads / 32;
    const double slow = warps <= 4 ? 1.4 : warps <= 8 ? 1.15 : 1.0;
    double cycles = static_cast<double>(turns * each * p.steps_per_part) * tile_rows * tile_columns / rate;
    cycles = cycles * slow + kStartCycles;
    const Cut cut = {0, row_tiles, across, static_cast<uint32_t>(splits), each};
    if (cut.IsInCluster()) {
      cycles += kClusterCycles + tile_rows * tile_columns * sizeof(float) / kClusterBytesPerCycle;
    } else if (cut.HasSecondKernel()) {
      const auto sums = static_cast<double>(p.rows * p.columns * p.groups * splits);
      cycles += kSecondKernelCycles + sums * 2 * sizeof(float) / kBytesPerCycle;
    }
    if (best.cycles >= 0 && cycles >= best.cycles) continue;
    best = cut;
    best.cycles = cycles;
  }
  return best;
}

}  // namespace anydml
