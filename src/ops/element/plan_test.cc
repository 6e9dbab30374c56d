// Plans of element programs on a GPU, checked on the host. (element/cuda/machine_test.cc executes whole
// plans.)
#include "ops/element/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/plan_checks.h"

namespace anydml::element_device {
namespace {

// output = input 0 + input 1, of packed tensors; `transposed`: input 1 is stored transposed.
ElementProblem AddProblem(DataType type, uint64_t rows, uint64_t columns, bool transposed = false) {
  ElementProblem problem;
  problem.rank = 2;
  problem.sizes[0] = rows;
  problem.sizes[1] = columns;
  problem.inputs = {{type, {columns, 1}}, {type, {columns, 1}}};
  if (transposed) problem.inputs[1].strides = {1, rows};
  problem.outputs = {{type, {columns, 1}}};
  ElementProgram& program = problem.program;
  const Class number = Class::kF32;
  const uint8_t first = program.Load(0, number), second = program.Load(1, number);
  program.Store(0, program.Apply(ElementFunction::kAdd, number, {first, second}), number);
  return problem;
}

MachinePlan PlanOf(const ElementProblem& problem, bool with_groups) {
  MachinePlan plan;
  std::string why_not;
  EXPECT_TRUE(MakePlan(problem, with_groups, &plan, &why_not)) << why_not;
  return plan;
}

TEST(ElementPlan, BlocksHaveEveryElement) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const uint64_t columns : {1u, 3u, 32u, 1000u, 4096u}) {
      for (const bool with_groups : {false, true}) {
        const MachinePlan plan = PlanOf(AddProblem(type, 7, columns), with_groups);
        // A thread has as many elements as fit into a register.
        const uint64_t per_block = uint64_t{kThreads} * (kRegisterBytes / 4);
        EXPECT_EQ(plan.machine.elements, 7 * columns);
        EXPECT_GE(plan.blocks * per_block, 7 * columns);
        EXPECT_LT((plan.blocks - 1) * per_block, 7 * columns);
        EXPECT_EQ(plan.operands, 3u);
        EXPECT_EQ(plan.machine.inputs, 2u);
        EXPECT_LE(plan.machine.steps_end, kMaxSteps);
        // Shared memory holds a block's elements of both inputs.
        EXPECT_GE(plan.shared_bytes, 2 * plan.machine.slot_bytes);
        EXPECT_LE(plan.shared_bytes, GpuTraits().shared_bytes_per_block);
        EXPECT_LE(plan.blocks, kMaxBlocks);
      }
    }
  }
}

TEST(ElementPlan, GroupsNeedAlignedAddresses) {
  const MachinePlan plan = PlanOf(AddProblem(DataType::kFloat32, 8, 4096), true);
  EXPECT_GT(plan.machine.log2_group, 0u);
  Machine machine = plan.machine;
  for (uint32_t o = 0; o < plan.operands; ++o)
    machine.operands[o].data = reinterpret_cast<std::byte*>(uintptr_t{4096});
  EXPECT_TRUE(IsAligned(machine, plan.operands));
  machine.operands[1].data = reinterpret_cast<std::byte*>(uintptr_t{4100});
  EXPECT_FALSE(IsAligned(machine, plan.operands));
}

TEST(ElementPlan, TransposedInputsComeInTiles) {
  const MachinePlan plan = PlanOf(AddProblem(DataType::kFloat32, 512, 512, true), true);
  EXPECT_TRUE(plan.machine.tiled);
  EXPECT_EQ(plan.machine.operands[1].access, Access::kTile);
  const uint64_t tiles = uint64_t{512u >> plan.machine.log2_rows} * (512u >> plan.machine.log2_columns);
  EXPECT_EQ(plan.blocks, tiles);
}

TEST(ElementPlan, ProgramsThatDoNotFitHaveAReason) {
  ElementProblem problem = AddProblem(DataType::kFloat32, 2, 2);
  uint8_t sum = problem.program.Load(0, Class::kF32);
  while (problem.inputs.size() <= kMaxOperands) {
    const auto number = static_cast<uint32_t>(problem.inputs.size());
    problem.inputs.push_back(problem.inputs[0]);
    sum = problem.program.Apply(ElementFunction::kAdd, Class::kF32,
                                {sum, problem.program.Load(number, Class::kF32)});
  }
  problem.program.Store(0, sum, Class::kF32);
  MachinePlan plan;
  std::string why_not;
  EXPECT_FALSE(MakePlan(problem, true, &plan, &why_not));
  EXPECT_NE(why_not, "");
}

}  // namespace
}  // namespace anydml::element_device
