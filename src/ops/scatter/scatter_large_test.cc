// Scatters large enough to be divided among threads, read in vectors and prefetched.
#include <gtest/gtest.h>

#include <limits>

#include "ops/scatter/scatter_test_cases.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;

constexpr DataType kEveryWidth[] = {DataType::kUInt8, DataType::kFloat16, DataType::kFloat32,
                                    DataType::kInt64};

TEST(ScatterNd, LargeOnes) {
  std::mt19937_64 random(TestSeed());
  for (DataType type : kEveryWidth) {
    RunNdCase(type, {40000}, {70000}, 1, 2, random);         // elements
    RunNdCase(type, {170, 200}, {300, 250}, 2, 3, random);   // in pairs
    RunNdCase(type, {33000}, {40, 5, 30}, 3, 4, random);     // in triples
    RunNdCase(type, {9000}, {500, 60}, 1, 2, random);        // rows, many of them repeatedly
    RunNdCase(type, {9000}, {30, 20, 4, 15}, 2, 5, random);  // matrices
    RunNdCase(type, {5}, {4, 300, 360}, 1, 3, random);       // few slices, which are divided
    RunNdCase(type, {5, 1}, {3, 3, 36000}, 1, 4, random);    // along their last loop, the only long one
    if (HasFailure()) return;
  }
}

TEST(ScatterElements, LargeOnes) {
  std::mt19937_64 random(TestSeed());
  for (DataType type : kEveryWidth) {
    RunElementsCase(type, {300, 200}, 0, random);
    RunElementsCase(type, {300, 200}, 1, random);
    RunElementsCase(type, {40, 7, 200}, 1, random);
    RunElementsCase(type, {3, 60000}, 1, random, /*lookup=*/false);  // nothing to divide but the axis
    RunElementsCase(type, {100000}, 0, random, /*lookup=*/false);
    if (HasFailure()) return;
  }
}

// 50,000 updates of 1,000 elements, by the page's rule: the latest wins, however the work is divided. No
// index is out of range.
TEST(Scatter, LatestOfManyUpdatesWins) {
  std::mt19937_64 random(TestSeed());
  constexpr uint32_t kUpdates = 50000, kElements = 1000;
  const TensorDesc data = Packed(DataType::kUInt32, {1, kElements});
  const TensorDesc indices = Packed(DataType::kUInt32, {kUpdates, 1});
  const TensorDesc updates = Packed(DataType::kUInt32, {1, kUpdates});
  std::vector<uint32_t> places(kUpdates), values(kUpdates), expected(kElements, 0);
  for (uint32_t i = 0; i < kUpdates; ++i) {
    places[i] = Uniform(random, 0, kElements - 1);
    expected[places[i]] = values[i] = i + 1;
  }
  for (const bool in_place : {false, true}) {
    const RunResult result = ExpectAllAgree(ScatterNd(data, indices, updates, data, 1, 2),
                                            {Scattered(data, std::vector<uint32_t>(kElements, 0)),
                                             Scattered(indices, places), Scattered(updates, values)},
                                            in_place);
    EXPECT_EQ(Gathered<uint32_t>(data, result.outputs[0]), expected);
    EXPECT_TRUE(result.data_errors.empty());
  }
}

// Indices for a dimension of `size` at the limits of the allowed range.
template <typename Index>
Index Edge(uint32_t number, uint32_t size) {
  const Index edges[] = {0,
                         static_cast<Index>(size - 1),
                         static_cast<Index>(size),
                         static_cast<Index>(-1),
                         static_cast<Index>(-static_cast<Index>(size)),
                         static_cast<Index>(-static_cast<Index>(size) - 1),
                         std::numeric_limits<Index>::min(),
                         std::numeric_limits<Index>::max(),
                         static_cast<Index>(std::numeric_limits<Index>::max() / 2 + 1)};
  return edges[number % std::size(edges)];
}

// Edge values among many other indices, at every position of a vector: single ones, and pairs.
template <typename Index>
void ExpectEdgesHandled(DataType index_type) {
  constexpr uint32_t kUpdates = 40000, kElements = 30000;
  std::mt19937_64 random(TestSeed());
  {
    const TensorDesc data = Packed(DataType::kFloat16, {kElements});
    const TensorDesc indices = Packed(index_type, {kUpdates});
    const TensorDesc updates = Packed(DataType::kFloat16, {kUpdates});
    std::vector<Index> places(kUpdates);
    for (uint32_t i = 0; i < kUpdates; ++i) places[i] = Uniform(random, 0, kElements - 1);
    for (uint32_t i = 1000; i < kUpdates; i += 7) places[i] = Edge<Index>(i, kElements);
    ExpectAllAgree(ScatterElements(data, indices, updates, data, 0),
                   {RandomBytes(data, random), Scattered(indices, places), RandomBytes(updates, random)});
  }
  constexpr uint32_t kSizes[] = {150, 200};
  const TensorDesc data = Packed(DataType::kFloat16, {kSizes[0], kSizes[1]});
  const TensorDesc indices = Packed(index_type, {kUpdates, 2});
  const TensorDesc updates = Packed(DataType::kFloat16, {1, kUpdates});
  std::vector<Index> tuples(2 * kUpdates);
  for (uint32_t i = 0; i < 2 * kUpdates; ++i) tuples[i] = Uniform(random, 0, kSizes[i % 2] - 1);
  for (uint32_t i = 1000; i < 2 * kUpdates; i += 7) tuples[i] = Edge<Index>(i, kSizes[i % 2]);
  ExpectAllAgree(ScatterNd(data, indices, updates, data, 2, 2),
                 {RandomBytes(data, random), Scattered(indices, tuples), RandomBytes(updates, random)});
}

TEST(Scatter, EdgesAmongManyIndices) {
  ExpectEdgesHandled<int32_t>(DataType::kInt32);
  ExpectEdgesHandled<int64_t>(DataType::kInt64);
  ExpectEdgesHandled<uint32_t>(DataType::kUInt32);
  ExpectEdgesHandled<uint64_t>(DataType::kUInt64);
}

TEST(Scatter, TheFirstBadTupleOfManyIsNamedOnce) {
  const TensorDesc data = Packed(DataType::kFloat32, {200, 500});
  const TensorDesc indices = Packed(DataType::kInt32, {60000, 2});
  const TensorDesc updates = Packed(DataType::kFloat32, {1, 60000});
  std::vector<int32_t> tuples(2 * 60000, 1);
  for (const uint32_t bad : {59999, 30001, 30000, 123}) {
    tuples[2 * bad + 1] = 500 + static_cast<int32_t>(bad);
    const RunResult result = ExpectAllAgree(ScatterNd(data, indices, updates, data, 2, 2),
                                            {Scattered(data, Floats(100000)), Scattered(indices, tuples),
                                             Scattered(updates, Floats(60000, 1.0f))});
    ASSERT_EQ(result.data_errors.size(), 1u);
    EXPECT_EQ(result.data_errors[0].find(StrCat("SCATTER_ND: the tuple IndicesTensor[", bad, ",:] is {1,")),
              0u)
        << result.data_errors[0];
  }
}

}  // namespace
}  // namespace anydml::testing
