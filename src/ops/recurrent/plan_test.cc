// Checks on the host which units a GPU's blocks process by the plan of a recurrent step.
#include "ops/recurrent/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/plan_checks.h"

namespace anydml {
namespace {

RecurrentProblem ProblemOf(uint64_t directions, uint64_t batch, uint64_t units) {
  RecurrentProblem problem;
  problem.kind = CellKind::kLstm;
  problem.directions = static_cast<uint32_t>(directions);
  problem.steps = 3;
  problem.batch = batch;
  problem.units = units;
  return problem;
}

TEST(RecurrentPlan, EveryUnitHasAThread) {
  for (const uint32_t directions : {1u, 2u}) {
    for (const uint32_t batch : {1u, 5u}) {
      for (const uint32_t units : {1u, 31u, 32u, 33u, 256u, 257u, 1000u}) {
        const RecurrentGatesPlan plan = MakeRecurrentGatesPlan(ProblemOf(directions, batch, units), 4);
        const recurrent::GateParameters& p = plan.parameters;
        ExpectGrid(plan.grid, GpuTraits());
        EXPECT_EQ(plan.grid.threads % 32, 0u);
        EXPECT_EQ(p.state_gates, 4u);
        std::vector<int> visits(uint64_t{directions} * batch * units);
        for (uint64_t start = 0; start < plan.grid.blocks; ++start) {
          for (uint64_t block = start; block < p.blocks; block += plan.grid.blocks) {
            const uint64_t row = block / p.blocks_per_row, part = block % p.blocks_per_row;
            for (uint64_t thread = 0; thread < plan.grid.threads; ++thread) {
              const uint64_t unit = part * plan.grid.threads + thread;
              if (unit < units) ++visits.at(row * units + unit);
            }
          }
        }
        for (const int count : visits) ASSERT_EQ(count, 1);
      }
    }
  }
}

// Then one block processes all units of a row, several per thread.
TEST(RecurrentPlan, FunctionsOfARowNeedAllOfIt) {
  RecurrentProblem problem = ProblemOf(2, 3, 1000);
  problem.activations[1][2].row = RowFunction::kSoftmax;
  const RecurrentGatesPlan plan = MakeRecurrentGatesPlan(problem, 4);
  EXPECT_EQ(plan.parameters.blocks_per_row, 1u);
  EXPECT_EQ(plan.grid.blocks, 6u);
  EXPECT_EQ(plan.grid.threads, recurrent::kGateThreads);
  EXPECT_EQ(plan.parameters.activations[1][2].row, RowFunction::kSoftmax);
}

TEST(RecurrentPlan, LargestTensors) {
  const RecurrentGatesPlan plan = MakeRecurrentGatesPlan(ProblemOf(2, 0x7FFFFFFF, 1), 4);
  EXPECT_EQ(plan.parameters.blocks, uint64_t{2} * 0x7FFFFFFF);
  ExpectGrid(plan.grid, GpuTraits());
}

}  // namespace
}  // namespace anydml
