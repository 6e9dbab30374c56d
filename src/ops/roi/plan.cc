#include "ops/roi/plan.h"

#include "ops/roi/samples.h"

namespace anydml {
namespace {

RoiLaunch LaunchFor(const RoiProblem& problem, uint32_t outer, uint32_t rows, uint32_t columns) {
  RoiLaunch launch;
  RoiParameters& p = launch.parameters;
  p.p = problem;
  p.columns = FastDivisor(columns);
  p.rows = FastDivisor(rows);
  p.channels = FastDivisor(problem.channels);
  p.count = outer * problem.channels * rows * columns;  // elements of a tensor: fewer than 2^32
  launch.grid = GridOf(p.count, kRoiThreads);
  return launch;
}

}  // namespace

RoiLaunch PlanRoiGrids(const RoiProblem& problem) {
  return LaunchFor(problem, problem.regions, problem.grid_height, problem.grid_width);
}

RoiLaunch PlanRoiImageGradient(const RoiProblem& problem) {
  return LaunchFor(problem, problem.images, problem.height, problem.width);
}

RoiLaunch PlanRoiGradient(const RoiProblem& problem) {
  RoiLaunch launch = PlanRoiGrids(problem);
  launch.grid = {problem.regions, kRegionSums};
  return launch;
}

}  // namespace anydml
