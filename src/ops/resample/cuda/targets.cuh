// The places of a target's elements, for the threads that write them.
#pragma once

#include <cstdint>

#include "ops/resample/plan.h"

namespace anydml {

struct TargetPlace {
  uint64_t source = 0;  // of the dimensions without a level
  uint64_t target = 0;
  uint32_t at[kMaxLevels] = {};
};

__device__ inline TargetPlace PlaceOf(const ResampleTargets& targets, uint32_t number) {
  TargetPlace place;
  for (uint32_t d = targets.rank; d-- > 0;) {
    const ResampleTargets::Loop& loop = targets.loops[d];
    uint32_t at = number;
    if (d > 0) number = loop.size.Divide(number, &at);
    place.target += uint64_t{at} * loop.target_stride;
    if (loop.level == ResampleTargets::kNoLevel) {
      place.source += uint64_t{at} * loop.source_stride;
    } else {
      // With compile-time indices, the array stays in registers.
#pragma unroll
      for (uint32_t l = 0; l < kMaxLevels; ++l) {
        if (loop.level == l) place.at[l] = at;
      }
    }
  }
  return place;
}

}  // namespace anydml
