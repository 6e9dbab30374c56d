// Plans of TOP_K on a GPU, checked on the host.
#include "ops/top_k/plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/plan_checks.h"

namespace anydml {
namespace {

TopKProblem ProblemOf(DataType type, const std::vector<uint32_t>& sizes, uint32_t axis, uint32_t k) {
  TopKProblem problem;
  std::vector<uint32_t> best = sizes;
  best[axis] = k;
  problem.input = PlanTensor(type, sizes);
  problem.value = PlanTensor(type, best);
  problem.index = PlanTensor(DataType::kUInt32, best);
  problem.axis = axis;
  return problem;
}

TEST(TopKPlan, EverySequenceIsThereOnce) {
  for (const uint32_t axis : {0u, 1u, 2u}) {
    const std::vector<uint32_t> sizes = {4, 6, 5};
    const TopKSequences all = MakeTopKRoundsPlan(ProblemOf(DataType::kFloat32, sizes, axis, 2)).sequences;
    EXPECT_EQ(all.n, sizes[axis]);
    EXPECT_EQ(all.k, 2u);
    EXPECT_EQ(all.count, 120u / sizes[axis]);
    std::vector<int> read(120), written(120 / sizes[axis] * 2);
    for (uint64_t s = 0; s < all.count; ++s) {
      const auto at = OffsetsOf(all.nest, s);
      for (uint32_t i = 0; i < all.n; ++i) ++read.at(at[kInput] + i * all.axis[kInput]);
      for (uint32_t j = 0; j < all.k; ++j) ++written.at(at[kValue] + j * all.axis[kValue]);
    }
    for (const int count : read) ASSERT_EQ(count, 1);
    for (const int count : written) ASSERT_EQ(count, 1);
  }
}

TEST(TopKPlan, RoundsFitIntoABlock) {
  for (const DataType type : {DataType::kInt8, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64}) {
    const TopKRoundsPlan plan = MakeTopKRoundsPlan(ProblemOf(type, {7, 100000}, 1, 9000));
    ExpectGrid(plan.grid, GpuTraits());
    EXPECT_EQ(plan.grid.blocks, 7u);
    EXPECT_EQ(plan.grid.threads, kTopKRoundThreads);
    // The list and the spare list have whole candidates.
    EXPECT_EQ(plan.grid.shared_bytes, 2 * kTopKRoundCapacity * (type == DataType::kFloat64 ? 16u : 8u));
  }
}

TEST(TopKPlan, OrdersOfKeys) {
  EXPECT_TRUE(KeyOrderOf(DataType::kFloat16, true).is_float);
  EXPECT_EQ(KeyOrderOf(DataType::kFloat32, true).flip, 0u);
  EXPECT_EQ(KeyOrderOf(DataType::kUInt32, false).flip, ~uint64_t{0});
  EXPECT_EQ(KeyOrderOf(DataType::kInt8, true).flip, 0x8080808080808080u);
  EXPECT_EQ(KeyOrderOf(DataType::kInt32, false).flip, ~uint64_t{0x8000000080000000});
}

TEST(TopKPlan, AlignedSequences) {
  const auto aligned = [](DataType type, const std::vector<uint32_t>& sizes, uint32_t axis) {
    return SequencesAreAligned(TopKSequencesOf(ProblemOf(type, sizes, axis, 1)), BitSize(type) / 8);
  };
  EXPECT_TRUE(aligned(DataType::kFloat32, {3, 8}, 1));
  EXPECT_FALSE(aligned(DataType::kFloat32, {3, 7}, 1));
  EXPECT_FALSE(aligned(DataType::kFloat16, {3, 4}, 1));
  EXPECT_FALSE(aligned(DataType::kFloat32, {8, 8}, 0));
}

TEST(TopKPlan, Buffers) {
  const TopKSequences all = TopKSequencesOf(ProblemOf(DataType::kFloat16, {3, 7}, 1, 2));
  EXPECT_EQ(all.input_bytes, 44u);  // a multiple of 4
  std::byte memory[64];
  const Buffer input = {memory, 44}, outputs[] = {{memory + 44, 12}, {memory + 56, 8}};
  KernelArguments arguments;
  arguments.inputs = {&input, 1};
  arguments.outputs = outputs;
  const TopKSequences bound = Bind(all, arguments);
  EXPECT_EQ(bound.input_end, memory + 44);
  EXPECT_EQ(bound.value, memory + 44);
  EXPECT_EQ(bound.index, memory + 56);
}

TEST(TopKPlan, LargestTensors) {
  const TopKRoundsPlan many = MakeTopKRoundsPlan(ProblemOf(DataType::kUInt8, {0xFFFFFFFF, 1}, 1, 1));
  EXPECT_EQ(many.sequences.count, 0xFFFFFFFFu);
  EXPECT_EQ(many.grid.blocks, uint64_t{1} << 20);
  const TopKRoundsPlan large = MakeTopKRoundsPlan(ProblemOf(DataType::kInt64, {1, 0xFFFFFFFF}, 1, 5));
  EXPECT_EQ(large.sequences.input_bytes, uint64_t{0xFFFFFFFF} * 8);
  EXPECT_EQ(large.grid.blocks, 1u);
}

}  // namespace
}  // namespace anydml
