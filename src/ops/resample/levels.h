// A problem taken apart, for the kernels of both backends: dimensions in which nothing happens, and levels,
// in which something does.
#pragma once

#include <array>
#include <cstdint>

#include "ops/resample/taps.h"

namespace anydml {

constexpr uint32_t SourceSize(const ResampleAxis& axis, bool gradient) {
  return gradient ? axis.to : axis.from;
}
constexpr uint32_t TargetSize(const ResampleAxis& axis, bool gradient) {
  return gradient ? axis.from : axis.to;
}

// Elements stay where they are. Nearest ones are asked one by one, as far as that is quickly done.
inline bool KeepsElements(const ResampleAxis& axis) {
  constexpr uint32_t kQuickly = 1 << 16;
  if (axis.from != axis.to) return false;
  if (axis.rule == ResampleRule::kSame) return true;
  if (axis.rule >= ResampleRule::kLinear || axis.scale != 1 || axis.to > kQuickly) return false;
  for (uint32_t i = 0; i < axis.to; ++i) {
    if (NearestIndex(axis, i) != i) return false;
  }
  return true;
}

struct ResampleLevels {
  uint32_t batch_rank = 0;
  std::array<ResampleAxis, kMaxDimensions> batch{};  // in order; of size 2 and more
  uint32_t level_count = 0;
  std::array<ResampleAxis, kMaxDimensions> levels{};  // in order: sums along the last are the innermost

  explicit ResampleLevels(const ResampleProblem& problem) {
    for (uint32_t d = 0; d < problem.rank; ++d) {
      const ResampleAxis& axis = problem.axes[d];
      if (!KeepsElements(axis)) {
        levels[level_count++] = axis;
      } else if (axis.from > 1) {
        batch[batch_rank++] = axis;
      }
    }
  }
};

}  // namespace anydml
