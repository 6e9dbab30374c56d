#include "ops/pooling/plan.h"

namespace anydml {
namespace {

using namespace pooling;

// Blocks that fill every multiprocessor some times over.
Grid PoolingGrid(uint64_t count, const DeviceTraits& device) {
  Grid grid = GridOf(count, kPoolingThreads);
  grid.blocks = std::min<uint64_t>(grid.blocks, uint64_t{64} * device.multiprocessors);
  return grid;
}

}  // namespace

PoolingWindowsPlan MakePoolingWindowsPlan(const PoolingProblem& problem, const DeviceTraits& device) {
  PoolingWindowsPlan plan;
  WindowParameters& p = plan.parameters;
  p.function = problem.function;
  p.output_type = problem.output.type;
  p.index_type = problem.indices.type;
  p.include_padding = problem.include_padding;
  p.p = problem.p;
  p.windows = DeviceWindows(problem.shape, problem.output.present() ? problem.output : problem.indices);
  p.input_at = DevicePoolingTensor(problem.input);
  p.output_at = DevicePoolingTensor(problem.output);
  p.indices_at = DevicePoolingTensor(problem.indices);
  std::copy(problem.parameter_strides.begin(), problem.parameter_strides.end(), p.parameter_strides);
  plan.grid = PoolingGrid(p.windows.count, device);
  return plan;
}

PoolingGradientPlan MakePoolingGradientPlan(const PoolingGradProblem& problem, const DeviceTraits& device) {
  const PoolingShape& shape = problem.shape;
  PoolingGradientPlan plan;
  GradientParameters& p = plan.parameters;
  p.count = shape.Inputs();
  p.include_padding = problem.include_padding;
  p.channels = shape.channels;
  p.places.channels = FastDivisor(shape.channels);
  p.places.channels_last = HasChannelsLast(problem.output_gradient);
  for (uint32_t d = 0; d < kSpatialRank; ++d) {
    p.axes[d] = shape.axes[d];
    p.places.sizes[d] = FastDivisor(shape.axes[d].input);
  }
  p.gradient_at = DevicePoolingTensor(problem.input_gradient);
  p.output_at = DevicePoolingTensor(problem.output_gradient);
  plan.grid = PoolingGrid(p.count, device);
  return plan;
}

}  // namespace anydml
