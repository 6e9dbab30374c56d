// Checks on the host which windows a GPU's threads process by the pooling plans.
#include "ops/pooling/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/plan_checks.h"

namespace anydml {
namespace {

using namespace pooling;

PoolingShape ShapeOf(uint32_t batch, uint32_t channels, uint32_t height, uint32_t width) {
  PoolingShape shape;
  shape.batch = batch;
  shape.channels = channels;
  shape.axes[1] = {.input = height, .windows = height - 1, .size = 2};
  shape.axes[2] = {.input = width, .windows = width - 2, .size = 3};
  return shape;
}

// Packed, {batch, channels, 1, height, width} or channels-last.
PoolingTensor TensorOf(uint64_t channels, uint64_t height, uint64_t width, bool channels_last) {
  PoolingTensor tensor;
  tensor.type = DataType::kFloat32;
  if (channels_last) {
    tensor.strides = {channels * height * width, 1, channels * height * width, channels * width, channels};
  } else {
    tensor.strides = {channels * height * width, height * width, height * width, width, 1};
  }
  return tensor;
}

// Whether the grid's threads process each of `count` positions exactly once; positions have distinct offsets,
// and neighbouring threads have neighbouring positions.
void ExpectEveryPlaceOnce(const PlaceNumbers& places, const DevicePoolingTensor& tensor, uint64_t count,
                          const Grid& grid) {
  ExpectGrid(grid, GpuTraits());
  std::vector<int> visits(count);
  for (uint64_t thread = 0; thread < grid.blocks * grid.threads; ++thread) {
    for (uint64_t i = thread; i < count; i += grid.blocks * grid.threads) {
      const uint64_t offset = tensor.Offset(places.At(static_cast<uint32_t>(i)));
      EXPECT_EQ(offset, i);
      ++visits.at(offset);
    }
  }
  for (const int visit : visits) ASSERT_EQ(visit, 1);
}

TEST(PoolingPlan, EveryWindowHasAThread) {
  for (const uint32_t multiprocessors : {1u, 132u}) {
    for (const bool channels_last : {false, true}) {
      for (const uint32_t width : {3u, 40u, 301u}) {
        PoolingProblem problem;
        problem.shape = ShapeOf(2, 5, 8, width);
        problem.input = TensorOf(5, 8, width, channels_last);
        problem.output = TensorOf(5, 7, width - 2, channels_last);
        const DeviceTraits gpu = GpuTraits(multiprocessors);
        const PoolingWindowsPlan plan = MakePoolingWindowsPlan(problem, gpu);
        const WindowParameters& p = plan.parameters;
        EXPECT_EQ(p.windows.count, problem.shape.Windows());
        EXPECT_EQ(p.windows.channels_last, channels_last);
        ExpectEveryPlaceOnce(p.windows, p.output_at, p.windows.count, plan.grid);
        EXPECT_LE(plan.grid.blocks, 64 * multiprocessors);
      }
    }
  }
}

// If only indices are written, their layout determines the order.
TEST(PoolingPlan, IndicesAlone) {
  PoolingProblem problem;
  problem.shape = ShapeOf(1, 4, 3, 5);
  problem.input = TensorOf(4, 3, 5, false);
  problem.indices = TensorOf(4, 2, 3, true);
  EXPECT_TRUE(MakePoolingWindowsPlan(problem, GpuTraits()).parameters.windows.channels_last);
}

TEST(PoolingPlan, EveryElementOfAGradientHasAThread) {
  for (const bool channels_last : {false, true}) {
    PoolingGradProblem problem;
    problem.shape = ShapeOf(3, 4, 9, 30);
    problem.input_gradient = TensorOf(4, 8, 28, channels_last);
    problem.output_gradient = TensorOf(4, 9, 30, channels_last);
    const PoolingGradientPlan plan = MakePoolingGradientPlan(problem, GpuTraits(1));
    const GradientParameters& p = plan.parameters;
    EXPECT_EQ(p.count, problem.shape.Inputs());
    ExpectEveryPlaceOnce(p.places, p.output_at, p.count, plan.grid);
  }
}

TEST(PoolingPlan, LargestTensors) {
  PoolingProblem problem;
  problem.shape.batch = 65535;
  problem.shape.axes[2] = {.input = 65537, .windows = 65537};
  problem.input = problem.output = TensorOf(1, 1, 65537, false);
  const PoolingWindowsPlan plan = MakePoolingWindowsPlan(problem, GpuTraits());
  EXPECT_EQ(plan.parameters.windows.count, 0xFFFFFFFFu);
  EXPECT_EQ(plan.grid.blocks, 64u * 132);
  EXPECT_EQ(plan.parameters.output_at.Offset(plan.parameters.windows.At(0xFFFFFFFE)), 0xFFFFFFFEu);
}

}  // namespace
}  // namespace anydml
