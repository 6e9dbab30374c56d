// Plan of ONE_HOT on a GPU: each thread writes a unit of neighbouring elements of the output. Plain data, the
// same for every GPU backend; the backend adds addresses and launches.
#pragma once

#include <cstdint>

#include "ops/device/grid.h"
#include "ops/device/indices.h"
#include "ops/device/nest.h"
#include "ops/one_hot/problem.h"

namespace anydml {

inline constexpr uint32_t kOneHotThreads = 256;

struct OneHotParameters {
  DeviceIndices indices;
  const void* values;
  void* output;
  uint64_t wrap;
  uint64_t on;
  uint32_t units;
  uint64_t index_step;  // between elements of a unit
  uint64_t place_step;
  DeviceNest<3> nest;  // over units, in elements
};

struct OneHotPlan {
  // Elements per unit: 16 bytes or one element.
  uint32_t unit_elements = 1;
  OneHotParameters parameters = {};  // except addresses
  Grid grid;
};

// `aligned`: the output begins at a multiple of kMaxUnitBytes.
OneHotPlan MakeOneHotPlan(const OneHotProblem& problem, bool aligned);

}  // namespace anydml
