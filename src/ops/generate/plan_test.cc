// Executes the plans of the generators and of ONE_HOT on the host.
#include "ops/generate/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "ops/one_hot/plan.h"
#include "support/plan_checks.h"

namespace anydml {
namespace {

using Kind = GenerateProblem::Kind;
using Shape = std::vector<uint32_t>;

GenerateProblem ProblemOf(Kind kind, DataType type, const Shape& sizes) {
  GenerateProblem problem;
  problem.kind = kind;
  problem.output = PlanTensor(type, sizes);
  return problem;
}

// Where a plan writes the elements of its units; each is written once.
void ExpectEveryElementOnce(const GeneratePlan& plan, uint64_t elements) {
  const GenerateParameters& p = plan.parameters;
  std::vector<int> visits(elements);
  for (uint64_t number = 0; number < plan.grid.blocks * plan.grid.threads; ++number) {
    if (number >= p.units) continue;
    uint64_t at[4];
    p.nest.OffsetsOf(static_cast<uint32_t>(number), at);
    EXPECT_EQ(at[kGenerateOutput] % plan.unit_elements, 0u);
    for (uint32_t i = 0; i < plan.unit_elements; ++i) {
      const uint64_t element = at[kGenerateOutput] + i;
      ++visits.at(element);
      EXPECT_EQ(at[kGenerateNumber] + i * p.inner.strides[kGenerateNumber], element);
    }
  }
  for (const int count : visits) ASSERT_EQ(count, 1);
}

TEST(GeneratePlan, EveryElementIsMadeOnce) {
  for (const DataType type : {DataType::kUInt8, DataType::kFloat16, DataType::kFloat32, DataType::kInt64}) {
    for (const Shape& sizes : std::vector<Shape>{{1}, {15}, {16}, {1024}, {1040}, {3, 16}, {5, 7, 32}}) {
      for (const bool aligned : {false, true}) {
        const GenerateProblem problem = ProblemOf(Kind::kSequence, type, sizes);
        const GeneratePlan plan = MakeGeneratePlan(problem, aligned);
        const uint64_t elements = ElementCount(problem.output);
        ExpectEveryElementOnce(plan, elements);
        ExpectThreadFor(plan.parameters.units, plan.grid, GpuTraits());
        const bool in_units = aligned && elements > 1 && elements * BitSize(type) % 128 == 0;
        EXPECT_EQ(plan.unit_elements, in_units ? 128 / BitSize(type) : 1);
      }
    }
  }
}

TEST(GeneratePlan, OutputsWithGaps) {
  GenerateProblem problem = ProblemOf(Kind::kConstant, DataType::kFloat32, {3, 8});
  problem.output.strides[0] = 12;
  EXPECT_EQ(MakeGeneratePlan(problem, true).unit_elements, 4u);
  problem.output.strides[0] = 10;
  EXPECT_EQ(MakeGeneratePlan(problem, true).unit_elements, 1u);
  problem.output.strides = {2, 6};
  EXPECT_EQ(MakeGeneratePlan(problem, true).unit_elements, 1u);
}

TEST(GeneratePlan, LargestTensors) {
  const GeneratePlan bytes =
      MakeGeneratePlan(ProblemOf(Kind::kConstant, DataType::kUInt8, {0xFFFFFFFF}), true);
  EXPECT_EQ(bytes.parameters.units, 0xFFFFFFFFu);
  ExpectThreadFor(0xFFFFFFFF, bytes.grid, GpuTraits());
  const GeneratePlan units =
      MakeGeneratePlan(ProblemOf(Kind::kConstant, DataType::kInt64, {0xFFFFFFF0}), true);
  EXPECT_EQ(units.parameters.units, 0xFFFFFFF0u / 2);
}

TEST(OneHotPlan, EveryElementIsMadeOnce) {
  for (const uint32_t axis : {0u, 1u}) {
    for (const Shape& sizes : std::vector<Shape>{{1, 1}, {3, 8}, {8, 3}, {64, 300}, {5, 16}}) {
      for (const bool aligned : {false, true}) {
        OneHotProblem problem;
        Shape indices = sizes;
        indices[axis] = 1;
        problem.indices = PlanTensor(DataType::kInt32, indices);
        problem.output = PlanTensor(DataType::kFloat16, sizes);
        problem.axis = axis;
        const OneHotPlan plan = MakeOneHotPlan(problem, aligned);
        const OneHotParameters& p = plan.parameters;
        ExpectThreadFor(p.units, plan.grid, GpuTraits());
        std::vector<int> visits(uint64_t{sizes[0]} * sizes[1]);
        for (uint32_t number = 0; number < p.units; ++number) {
          uint64_t at[3];
          p.nest.OffsetsOf(number, at);
          for (uint32_t i = 0; i < plan.unit_elements; ++i) {
            const uint64_t element = at[kOneHotOutput] + i;
            const uint64_t row = element / sizes[1], column = element % sizes[1];
            ++visits.at(element);
            EXPECT_EQ(at[kOneHotPlace] + i * p.place_step, axis == 0 ? row : column);
            EXPECT_EQ(at[kOneHotIndices] + i * p.index_step, axis == 0 ? column : row);
          }
        }
        for (const int count : visits) ASSERT_EQ(count, 1);
      }
    }
  }
}

TEST(RandomPlan, EveryWordHasABlock) {
  for (const uint32_t count : {1u, 3u, 4u, 5u, 1023u, 1024u, 1025u, 0xFFFFFFFFu}) {
    RandomProblem problem;
    problem.output = PlanTensor(DataType::kUInt32, {count});
    for (const bool aligned : {false, true}) {
      const RandomPlan plan = MakeRandomPlan(problem, aligned);
      EXPECT_EQ(plan.parameters.count, count);
      EXPECT_GE(uint64_t{plan.parameters.blocks} * 4, count);
      EXPECT_LT(uint64_t{plan.parameters.blocks - 1} * 4, count);
      EXPECT_EQ(plan.parameters.in_units, aligned);
      ExpectThreadFor(plan.parameters.blocks, plan.grid, GpuTraits());
    }
    problem.output.strides[0] = 2;
    EXPECT_EQ(MakeRandomPlan(problem, true).parameters.in_units, count == 1);
  }
}

}  // namespace
}  // namespace anydml
