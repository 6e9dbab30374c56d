// Plan of GPU resampling in any layout: blocks and parameters. Plain data, the same for every GPU backend;
// the backend adds addresses and launches.
//
// - Copies, for nearest elements: a thread moves kResamplePerThread elements, kResampleCopyThreads apart.
// - Sums, for the other modes and for gradients: a thread adds the contributions to an element of the target.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/resample/levels.h"

namespace anydml {

// RESAMPLE has up to four dimensions, UPSAMPLE_2D changes two.
inline constexpr uint32_t kMaxLevels = 4;

inline constexpr uint32_t kResampleCopyThreads = 256;
inline constexpr uint32_t kResamplePerThread = 4;
inline constexpr uint32_t kResampleSumThreads = 128;

// Positions of a target's elements, for the threads that write them.
struct ResampleTargets {
  static constexpr uint32_t kNoLevel = ~0u;
  struct Loop {
    FastDivisor size;
    uint32_t source_stride = 0;  // if it has no level
    uint32_t target_stride = 0;
    uint32_t level = kNoLevel;
  };

  uint32_t count = 1;  // fewer than 2^32, as in every tensor
  uint32_t rank = 0;
  Loop loops[kMaxDimensions];  // the target's smallest stride is innermost
  // The last dimensions are the problem's, with the innermost sum last; earlier dimensions have size 1.
  ResampleAxis levels[kMaxLevels];
};

ResampleTargets MakeResampleTargets(const ResampleProblem& problem);

struct ResampleCopyParameters {
  const void* source = nullptr;
  void* target = nullptr;
  ResampleTargets targets;
};

struct ResampleCopyPlan {
  uint32_t element_bytes = 1;
  ResampleCopyParameters parameters;  // except addresses
  Grid grid;
};

ResampleCopyPlan MakeResampleCopyPlan(const ResampleProblem& problem);
// The same in units of kMaxUnitBytes, for addresses at multiples of it, if the neighbours in a dimension stay
// together (innermost channels). Empty if they do not, or if a size or stride is not a multiple of a unit.
std::optional<ResampleCopyPlan> MakeResampleUnitsPlan(const ResampleProblem& problem);

struct ResampleSumParameters {
  const void* source = nullptr;
  void* target = nullptr;
  DataType type = DataType::kFloat32;
  ResampleTargets targets;
};

struct ResampleSumsPlan {
  ResampleSumParameters parameters;  // except addresses
  Grid grid;
};

ResampleSumsPlan MakeResampleSumsPlan(const ResampleProblem& problem);

}  // namespace anydml
