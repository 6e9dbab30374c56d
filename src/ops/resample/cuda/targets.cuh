// Where the elements of a target are, for the threads that write them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/device/nest.h"
#include "ops/resample/plan.h"

namespace anydml {

// RESAMPLE has up to four dimensions, UPSAMPLE_2D two in which something happens.
inline constexpr uint32_t kMaxLevels = 4;

struct DeviceTargets {
  static constexpr uint32_t kNoLevel = ~0u;
  struct Loop {
    FastDivisor size;
    uint32_t source_stride = 0;  // where it has no level
    uint32_t target_stride = 0;
    uint32_t level = kNoLevel;
  };

  uint32_t count = 1;  // fewer than 2^32, as in every tensor
  uint32_t rank = 0;
  Loop loops[kMaxDimensions];  // the target's neighbours innermost
  // The last ones are those of the problem, with the innermost sum last; those before have one element.
  ResampleAxis levels[kMaxLevels];

  explicit DeviceTargets(const ResampleProblem& problem) {
    const ResamplePlan plan(problem);
    for (uint32_t d = 0; d < plan.batch_rank; ++d) Add(plan.batch[d], plan.batch[d].to, kNoLevel);
    for (uint32_t l = 0; l < plan.level_count; ++l) {
      const uint32_t level = kMaxLevels - plan.level_count + l;
      levels[level] = plan.levels[l];
      Add(plan.levels[l], TargetSize(plan.levels[l], problem.gradient), level);
    }
    std::stable_sort(loops, loops + rank,
                     [](const Loop& a, const Loop& b) { return a.target_stride > b.target_stride; });
  }

  struct Place {
    uint64_t source = 0;  // of the dimensions without a level
    uint64_t target = 0;
    uint32_t at[kMaxLevels] = {};
  };

  __device__ Place PlaceOf(uint32_t number) const {
    Place place;
    for (uint32_t d = rank; d-- > 0;) {
      uint32_t at = number;
      if (d > 0) number = loops[d].size.Divide(number, &at);
      place.target += uint64_t{at} * loops[d].target_stride;
      if (loops[d].level == kNoLevel) {
        place.source += uint64_t{at} * loops[d].source_stride;
      } else {
        // Indices that the compiler knows keep the array in registers.
#pragma unroll
        for (uint32_t l = 0; l < kMaxLevels; ++l) {
          if (loops[d].level == l) place.at[l] = at;
        }
      }
    }
    return place;
  }

 private:
  void Add(const ResampleAxis& axis, uint32_t size, uint32_t level) {
    if (size == 1) return;
    loops[rank++] = {FastDivisor(size), axis.source_stride, axis.target_stride, level};
    count *= size;
  }
};

}  // namespace anydml
