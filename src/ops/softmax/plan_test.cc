// Checks on the host which elements a GPU's threads process by the plan of a softmax.
#include "ops/softmax/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/plan_checks.h"

namespace anydml {
namespace {

SoftmaxProblem ProblemOf(DataType type, const std::vector<uint32_t>& sizes, AxisSet axes,
                         SoftmaxKind kind = SoftmaxKind::kSoftmax) {
  return {kind, PlanTensor(type, sizes), PlanTensor(type, sizes), axes};
}

void ExpectOnce(const std::vector<int>& visits) {
  for (const int count : visits) ASSERT_EQ(count, 1);
}

TEST(SoftmaxPlan, SetsTakeEveryElementOnce) {
  for (const std::vector<uint32_t>& sizes : std::vector<std::vector<uint32_t>>{
           {1, 1}, {5, 7}, {3, 300}, {300, 3}, {4, 5, 6}, {1, 1000}, {1000, 1}}) {
    for (AxisSet axes = 1; axes < 1u << sizes.size(); ++axes) {
      const SoftmaxSetsPlan plan = MakeSoftmaxSetsPlan(ProblemOf(DataType::kFloat32, sizes, axes));
      const SoftmaxSetParameters& p = plan.parameters;
      ExpectGrid(plan.grid, GpuTraits());
      ASSERT_EQ(p.columns * p.lanes, plan.grid.threads);
      std::vector<int> visits(uint64_t{p.set_count} * p.element_count);
      for (uint64_t t = 0; t < plan.grid.blocks * plan.grid.threads; ++t) {
        const uint64_t block = t / plan.grid.threads, thread = t % plan.grid.threads;
        const uint64_t set = block * p.columns + (p.lanes_first ? thread / p.lanes : thread % p.columns);
        if (set >= p.set_count) continue;
        uint64_t start[2], at[2];
        p.sets.OffsetsOf(static_cast<uint32_t>(set), start);
        for (uint64_t i = p.lanes_first ? thread % p.lanes : thread / p.columns; i < p.element_count;
             i += p.lanes) {
          p.elements.OffsetsOf(static_cast<uint32_t>(i), at);
          EXPECT_EQ(start[0] + at[0], start[1] + at[1]);
          ++visits.at(start[0] + at[0]);
        }
      }
      ExpectOnce(visits);
    }
  }
}

TEST(SoftmaxPlan, RowsTakeEveryUnitOnce) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const uint32_t per_unit = 128 / BitSize(type);
    for (const uint32_t units :
         {1u, 31u, 32u, 33u, 64u, 65u, 128u, 129u, 511u, 512u, 1024u, 4096u, 4097u, 8193u}) {
      for (const uint32_t rows : {1u, 3u, 4u, 5u}) {
        const SoftmaxProblem problem = ProblemOf(type, {rows, units * per_unit}, 2);
        ASSERT_EQ(WhyNoSoftmaxRows(problem), "");
        const SoftmaxRowsPlan plan = MakeSoftmaxRowsPlan(problem);
        const SoftmaxRowParameters& p = plan.parameters;
        ExpectGrid(plan.grid, GpuTraits());
        ASSERT_EQ(p.units, units);
        ASSERT_EQ(p.row_count, rows);
        // A row is processed by one warp of a block with several rows, or by the whole block.
        EXPECT_TRUE(p.lanes == kSoftmaxLanes || p.lanes == plan.grid.threads);
        const uint32_t most = plan.units_per_thread != 0 ? plan.units_per_thread : ~0u;
        EXPECT_TRUE(plan.units_per_thread == 0 || uint64_t{most} * per_unit <= 32);
        std::vector<int> visits(uint64_t{rows} * units);
        for (uint64_t t = 0; t < plan.grid.blocks * plan.grid.threads; ++t) {
          const uint64_t row = t / p.lanes;
          if (row >= p.row_count) continue;
          uint32_t count = 0;
          for (uint64_t u = t % p.lanes; u < p.units && count < most; u += p.lanes, ++count) {
            ++visits[row * units + u];
          }
        }
        ExpectOnce(visits);
      }
    }
  }
}

TEST(SoftmaxPlan, RowsAreWholeUnits) {
  EXPECT_EQ(WhyNoSoftmaxRows(ProblemOf(DataType::kFloat32, {5, 8}, 2)), "");
  EXPECT_NE(WhyNoSoftmaxRows(ProblemOf(DataType::kFloat16, {5, 12}, 2)), "");
  EXPECT_NE(WhyNoSoftmaxRows(ProblemOf(DataType::kFloat32, {8, 8}, 1)), "");
  SoftmaxProblem padded = ProblemOf(DataType::kFloat32, {5, 8}, 2);
  padded.output.strides[0] = 10;
  EXPECT_NE(WhyNoSoftmaxRows(padded), "");
}

TEST(SoftmaxPlan, HardmaxWritesEveryElementOnce) {
  struct Case {
    uint32_t sets, elements;
    bool sets_first;
  };
  for (const Case& c :
       {Case{1, 1, false}, {1, 900, false}, {900, 1, true}, {7, 300, false}, {300, 7, true}}) {
    LoopNest<2> sets;
    LoopNest<1> elements;
    sets.Append(c.sets, {1, c.sets_first ? 1 : c.elements});
    elements.Append(c.elements, {c.sets_first ? c.sets : 1});
    const DeviceTraits gpu = GpuTraits(1);
    const HardmaxPlan plan = MakeHardmaxPlan(sets, elements, gpu);
    const HardmaxParameters& p = plan.parameters;
    ExpectGrid(plan.grid, gpu);
    EXPECT_LE(plan.grid.blocks, 32u);
    std::vector<int> visits(c.sets * c.elements);
    for (uint64_t t = 0; t < plan.grid.blocks * plan.grid.threads; ++t) {
      for (uint64_t i = t; i < p.count; i += plan.grid.blocks * plan.grid.threads) {
        uint32_t inside;
        const uint32_t outside = p.inner.Divide(static_cast<uint32_t>(i), &inside);
        uint64_t set[2], element[1];
        p.sets.OffsetsOf(p.sets_first ? inside : outside, set);
        p.elements.OffsetsOf(p.sets_first ? outside : inside, element);
        ++visits.at(set[1] + element[0]);
      }
    }
    ExpectOnce(visits);
  }
}

TEST(SoftmaxPlan, LargestTensors) {
  const DeviceTraits gpu = GpuTraits();
  for (const std::vector<uint32_t>& sizes :
       std::vector<std::vector<uint32_t>>{{1, 0xFFFFFFF0}, {0xFFFFFFFF, 1}, {65535, 65536}}) {
    for (const AxisSet axes : {1u, 2u, 3u}) {
      const SoftmaxProblem problem = ProblemOf(DataType::kFloat32, sizes, axes);
      const SoftmaxSetsPlan sets = MakeSoftmaxSetsPlan(problem);
      ExpectGrid(sets.grid, gpu);
      EXPECT_EQ(uint64_t{sets.parameters.set_count} * sets.parameters.element_count,
                uint64_t{sizes[0]} * sizes[1]);
      EXPECT_GE(sets.grid.blocks * sets.parameters.columns, sets.parameters.set_count);
      if (!WhyNoSoftmaxRows(problem).empty()) continue;
      const SoftmaxRowsPlan rows = MakeSoftmaxRowsPlan(problem);
      ExpectGrid(rows.grid, gpu);
      EXPECT_EQ(uint64_t{rows.parameters.units} * 4 * rows.parameters.row_count,
                uint64_t{sizes[0]} * sizes[1]);
    }
  }
}

}  // namespace
}  // namespace anydml
