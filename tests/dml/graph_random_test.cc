// Random graphs give the results of their separate operators, with all passes and with any one disabled.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "client/scoped_variable.h"
#include "support/random_attention.h"
#include "support/random_blocks.h"
#include "support/random_graph.h"

namespace anydml::testing {
namespace {

// For each list of disabled passes.
constexpr double kSeconds = 2;

enum class Shape { kExact, kAll, kAttention, kBlocks };

void ExpectSame(test::DmlHarness& harness, uint64_t seed, Shape shape) {
  const RandomGraph graph =
      shape == Shape::kAttention ? MakeRandomAttention(seed)
      : shape == Shape::kBlocks
          ? MakeRandomBlock(seed)
          : MakeRandomGraph(seed, shape == Shape::kAll ? GraphKinds::kAll : GraphKinds::kExact);
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed, "\n", graph.ToString()));
  EXPECT_EQ(Difference(graph, RunCompiled(harness, graph), RunOneByOne(harness, graph)), "");
}

// On the CPU, a kernel that accesses memory outside its tensors ends the test.
void ExpectSameFor(const char* without, Shape shape, const char* guards = "0") {
  const client::ScopedVariable guarded("ANYDML_GRAPH_GUARDS", guards);
  const client::ScopedVariable variable("ANYDML_GRAPH_WITHOUT", without);
  test::DmlHarness harness;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(TestSeconds(kSeconds));
  uint64_t seed = TestSeed();
  while (seed == TestSeed() || (Clock::now() < end && !::testing::Test::HasFailure())) {
    ExpectSame(harness, seed++, shape);
  }
  std::cout << "without \"" << without << "\": " << seed - TestSeed() << " graphs\n";
}

// The same kernels that run one by one.
TEST(RandomGraphs, WithoutPasses) { ExpectSameFor("all", Shape::kAll); }

// Layouts, tails, and whether weights are constants determine the order of additions.
TEST(RandomGraphs, AllOperatorsInTheirOwnLayouts) {
  ExpectSameFor("fold,views,products,attention,tails,layouts", Shape::kAll);
}

TEST(RandomGraphs, BetweenPagesThatNobodyMayTouch) { ExpectSameFor("", Shape::kExact, "1"); }

class RandomGraphsWithout : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomGraphsWithout, ExactOperators) { ExpectSameFor(GetParam(), Shape::kExact); }

INSTANTIATE_TEST_SUITE_P(Passes, RandomGraphsWithout,
                         ::testing::Values("", "fold", "views", "products", "activation", "tails", "fuse",
                                           "prologue", "layouts"));

class RandomBlocksWithout : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomBlocksWithout, Convolutions) { ExpectSameFor(GetParam(), Shape::kBlocks); }

INSTANTIATE_TEST_SUITE_P(Passes, RandomBlocksWithout,
                         ::testing::Values("", "views", "activation", "tails", "layouts"));

class RandomAttentionWithout : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomAttentionWithout, Operators) { ExpectSameFor(GetParam(), Shape::kAttention); }

INSTANTIATE_TEST_SUITE_P(Passes, RandomAttentionWithout,
                         ::testing::Values("", "views", "products", "attention", "activation"));

}  // namespace
}  // namespace anydml::testing
