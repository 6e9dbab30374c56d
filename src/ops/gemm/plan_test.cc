// Checks on the host which terms a GPU's blocks sum by the plans of products and convolutions.
#include "ops/gemm/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "ops/convolution/plan.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

// Whether every element of every matrix gets every step of k exactly once.
void ExpectEveryStepOnce(const ProductTiles& tiles, const Grid& grid, uint32_t matrices, uint32_t m,
                         uint32_t n, uint32_t k) {
  ExpectGrid(grid, GpuTraits());
  EXPECT_EQ(grid.threads, kTileThreads);
  std::vector<uint32_t> steps(uint64_t{matrices} * m * n);
  std::vector<int> splits(tiles.splits);
  for (uint64_t block = 0; block < grid.blocks; ++block) {
    for (uint64_t number = block; number < tiles.tiles; number += grid.blocks) {
      const TilePlace place(number, tiles.tile, m, n, matrices);
      const uint32_t begin = place.split * tiles.steps_per_split;
      const uint32_t end = std::min(k - begin, tiles.steps_per_split) + begin;
      ASSERT_LT(begin, k);
      ASSERT_LT(place.matrix, matrices);
      ++splits.at(place.split);
      for (uint32_t row = place.row; row < std::min(place.row + tiles.tile, m); ++row) {
        for (uint32_t column = place.column; column < std::min(place.column + tiles.tile, n); ++column) {
          steps[(uint64_t{place.matrix} * m + row) * n + column] += end - begin;
        }
      }
    }
  }
  for (const uint32_t count : steps) ASSERT_EQ(count, k);
  for (const int count : splits) EXPECT_GT(count, 0);
}

GemmProblem ProblemOf(uint64_t outer, uint64_t inner, uint64_t m, uint64_t n, uint64_t k) {
  GemmProblem problem;
  problem.batch = {outer, inner};
  problem.m = m, problem.n = n, problem.k = k;
  problem.a = {.batch = {inner * m * k, m * k}, .row = k, .column = 1};
  problem.b = {.batch = {inner * k * n, k * n}, .row = n, .column = 1};
  problem.output = {.batch = {inner * m * n, m * n}, .row = n, .column = 1};
  return problem;
}

TEST(GemmPlan, EveryStepIsAddedOnce) {
  struct Case {
    uint32_t outer, inner, m, n, k;
  };
  for (const uint32_t multiprocessors : {1u, 16u, 132u}) {
    for (const Case& c : {Case{1, 1, 1, 1, 1},
                          {1, 1, 32, 32, 16},
                          {1, 1, 33, 31, 17},
                          {1, 1, 128, 129, 511},
                          {1, 1, 7, 9, 100000},
                          {2, 3, 40, 50, 513},
                          {1, 1, 300, 260, 64},
                          {1, 1, 1, 400, 2048},
                          {5, 1, 64, 64, 256 * 130},
                          {1, 1, 65, 1, 257}}) {
      const GemmTiledPlan plan =
          MakeGemmTiledPlan(ProblemOf(c.outer, c.inner, c.m, c.n, c.k), {}, GpuTraits(multiprocessors));
      const GemmTiledParameters& p = plan.parameters;
      SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << "x" << c.k);
      EXPECT_EQ(p.batches, c.outer * c.inner);
      EXPECT_TRUE(p.plan.tile == 32 || p.plan.tile == 64 || p.plan.tile == 128);
      ExpectEveryStepOnce(p.plan, plan.grid, p.batches, c.m, c.n, c.k);
      const uint64_t elements = uint64_t{p.batches} * c.m * c.n;
      EXPECT_EQ(plan.temporary_bytes, p.plan.splits == 1 ? 0 : p.plan.splits * elements * 4);
      EXPECT_LE(p.plan.splits, 64u);
      ExpectThreadFor(elements, plan.parts_grid, GpuTraits());
    }
  }
}

TEST(GemmPlan, DeepProductsKeepTheDeviceBusy) {
  const GemmTiledPlan plan = MakeGemmTiledPlan(ProblemOf(1, 1, 32, 32, 1 << 16), {}, GpuTraits(132));
  EXPECT_GE(plan.grid.blocks, 60u);
  const GemmTiledPlan wide = MakeGemmTiledPlan(ProblemOf(1, 1, 4096, 4096, 4096), {}, GpuTraits(132));
  EXPECT_EQ(wide.parameters.plan.tile, 128u);
  EXPECT_EQ(wide.parameters.plan.splits, 1u);
}

TEST(GemmPlan, LargestTensors) {
  const GemmTiledPlan plan = MakeGemmTiledPlan(ProblemOf(1, 1, 65535, 65537, 1), {}, GpuTraits());
  EXPECT_EQ(plan.grid.blocks, uint64_t{512} * 513);
  ExpectGrid(plan.parts_grid, GpuTraits());
  const GemmTiledPlan thin = MakeGemmTiledPlan(ProblemOf(1, 0xFFFFFFFF, 1, 1, 1), {}, GpuTraits());
  EXPECT_EQ(thin.parameters.plan.tiles, 0xFFFFFFFFu);
  ExpectGrid(thin.grid, GpuTraits());
  const GemmTiledPlan deep = MakeGemmTiledPlan(ProblemOf(1, 1, 1, 1, 0xFFFFFFFF), {}, GpuTraits());
  const ProductTiles& tiles = deep.parameters.plan;
  EXPECT_GE(uint64_t{tiles.splits} * tiles.steps_per_split, 0xFFFFFFFFu);
  EXPECT_LT(uint64_t{tiles.splits - 1} * tiles.steps_per_split, 0xFFFFFFFFu);
}

TEST(GemmPlan, Limits) {
  SumLimits limits;
  EXPECT_TRUE(limits.Set({}));
  EXPECT_FALSE(limits.Any());
  limits.least = 0;
  limits.most = 6;
  const GemmTiledPlan plan = MakeGemmTiledPlan(ProblemOf(1, 1, 8, 8, 8), limits, GpuTraits());
  EXPECT_EQ(plan.parameters.limits.Of(-1), 0);
  EXPECT_EQ(plan.parameters.limits.Of(7), 6);
  EXPECT_EQ(plan.parameters.limits.Of(3), 3);
}

TEST(ConvolutionPlan, EveryStepIsAddedOnce) {
  for (const uint32_t channels : {1u, 3u, 700u}) {
    for (const uint32_t multiprocessors : {1u, 132u}) {
      ConvolutionProblem problem;
      problem.type = DataType::kFloat16;
      ConvolutionShape& shape = problem.shape;
      shape.outer = {2, 2};
      shape.input_channels = channels;
      shape.output_channels = 40;
      for (ConvolutionWindow& window : shape.windows) window.input = window.output = window.taps = 1;
      shape.windows[1].input = 9, shape.windows[1].output = 7, shape.windows[1].taps = 3;
      shape.windows[2].input = 11, shape.windows[2].output = 9, shape.windows[2].taps = 3;
      const ConvolutionTiledPlan plan = MakeConvolutionTiledPlan(problem, GpuTraits(multiprocessors));
      const DeviceShape& s = plan.parameters.shape;
      EXPECT_EQ(s.matrices, 4u);
      EXPECT_EQ(s.positions, 63u);
      EXPECT_EQ(s.steps, channels * 9);
      ExpectEveryStepOnce(s.plan, plan.grid, s.matrices, s.output_channels, s.positions, s.steps);
      EXPECT_EQ(plan.parts_bytes, s.plan.splits == 1 ? 0 : s.plan.splits * shape.Elements() * 4);
      EXPECT_EQ(s.taps[2].divisor(), 3u);
      EXPECT_EQ(s.outputs[1].divisor(), 7u);
      EXPECT_TRUE(plan.parameters.half_output);
    }
  }
}

}  // namespace
}  // namespace anydml
