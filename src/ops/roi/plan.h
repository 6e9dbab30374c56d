// Plan of GPU region pooling: blocks and parameters. Plain data, the same for every GPU backend; the backend
// adds addresses and launches. A thread computes an element of a grid or of the image's gradient; a block of
// kRegionSums threads computes a region's gradient.
#pragma once

#include <cstdint>

#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/roi/problem.h"

namespace anydml {

inline constexpr uint32_t kRoiThreads = 128;

struct RoiParameters {
  RoiProblem p;
  const void* image;
  const void* grid_in;  // the gradient
  const void* roi;
  const void* indices;
  void* grid_out;
  void* image_gradient;
  void* roi_gradient;
  uint32_t count;  // of elements that are written
  FastDivisor columns, rows, channels;
};

struct RoiLaunch {
  RoiParameters parameters = {};  // except addresses
  Grid grid;
};

// Grids of the forward operators.
RoiLaunch PlanRoiGrids(const RoiProblem& problem);
// For the gradient's outputs, which are independent of each other.
RoiLaunch PlanRoiImageGradient(const RoiProblem& problem);
RoiLaunch PlanRoiGradient(const RoiProblem& problem);

}  // namespace anydml
