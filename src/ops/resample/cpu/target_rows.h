// The rows in which a target is written: along its dimension with the smallest stride.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/common/loop_nest.h"
#include "ops/resample/levels.h"

namespace anydml {

struct TargetRows {
  static constexpr uint32_t kNone = ~0u;
  using Coordinates = std::array<uint32_t, kMaxDimensions>;  // in the levels

  uint32_t level_count = 0;
  std::array<ResampleAxis, kMaxDimensions> levels{};
  Coordinates sizes{};         // of the target's levels; 1 for the row's own
  uint32_t row_level = kNone;  // kNone: the row is an unchanged dimension
  ResampleAxis row;
  uint32_t row_width = 1;  // contiguous numbers that form an element of the row's level (channels of a pixel)
  LoopNest<2> batch;       // source, target
  uint64_t count = 1;

  explicit TargetRows(const ResampleProblem& problem) {
    const ResampleLevels plan(problem);
    level_count = plan.level_count;
    levels = plan.levels;
    uint32_t nearest = kNone, row_batch = kNone;
    for (uint32_t l = 0; l < level_count; ++l) {
      sizes[l] = TargetSize(levels[l], problem.gradient);
      if (sizes[l] == 1 || levels[l].target_stride > nearest) continue;
      row_level = l;
      nearest = levels[l].target_stride;
    }
    for (uint32_t d = 0; d < plan.batch_rank; ++d) {
      if (plan.batch[d].target_stride > nearest) continue;
      row_level = kNone;
      row_batch = d;
      nearest = plan.batch[d].target_stride;
    }
    if (row_level != kNone) {
      row = levels[row_level];
      sizes[row_level] = 1;
    } else if (row_batch != kNone) {
      row = plan.batch[row_batch];
      FindWideRow();
    }
    for (uint32_t d = 0; d < plan.batch_rank; ++d) {
      const ResampleAxis& axis = plan.batch[d];
      if (d != row_batch) batch.Append(axis.to, {axis.source_stride, axis.target_stride});
    }
    count = Iterations(batch);
    for (uint32_t l = 0; l < level_count; ++l) count *= sizes[l];
  }

  uint64_t source_length(bool gradient) const { return uint64_t{SourceSize(row, gradient)} * row_width; }
  uint64_t target_length(bool gradient) const { return uint64_t{TargetSize(row, gradient)} * row_width; }

  // Calls body(at, source, target) for rows [begin, end): coordinates in the levels, the offset of the batch
  // in the source and that of the row in the target.
  template <typename Body>
  void ForEach(uint64_t begin, uint64_t end, Body&& body) const {
    Coordinates at{};
    uint64_t rest = begin;
    for (uint32_t l = level_count; l-- > 0;) {
      at[l] = static_cast<uint32_t>(rest % sizes[l]);
      rest /= sizes[l];
    }
    LoopNest<2>::Offsets offsets = OffsetsOf(batch, rest);
    for (uint64_t number = begin; number < end; ++number) {
      uint64_t target = offsets[1];
      for (uint32_t l = 0; l < level_count; ++l) target += uint64_t{at[l]} * levels[l].target_stride;
      body(static_cast<const Coordinates&>(at), offsets[0], target);
      uint32_t l = level_count;
      while (l > 0 && ++at[l - 1] == sizes[l - 1]) at[--l] = 0;
      if (l == 0) offsets = OffsetsOf(batch, ++rest);
    }
  }

 private:
  static constexpr uint64_t kLongestWideRow = 1 << 16;

  // If the row is an unchanged dimension whose copies are contiguous along a level, in source and target, it
  // becomes part of that level's rows.
  void FindWideRow() {
    const uint32_t width = row.to;
    if (row.source_stride != 1 || row.target_stride != 1) return;
    for (uint32_t l = 0; l < level_count; ++l) {
      const ResampleAxis& level = levels[l];
      if (level.source_stride != width || level.target_stride != width) continue;
      if (uint64_t{width} * std::max(level.from, level.to) > kLongestWideRow) continue;
      row_level = l;
      row = level;
      row.source_stride = row.target_stride = 1;
      row_width = width;
      sizes[l] = 1;
      return;
    }
  }
};

}  // namespace anydml
