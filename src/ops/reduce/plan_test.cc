// Checks on the host which elements a GPU's threads add by the plan of a reduction.
#include "ops/reduce/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ops/device/units.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

ReduceProblem ProblemOf(DataType type, const std::vector<uint32_t>& sizes, AxisSet axes,
                        ReduceFunction function = ReduceFunction::kSum) {
  ReduceProblem problem;
  problem.function = function;
  problem.input = PlanTensor(type, sizes);
  std::vector<uint32_t> kept = sizes;
  for (uint32_t d = 0; d < sizes.size(); ++d) {
    if (Has(axes, d)) kept[d] = 1;
  }
  problem.output = PlanTensor(type, kept);
  problem.axes = axes;
  return problem;
}

// How often each element of each output, or each partial result of it, is added.
constexpr uint64_t kNobody = ~uint64_t{0};
using Visits = std::vector<std::vector<int>>;

// The outputs and elements that a thread processes.
struct Share {
  uint64_t first_output, outputs;
  uint64_t begin, end, step, group;  // groups of `group` elements, `step` apart
};

class Threads {
 public:
  Threads(const ReduceLaunch& launch, uint32_t per_unit) : launch_(launch), per_unit_(per_unit) {}

  // Also checks that each partial result is written by one block.
  Visits Count(std::vector<uint64_t>* writers) const {
    const ReduceParameters& p = launch_.parameters;
    const uint64_t addends = p.merges ? p.segments : p.elements;
    if (writers != nullptr) writers->assign(uint64_t{p.outputs} * p.segments, kNobody);
    Visits visits(p.outputs, std::vector<int>(addends));
    for (uint64_t block = 0; block < launch_.grid.blocks; ++block) {
      for (uint32_t thread = 0; thread < launch_.grid.threads; ++thread) {
        const Share share = ShareOf(block, thread);
        for (uint64_t o = share.first_output; o < share.first_output + share.outputs && o < p.outputs; ++o) {
          for (uint64_t i = share.begin; i < share.end; i += share.step) {
            for (uint64_t e = i; e < std::min(i + share.group, share.end); ++e) ++visits[o][e];
          }
          if (writers == nullptr) continue;
          uint64_t& writer = (*writers)[o * p.segments + block % p.segments];
          EXPECT_TRUE(writer == kNobody || writer == block);
          writer = block;
        }
      }
    }
    return visits;
  }

 private:
  Share ShareOf(uint64_t block, uint32_t thread) const {
    const ReduceParameters& p = launch_.parameters;
    const uint64_t parts = p.merges ? 1 : p.segments, group = block / parts;
    const uint64_t begin = p.merges ? 0 : block % parts * p.segment;
    const uint64_t end = p.merges ? p.segments : std::min<uint64_t>(begin + p.segment, p.elements);
    switch (launch_.kernel) {
      case ReduceKernel::kRows:
        EXPECT_EQ(begin % per_unit_, 0u);
        return {group * p.columns + thread / p.lanes, 1,        begin + thread % p.lanes * per_unit_, end,
                uint64_t{p.lanes} * per_unit_,        per_unit_};
      case ReduceKernel::kColumns: {
        const uint32_t groups = kReduceThreads / p.columns;
        return {(group * p.columns + thread % p.columns) * per_unit_,
                per_unit_,
                begin + thread / p.columns,
                end,
                groups,
                1};
      }
      default:
        EXPECT_EQ(p.columns * p.lanes, launch_.grid.threads);
        return {group * p.columns + (p.lanes_first ? thread / p.lanes : thread % p.columns),
                1,
                begin + (p.lanes_first ? thread % p.lanes : thread / p.columns),
                end,
                p.lanes,
                1};
    }
  }

  const ReduceLaunch& launch_;
  const uint32_t per_unit_;
};

void ExpectOnce(const Visits& visits) {
  for (const std::vector<int>& output : visits) {
    for (const int count : output) ASSERT_EQ(count, 1);
  }
}

ReduceLaunch ExpectEveryElementOnce(const ReduceProblem& problem, const DeviceTraits& device,
                                    uint64_t address) {
  const ReducePlan plan = MakeReducePlan(problem, device);
  const uint32_t per_unit = kMaxUnitBytes / (BitSize(problem.input.type) / 8);
  const ReduceLaunch launch = LaunchOf(plan, address);
  ExpectGrid(launch.grid, device);
  std::vector<uint64_t> writers;
  ExpectOnce(Threads(launch, per_unit).Count(&writers));
  const ReduceParameters& p = launch.parameters;
  EXPECT_EQ(std::count(writers.begin(), writers.end(), kNobody), 0);
  if (p.segments > 1) {
    EXPECT_GE(plan.temporary_bytes, uint64_t{p.outputs} * p.segments * kReducePartialBytes);
    const ReduceLaunch merge = MergeLaunchOf(plan, launch);
    ExpectGrid(merge.grid, device);
    ExpectOnce(Threads(merge, per_unit).Count(nullptr));
  }
  return launch;
}

TEST(ReducePlan, EveryElementIsAddedOnce) {
  const std::vector<std::vector<uint32_t>> shapes = {
      {1, 1},    {1, 7},      {7, 1},     {3, 5, 7},  {2, 64, 64}, {65, 40},     {8, 2100},
      {2100, 8}, {4, 3, 520}, {1, 70000}, {70000, 1}, {64, 96},    {300, 2, 33}, {1030, 64}};
  for (const uint32_t multiprocessors : {1u, 132u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kInt8}) {
      for (const std::vector<uint32_t>& sizes : shapes) {
        for (AxisSet axes = 1; axes < 1u << sizes.size(); ++axes) {
          for (const uint64_t address : {uint64_t{0}, uint64_t{4}}) {
            SCOPED_TRACE(testing::Message() << testing::PrintToString(sizes) << " axes " << axes);
            ExpectEveryElementOnce(ProblemOf(type, sizes, axes), GpuTraits(multiprocessors), address);
          }
        }
      }
    }
  }
}

TEST(ReducePlan, UnitsWhereTheyAreAligned) {
  const DeviceTraits gpu = GpuTraits();
  const auto kernel = [&](const ReduceProblem& problem, uint64_t address) {
    return LaunchOf(MakeReducePlan(problem, gpu), address).kernel;
  };
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat32, {100, 128}, 2), 0), ReduceKernel::kRows);
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat32, {100, 128}, 2), 4), ReduceKernel::kAny);
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat32, {100, 127}, 2), 0), ReduceKernel::kAny);
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat16, {100, 132}, 2), 0), ReduceKernel::kAny);
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat16, {100, 128}, 1), 0), ReduceKernel::kColumns);
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat16, {100, 60}, 1), 0), ReduceKernel::kAny);
  EXPECT_EQ(kernel(ProblemOf(DataType::kInt32, {100, 128}, 2), 0), ReduceKernel::kAny);
  EXPECT_EQ(kernel(ProblemOf(DataType::kFloat32, {100, 128}, 2, ReduceFunction::kMultiply), 0),
            ReduceKernel::kAny);
}

TEST(ReducePlan, SumsOfEverythingKeepTheDeviceBusy) {
  const DeviceTraits gpu = GpuTraits(16);
  for (const ReduceProblem& problem :
       {ProblemOf(DataType::kFloat32, {1, 1 << 20}, 2), ProblemOf(DataType::kInt32, {1, 1 << 20}, 2),
        ProblemOf(DataType::kFloat32, {1 << 14, 64}, 1)}) {
    const ReduceLaunch launch = ExpectEveryElementOnce(problem, gpu, 0);
    EXPECT_GE(launch.grid.blocks, 16u);
    EXPECT_LE(launch.grid.blocks, 128u);
  }
}

// 2^32 - 1 elements: as one output, as that many outputs, and in between.
TEST(ReducePlan, LargestTensors) {
  const DeviceTraits gpu = GpuTraits();
  for (const std::vector<uint32_t>& sizes : std::vector<std::vector<uint32_t>>{
           {1, 0xFFFFFFFF}, {0xFFFFFFFF, 1}, {65535, 65537}, {3, 1431655765}}) {
    for (const DataType type : {DataType::kFloat32, DataType::kUInt8}) {
      for (const AxisSet axes : {1u, 2u}) {
        const ReducePlan plan = MakeReducePlan(ProblemOf(type, sizes, axes), gpu);
        const ReduceLaunch launch = LaunchOf(plan, 0);
        const ReduceParameters& p = launch.parameters;
        SCOPED_TRACE(testing::Message() << testing::PrintToString(sizes) << " axes " << axes);
        ExpectGrid(launch.grid, gpu);
        EXPECT_EQ(uint64_t{p.outputs} * p.elements, uint64_t{sizes[0]} * sizes[1]);
        EXPECT_GE(uint64_t{p.segments} * p.segment, p.elements);
        EXPECT_LT(uint64_t{p.segments - 1} * p.segment, p.elements);
        EXPECT_GE(
            launch.grid.blocks / p.segments * p.columns * (launch.kernel == ReduceKernel::kColumns ? 4 : 1),
            p.outputs);
        EXPECT_LE(plan.temporary_bytes, uint64_t{1} << 30);
        if (p.segments > 1) ExpectGrid(MergeLaunchOf(plan, launch).grid, gpu);
      }
    }
  }
}

}  // namespace
}  // namespace anydml
