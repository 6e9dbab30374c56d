// Executes on the host what a GPU's threads do by the plans of running totals and of NONZERO_COORDINATES.
#include "ops/scan/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "ops/scan/nonzero_plan.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

ScanProblem ProblemOf(DataType type, const std::vector<uint32_t>& sizes, uint32_t axis) {
  return {PlanTensor(type, sizes), PlanTensor(type, sizes), axis};
}

// How often each element of a sequence is visited, for every part of it.
std::vector<int> VisitsOf(const ScanPlan& plan) {
  const ScanParameters& p = plan.parameters;
  const uint64_t parts = plan.kernel == ScanKernel::kSplit ? p.parts : 1;
  std::vector<int> visits(p.sequences * parts);
  for (uint64_t block = 0; block < plan.grid.blocks; ++block) {
    switch (plan.kernel) {
      case ScanKernel::kSplit:
        ++visits.at(block);
        break;
      case ScanKernel::kColumns:
        for (uint64_t g = block; g < CeilDivide(p.sequences, kScanColumns); g += plan.grid.blocks) {
          for (uint64_t s = g * kScanColumns; s < std::min<uint64_t>((g + 1) * kScanColumns, p.sequences);
               ++s) {
            ++visits[s];
          }
        }
        break;
      default:
        for (uint64_t row = block; row < p.sequences; row += plan.grid.blocks) ++visits[row];
    }
  }
  return visits;
}

TEST(ScanPlan, EverySequenceIsDoneOnce) {
  const DeviceTraits gpu = GpuTraits();
  for (const ScanKernel kernel : {ScanKernel::kRows, ScanKernel::kColumns, ScanKernel::kSplit}) {
    for (const std::vector<uint32_t>& sizes : std::vector<std::vector<uint32_t>>{
             {1, 1}, {1, 1024}, {5, 1025}, {31, 3}, {33, 32}, {3, 100000}, {100, 16384}, {2, 1 << 20}}) {
      for (const uint32_t axis : {0u, 1u}) {
        const ScanPlan plan = MakeScanPlan(ProblemOf(DataType::kFloat32, sizes, axis), kernel, gpu);
        ExpectGrid(plan.grid, gpu);
        EXPECT_EQ(plan.parameters.length, sizes[axis]);
        EXPECT_EQ(plan.parameters.sequences, sizes[1 - axis]);
        for (const int count : VisitsOf(plan)) ASSERT_EQ(count, 1);
      }
    }
  }
}

TEST(ScanPlan, ShortRowsHaveFewThreads) {
  const auto threads = [](uint32_t length) {
    return MakeScanPlan(ProblemOf(DataType::kFloat32, {9, length}, 1), ScanKernel::kRows, GpuTraits())
        .grid.threads;
  };
  EXPECT_EQ(threads(1), kScanLanes);
  EXPECT_EQ(threads(kScanShort), kScanLanes);
  EXPECT_EQ(threads(kScanShort + 1), kScanRowThreads);
}

TEST(ScanPlan, PartsCoverASequenceAndTheirTotalsFit) {
  for (const uint32_t multiprocessors : {1u, 20u, 132u}) {
    for (const uint32_t length : {1u, 16384u, 16385u, 65536u, 1u << 20, (1u << 31) + 5}) {
      for (const uint32_t sequences : {1u, 2u, 100u}) {
        if (uint64_t{length} * sequences > 0xFFFFFFFF) continue;
        const ScanPlan plan = MakeScanPlan(ProblemOf(DataType::kFloat32, {sequences, length}, 1),
                                           ScanKernel::kSplit, GpuTraits(multiprocessors));
        const ScanParameters& p = plan.parameters;
        EXPECT_GE(uint64_t{p.parts} * p.part_length, length);
        EXPECT_LT(uint64_t{p.parts - 1} * p.part_length, length);
        if (p.parts > 1) {
          EXPECT_EQ(p.part_length % kScanPartMultiple, 0u);
        }
        EXPECT_LE(p.parts, 1024u);
        EXPECT_GE(plan.temporary_bytes, uint64_t{p.parts} * sequences * 8);
        EXPECT_EQ(plan.grid.blocks, uint64_t{p.parts} * sequences);
      }
    }
  }
  const ScanPlan most =
      MakeScanPlan(ProblemOf(DataType::kInt64, {(1 << 20) - 1, 4095}, 1), ScanKernel::kSplit, GpuTraits());
  EXPECT_EQ(most.grid.blocks, kScanMaxSplitSequences);
}

TEST(ScanPlan, UnitsWhereRowsAreAligned) {
  const auto in_units = [](const ScanProblem& problem) {
    return MakeScanPlan(problem, ScanKernel::kRows, GpuTraits()).rows_of_units;
  };
  EXPECT_TRUE(in_units(ProblemOf(DataType::kFloat16, {3, 64}, 1)));
  EXPECT_FALSE(in_units(ProblemOf(DataType::kFloat16, {3, 63}, 1)));
  EXPECT_FALSE(in_units(ProblemOf(DataType::kFloat16, {64, 64}, 0)));
  ScanProblem padded = ProblemOf(DataType::kFloat16, {3, 64}, 1);
  padded.output.strides[0] = 68;
  EXPECT_FALSE(in_units(padded));
}

TEST(ScanPlan, LargestTensors) {
  const DeviceTraits gpu = GpuTraits();
  for (const std::vector<uint32_t>& sizes :
       std::vector<std::vector<uint32_t>>{{1, 0xFFFFFFFF}, {0xFFFFFFFF, 1}, {65535, 65537}}) {
    for (const uint32_t axis : {0u, 1u}) {
      for (const ScanKernel kernel : {ScanKernel::kRows, ScanKernel::kColumns}) {
        const ScanPlan plan = MakeScanPlan(ProblemOf(DataType::kUInt32, sizes, axis), kernel, gpu);
        ExpectGrid(plan.grid, gpu);
        EXPECT_EQ(uint64_t{plan.parameters.length} * plan.parameters.sequences,
                  uint64_t{sizes[0]} * sizes[1]);
      }
    }
  }
}

NonzeroProblem NonzeroOf(DataType type, const std::vector<uint32_t>& sizes) {
  NonzeroProblem problem;
  problem.input = PlanTensor(type, sizes);
  problem.coordinates = PlanTensor(DataType::kUInt32, {static_cast<uint32_t>(ElementCount(problem.input)),
                                                       static_cast<uint32_t>(sizes.size())});
  return problem;
}

TEST(NonzeroPlan, TilesCoverEveryElement) {
  for (const uint32_t count : {1u, 65536u, 65537u, 4096u * 17, 4096u * 17 + 1, 0xFFFFFFFFu}) {
    const NonzeroPlan plan = MakeNonzeroPlan(NonzeroOf(DataType::kUInt8, {1, count}));
    constexpr uint64_t kTile = kNonzeroThreads * kNonzeroPerThread;
    EXPECT_EQ(plan.is_small, count <= 65536);
    EXPECT_EQ(plan.parameters.elements, count);
    EXPECT_EQ(plan.tiles_grid.blocks, plan.parameters.tiles);
    EXPECT_GE(plan.parameters.tiles * kTile, count);
    EXPECT_LT((plan.parameters.tiles - 1) * kTile, count);
    ExpectGrid(plan.tiles_grid, GpuTraits());
    EXPECT_EQ(plan.temporary_bytes, plan.is_small ? 0 : plan.parameters.tiles * uint64_t{4});
  }
}

TEST(NonzeroPlan, CoordinatesAndLayouts) {
  NonzeroProblem problem = NonzeroOf(DataType::kFloat16, {3, 5, 7});
  NonzeroPlan plan = MakeNonzeroPlan(problem);
  EXPECT_TRUE(plan.parameters.contiguous);
  EXPECT_EQ(plan.parameters.mask, 0x7FFFu);
  uint32_t number = 2 * 35 + 4 * 7 + 6;
  const uint32_t expected[] = {2, 4, 6};
  for (uint32_t c = 3; c-- > 0;) {
    uint32_t at;
    number = plan.parameters.sizes[c].Divide(number, &at);
    EXPECT_EQ(at, expected[c]);
  }
  problem.input.strides[2] = 2;
  plan = MakeNonzeroPlan(problem);
  EXPECT_FALSE(plan.parameters.contiguous);
  uint64_t at[1];
  plan.parameters.nest.OffsetsOf(36, at);
  EXPECT_EQ(at[0], 35u + 2);
}

}  // namespace
}  // namespace anydml
