// How a GPU resamples in any layout: in how many blocks, with which parameters. Plain data, the same for
// every GPU backend, which adds addresses and launches.
//
// - Copies, of nearest elements: a thread moves kResamplePerThread of them, kResampleCopyThreads apart.
// - Sums, of all others and of gradients: a thread adds up what an element of the target takes.
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

// The places of a target's elements, for the threads that write them.
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
  Loop loops[kMaxDimensions];  // the target's smallest stride innermost
  // The last ones are those of the problem, with the innermost sum last; earlier ones have one element.
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
  ResampleCopyParameters parameters;  // but for addresses
  Grid grid;
};

ResampleCopyPlan MakeResampleCopyPlan(const ResampleProblem& problem);
// The same of units of kMaxUnitBytes, for addresses at multiples of that, where a dimension's neighbours stay
// together (channels that are innermost). None where they do not, or something is no multiple of a unit.
std::optional<ResampleCopyPlan> MakeResampleUnitsPlan(const ResampleProblem& problem);

struct ResampleSumParameters {
  const void* source = nullptr;
  void* target = nullptr;
  DataType type = DataType::kFloat32;
  ResampleTargets targets;
};

struct ResampleSumsPlan {
  ResampleSumParameters parameters;  // but for addresses
  Grid grid;
};

ResampleSumsPlan MakeResampleSumsPlan(const ResampleProblem& problem);

}  // namespace anydml
