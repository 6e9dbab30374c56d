// Checks on the host which elements a GPU's threads write by the plans of RESAMPLE and of regions.
#include "ops/resample/plan.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ops/roi/plan.h"
#include "ops/roi/samples.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

// Packed {2, 3, height, width}, resampled along the last two; `channels_last`: channels are innermost.
ResampleProblem ProblemOf(ResampleRule rule, DataType type, bool channels_last, uint32_t channels = 3) {
  ResampleProblem problem;
  problem.type = type;
  problem.rank = 4;
  const uint32_t from[] = {2, channels, 5, 6}, to[] = {2, channels, 10, 9};
  const uint32_t order[] = {0, channels_last ? 2u : 1u, channels_last ? 3u : 2u, channels_last ? 1u : 3u};
  uint32_t source = 1, target = 1;
  for (uint32_t i = 4; i-- > 0;) {
    const uint32_t d = order[i];
    ResampleAxis& axis = problem.axes[d];
    axis = {from[d], to[d], static_cast<float>(to[d]) / static_cast<float>(from[d]), 0, 0, rule,
            source,  target};
    if (from[d] == to[d]) axis.rule = ResampleRule::kSame;
    source *= from[d];
    target *= to[d];
  }
  return problem;
}

// The target of element `number`, as the kernels compute it.
uint64_t TargetOf(const ResampleTargets& targets, uint32_t number, uint32_t (&at)[kMaxLevels]) {
  uint64_t target = 0;
  for (uint32_t d = targets.rank; d-- > 0;) {
    uint32_t index = number;
    if (d > 0) number = targets.loops[d].size.Divide(number, &index);
    target += uint64_t{index} * targets.loops[d].target_stride;
    if (targets.loops[d].level != ResampleTargets::kNoLevel) at[targets.loops[d].level] = index;
  }
  return target;
}

void ExpectEveryElementOnce(const ResampleTargets& targets, uint64_t elements) {
  ASSERT_EQ(targets.count, elements);
  std::vector<int> visits(elements);
  for (uint32_t number = 0; number < targets.count; ++number) {
    uint32_t at[kMaxLevels] = {};
    ++visits.at(TargetOf(targets, number, at));
    for (uint32_t l = 0; l < kMaxLevels; ++l) {
      EXPECT_LT(at[l], std::max(targets.levels[l].to, targets.levels[l].from));
    }
  }
  for (const int count : visits) ASSERT_EQ(count, 1);
}

TEST(ResamplePlan, EveryElementIsWrittenOnce) {
  for (const bool channels_last : {false, true}) {
    ResampleProblem problem = ProblemOf(ResampleRule::kLinear, DataType::kFloat32, channels_last);
    const ResampleSumsPlan sums = MakeResampleSumsPlan(problem);
    ExpectEveryElementOnce(sums.parameters.targets, 2 * 3 * 10 * 9);
    ExpectThreadFor(540, sums.grid, GpuTraits());
    // Neighbouring threads write neighbouring elements.
    const ResampleTargets& targets = sums.parameters.targets;
    EXPECT_EQ(targets.loops[targets.rank - 1].target_stride, 1u);
    const ResampleCopyPlan copies =
        MakeResampleCopyPlan(ProblemOf(ResampleRule::kFloor, DataType::kFloat16, channels_last));
    ExpectEveryElementOnce(copies.parameters.targets, 2 * 3 * 10 * 9);
    EXPECT_EQ(copies.element_bytes, 2u);
    EXPECT_EQ(copies.grid.blocks, 1u);
  }
}

TEST(ResamplePlan, GradientsHaveTheInputsSizes) {
  ResampleProblem problem = ProblemOf(ResampleRule::kLinear, DataType::kFloat32, false);
  problem.gradient = true;
  for (uint32_t d = 0; d < 4; ++d) std::swap(problem.axes[d].source_stride, problem.axes[d].target_stride);
  ExpectEveryElementOnce(MakeResampleSumsPlan(problem).parameters.targets, 2 * 3 * 5 * 6);
}

TEST(ResamplePlan, UnitsOfChannels) {
  const auto units = [](DataType type, bool channels_last, uint32_t channels) {
    return MakeResampleUnitsPlan(ProblemOf(ResampleRule::kFloor, type, channels_last, channels));
  };
  const auto plan = units(DataType::kFloat16, true, 24);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->element_bytes, 16u);
  ExpectEveryElementOnce(plan->parameters.targets, 2 * 3 * 10 * 9);
  EXPECT_FALSE(units(DataType::kFloat16, true, 20).has_value());
  EXPECT_FALSE(units(DataType::kFloat16, false, 24).has_value());
}

TEST(ResamplePlan, LargestTensors) {
  ResampleProblem problem = ProblemOf(ResampleRule::kFloor, DataType::kUInt8, false);
  problem.rank = 1;
  problem.axes[0] = {1, 0xFFFFFFFF, 1, 0, 0, ResampleRule::kFloor, 1, 1};
  const ResampleCopyPlan copies = MakeResampleCopyPlan(problem);
  EXPECT_EQ(copies.parameters.targets.count, 0xFFFFFFFFu);
  EXPECT_EQ(copies.grid.blocks, uint64_t{1} << 22);
  const ResampleSumsPlan sums = MakeResampleSumsPlan(problem);
  ExpectThreadFor(0xFFFFFFFF, sums.grid, GpuTraits());
}

TEST(RoiPlan, EveryNumberHasAThread) {
  RoiProblem problem;
  problem.images = 2, problem.channels = 3, problem.height = 20, problem.width = 30;
  problem.regions = 5, problem.grid_height = 7, problem.grid_width = 4;
  const RoiLaunch grids = PlanRoiGrids(problem), gradient = PlanRoiImageGradient(problem);
  EXPECT_EQ(grids.parameters.count, 5u * 3 * 7 * 4);
  EXPECT_EQ(gradient.parameters.count, 2u * 3 * 20 * 30);
  for (const RoiLaunch& launch : {grids, gradient}) {
    const RoiParameters& p = launch.parameters;
    ExpectThreadFor(p.count, launch.grid, GpuTraits());
    std::set<std::vector<uint32_t>> places;
    for (uint32_t number = 0; number < p.count; ++number) {
      uint32_t column, row, channel;
      const uint32_t outer =
          p.channels.Divide(p.rows.Divide(p.columns.Divide(number, &column), &row), &channel);
      places.insert({outer, channel, row, column});
    }
    EXPECT_EQ(places.size(), p.count);
    EXPECT_EQ(*places.rbegin(),
              (std::vector<uint32_t>{p.count / (3 * p.rows.divisor() * p.columns.divisor()) - 1, 2,
                                     p.rows.divisor() - 1, p.columns.divisor() - 1}));
  }
  const RoiLaunch regions = PlanRoiGradient(problem);
  EXPECT_EQ(regions.grid.blocks, 5u);
  EXPECT_EQ(regions.grid.threads, kRegionSums);
}

}  // namespace
}  // namespace anydml
