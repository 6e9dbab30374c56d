#include "graph/passes/view.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace anydml {
namespace {

using Random = std::mt19937;

// The byte offsets of the elements, in order.
std::vector<int64_t> BytesOf(const Places& places) {
  std::vector<int64_t> bytes = {places.offset};
  for (const Places::Loop& loop : places.loops) {
    std::vector<int64_t> next;
    for (const int64_t at : bytes) {
      for (uint64_t i = 0; i < loop.size; ++i) next.push_back(at + static_cast<int64_t>(i) * loop.stride);
    }
    bytes = std::move(next);
  }
  std::vector<int64_t> all;
  for (const int64_t at : bytes) {
    for (uint64_t b = 0; b < places.element_bytes; ++b) all.push_back(at + static_cast<int64_t>(b));
  }
  return all;
}

Places Make(std::vector<Places::Loop> loops, int64_t offset = 0, uint64_t element_bytes = 4) {
  return {std::move(loops), offset, element_bytes};
}

// Strides for the sizes in a random order, sometimes with gaps.
Places RandomLayout(Random& random, const std::vector<uint64_t>& sizes, uint64_t element_bytes) {
  Places places = Make({}, static_cast<int64_t>(random() % 3 * element_bytes), element_bytes);
  for (const uint64_t size : sizes) places.loops.push_back({size, 0});
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
  auto stride = static_cast<int64_t>(element_bytes);
  const bool gaps = random() % 3 == 0;
  for (const size_t d : order) {
    places.loops[d].stride = stride;
    stride *= static_cast<int64_t>(sizes[d] + (gaps ? random() % 2 : 0));
  }
  return places;
}

std::vector<uint64_t> RandomSizes(Random& random) {
  std::vector<uint64_t> sizes(1 + random() % 4);
  for (uint64_t& size : sizes) size = 1 + random() % 4;
  return sizes;
}

// Every view that is found must be right, and enough views must be found.
TEST(Transfer, AgreesWithBruteForce) {
  Random random(1);
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto sizes = RandomSizes(random);
    const uint64_t element_bytes = uint64_t{1} << random() % 4;
    const Places here = RandomLayout(random, sizes, element_bytes);
    Places there = RandomLayout(random, sizes, element_bytes);
    for (Places::Loop& loop : there.loops) {
      if (random() % 8 == 0) loop.stride = 0;
      if (random() % 16 == 0) loop.stride = -loop.stride;
    }
    const bool same_sizes = random() % 2 == 0;
    Places user = RandomLayout(random, same_sizes ? sizes : RandomSizes(random),
                               random() % 4 == 0 ? uint64_t{1} << random() % 4 : element_bytes);
    if (random() % 4 == 0) user.loops[random() % user.loops.size()].stride = 0;

    std::map<int64_t, int64_t> moves;
    const auto from = BytesOf(here), to = BytesOf(there);
    for (size_t b = 0; b < from.size(); ++b) moves[from[b]] = to[b];
    const auto result = Transfer(here, there, user);
    if (!result.has_value()) continue;
    ++found;
    const auto old_bytes = BytesOf(user), new_bytes = BytesOf(*result);
    ASSERT_EQ(old_bytes.size(), new_bytes.size());
    for (size_t b = 0; b < old_bytes.size(); ++b) {
      ASSERT_TRUE(moves.contains(old_bytes[b])) << i;
      ASSERT_EQ(new_bytes[b], moves[old_bytes[b]]) << i;
    }
  }
  EXPECT_GT(found, 1000);
}

void ExpectSame(const std::optional<Places>& got, const Places& want) {
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->offset, want.offset);
  for (size_t d = 0; d < want.loops.size(); ++d) EXPECT_EQ(got->loops[d].stride, want.loops[d].stride) << d;
}

TEST(Transfer, OfTheTensorItself) {
  const Places here = Make({{2, 12}, {3, 4}}), there = Make({{2, 4}, {3, 40}}, 16);
  ExpectSame(Transfer(here, there, here), there);
}

TEST(Transfer, ThroughAReshape) {
  // {2,3,4} transposed to {2,4,3} and read as {2,2,6}: 4 is split, and the last 2 and 3 stay apart.
  const Places here = Make({{2, 48}, {4, 12}, {3, 4}}), there = Make({{2, 48}, {4, 4}, {3, 16}});
  ExpectSame(Transfer(here, there, Make({{2, 48}, {2, 24}, {2, 12}, {3, 4}})),
             Make({{2, 48}, {2, 8}, {2, 4}, {3, 16}}));
  EXPECT_FALSE(Transfer(here, there, Make({{2, 48}, {2, 24}, {6, 4}})).has_value());
}

TEST(Transfer, OfAPart) {
  const Places here = Make({{4, 4}, {8, 16}});
  const Places there = Make({{4, 32}, {8, 4}}, 128);
  // Columns 2 and 3 of every second row.
  ExpectSame(Transfer(here, there, Make({{4, 32}, {2, 4}}, 8)), Make({{4, 8}, {2, 32}}, 128 + 64));
}

TEST(Transfer, OfBroadcasts) {
  const Places here = Make({{2, 12}, {3, 4}}), there = Make({{2, 0}, {3, 4}});
  ExpectSame(Transfer(here, there, Make({{3, 4}, {5, 0}, {2, 12}})), Make({{3, 4}, {5, 0}, {2, 0}}));
  // In the other direction an element would be in two places.
  EXPECT_FALSE(Transfer(there, here, there).has_value());
}

TEST(Transfer, OfOtherElements) {
  // Halves of words that stay in place, but not halves of words that are separated as bytes.
  const Places here = Make({{4, 4}}), there = Make({{4, 8}});
  ExpectSame(Transfer(here, there, Make({{4, 4}, {2, 2}}, 0, 2)), Make({{4, 8}, {2, 2}}));
  EXPECT_FALSE(Transfer(here, there, Make({{2, 8}}, 0, 8)).has_value());
  ExpectSame(Transfer(here, here, Make({{2, 8}}, 0, 8)), Make({{2, 8}}));
}

TEST(Transfer, NotBeyondTheElements) {
  const Places here = Make({{2, 12}, {2, 4}});
  EXPECT_FALSE(Transfer(here, here, Make({{2, 12}, {3, 4}})).has_value());  // a gap
  EXPECT_FALSE(Transfer(here, here, Make({{3, 12}})).has_value());          // after it
  EXPECT_FALSE(Transfer(Make({{2, 4}}, 8), here, Make({{2, 4}})).has_value());
}

TEST(SetPlaces, OnlyStridesOfTensors) {
  const uint32_t sizes[] = {2, 3};
  TensorDesc tensor = PackedTensor(DataType::kFloat32, sizes, 2);
  uint64_t offset = 0;
  EXPECT_TRUE(SetPlaces(Make({{2, 4}, {3, 40}}, 20), &tensor, &offset));
  EXPECT_EQ(tensor.strides[0], 1u);
  EXPECT_EQ(tensor.strides[1], 10u);
  EXPECT_EQ(tensor.total_bytes, 88u);
  EXPECT_EQ(offset, 20u);
  EXPECT_FALSE(SetPlaces(Make({{2, -4}, {3, 40}}, 20), &tensor, &offset));
  EXPECT_FALSE(SetPlaces(Make({{2, 4}, {3, 6}}), &tensor, &offset));
  EXPECT_FALSE(SetPlaces(Make({{2, 4}, {3, 8}}, 2), &tensor, &offset));
}

}  // namespace
}  // namespace anydml
