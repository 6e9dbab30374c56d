// Offsets of temporary tensors: they never overlap, and leave few gaps.
#include "graph/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace anydml {
namespace {

// Lifetimes as in a graph of `steps` nodes: most results are read soon, some much later; some nodes have
// scratch memory. Sizes are typical of tensors, or arbitrary.
std::vector<Lifetime> RandomLifetimes(uint32_t seed, uint32_t steps) {
  std::mt19937 engine(seed);
  const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
  std::vector<Lifetime> lifetimes;
  for (uint32_t i = 0; i < steps; ++i) {
    Lifetime result;
    result.first = i;
    result.last = std::min(steps, i + 1 + random() % (random() % 4 == 0 ? steps / 3 + 1 : 3));
    result.bytes = seed % 2 == 0 ? uint64_t{4096} << random() % 5 : 4 + random() % 65536;
    result.alignment = 256;
    lifetimes.push_back(result);
    if (random() % 3 == 0) lifetimes.push_back({uint64_t{8} + random() % 40000, 64, i, i});
  }
  return lifetimes;
}

void ExpectApart(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan) {
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& a = lifetimes[i];
    EXPECT_EQ(plan.offsets[i] % a.alignment, 0u);
    EXPECT_LE(plan.offsets[i] + a.bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const Lifetime& b = lifetimes[j];
      const bool at_once = a.first <= b.last && b.first <= a.last;
      const bool apart = plan.offsets[i] + a.bytes <= plan.offsets[j] ||
                         plan.offsets[j] + b.bytes <= plan.offsets[i] || a.bytes == 0 || b.bytes == 0;
      EXPECT_TRUE(apart || !at_once) << i << " and " << j;
    }
  }
}

// Hardly any plan has gaps of more than a tenth of the largest simultaneous need, and none has many more.
TEST(MemoryPlan, RandomLifetimes) {
  int wide = 0, count = 0;
  for (const uint32_t steps : {8u, 20u, 60u, 150u}) {
    for (uint32_t seed = 0; seed < 100; ++seed, ++count) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << steps << " steps");
      const std::vector<Lifetime> lifetimes = RandomLifetimes(seed, steps);
      const MemoryPlan plan = PlanMemory(lifetimes);
      ExpectApart(lifetimes, plan);
      EXPECT_LE(plan.bytes, plan.most_live + plan.most_live / 4);
      if (plan.bytes > plan.most_live + plan.most_live / 10) ++wide;
    }
  }
  EXPECT_LE(wide, count / 100);
}

TEST(MemoryPlan, NothingAndTooMuch) {
  EXPECT_EQ(PlanMemory({}).bytes, 0u);
  const std::vector<Lifetime> empty = {{0, 1, 0, 5}, {0, 256, 1, 2}};
  EXPECT_EQ(PlanMemory(empty).bytes, 0u);
  const std::vector<Lifetime> huge = {{UINT64_MAX - 1, 1, 0, 2}, {UINT64_MAX / 2, 256, 1, 2}, {8, 1, 2, 3}};
  EXPECT_EQ(PlanMemory(huge).bytes, UINT64_MAX);
}

}  // namespace
}  // namespace anydml
