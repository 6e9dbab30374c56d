// A problem decomposed for the kernels of all backends: unchanged dimensions, and levels, which change.
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

// Whether elements stay in place. For nearest elements it tests them one by one, if that is quick.
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
