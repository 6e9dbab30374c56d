#include "schema/tensor_desc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace anydml {
namespace {

constexpr uint32_t kMax = 0xFFFFFFFFu;
constexpr uint64_t kSaturated = ~uint64_t{0};

TensorDesc Strided(const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& strides,
                   DataType type = DataType::kFloat32) {
  TensorDesc tensor = PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
  for (size_t i = 0; i < strides.size(); ++i) tensor.strides[i] = strides[i];
  return tensor;
}

TensorDesc Packed(const std::vector<uint32_t>& sizes, DataType type = DataType::kFloat32) {
  return Strided(sizes, {}, type);
}

TEST(TensorDesc, PackedStrides) {
  const TensorDesc tensor = Packed({2, 3, 4});
  EXPECT_EQ(tensor.strides, (Dimensions{12, 4, 1}));
  EXPECT_EQ(tensor.total_bytes, 96u);
  EXPECT_EQ(Packed({kMax, kMax, kMax}).strides, (Dimensions{kMax, kMax, 1}));
}

TEST(TensorDesc, ElementCountSaturates) {
  EXPECT_EQ(ElementCount(Packed({2, 3, 4})), 24u);
  EXPECT_EQ(ElementCount(Packed({kMax, kMax})), uint64_t{kMax} * kMax);
  EXPECT_EQ(ElementCount(Packed({kMax, kMax, kMax})), kSaturated);
  EXPECT_EQ(ElementCount(Packed({kMax, kMax, kMax, 0})), 0u);
}

TEST(TensorDesc, ElementSpanSaturates) {
  EXPECT_EQ(ElementSpan(Packed({2, 3, 4})), 24u);
  EXPECT_EQ(ElementSpan(Strided({2, 3}, {10, 2})), 15u);
  EXPECT_EQ(ElementSpan(Strided({1, 3}, {kMax, 0})), 1u);
  EXPECT_EQ(ElementSpan(Strided({kMax}, {kMax})), uint64_t{kMax - 1} * kMax + 1);
  EXPECT_EQ(ElementSpan(Strided({kMax, kMax}, {kMax, kMax})), kSaturated);
}

TEST(TensorDesc, MinimumTotalBytes) {
  EXPECT_EQ(MinimumTotalBytes(Packed({1}, DataType::kUInt8)), 4u);
  EXPECT_EQ(MinimumTotalBytes(Packed({5}, DataType::kUInt8)), 8u);
  EXPECT_EQ(MinimumTotalBytes(Packed({3}, DataType::kFloat16)), 8u);
  EXPECT_EQ(MinimumTotalBytes(Packed({3}, DataType::kFloat32)), 12u);
  EXPECT_EQ(MinimumTotalBytes(Packed({3}, DataType::kInt64)), 24u);
  EXPECT_EQ(MinimumTotalBytes(Packed({8}, DataType::kInt4)), 4u);
  EXPECT_EQ(MinimumTotalBytes(Packed({9}, DataType::kUInt4)), 8u);
  // Strides count 4-bit elements: rows of 3 in 4, so 11 of them, in 6 bytes.
  EXPECT_EQ(MinimumTotalBytes(Strided({3, 3}, {4, 1}, DataType::kInt4)), 8u);
  EXPECT_EQ(MinimumTotalBytes(Strided({100, 3}, {0, 1}, DataType::kUInt4)), 4u);
  EXPECT_EQ(MinimumTotalBytes(Strided({kMax}, {kMax}, DataType::kInt4)), 0x7FFFFFFE80000004u);
  EXPECT_EQ(MinimumTotalBytes(Strided({2, 3}, {6, 2}, DataType::kUInt32)), 44u);
  EXPECT_EQ(MinimumTotalBytes(Strided({kMax}, {kMax}, DataType::kFloat64)), kSaturated);
  EXPECT_EQ(MinimumTotalBytes(Strided({kMax, kMax}, {kMax, kMax}, DataType::kInt4)), kSaturated);
}

TEST(TensorDesc, SameLayout) {
  EXPECT_TRUE(SameLayout(Packed({2, 3}), Packed({2, 3})));
  EXPECT_TRUE(SameLayout(Packed({1, 3}), Strided({1, 3}, {99, 1})));  // strides of size 1 do not matter
  EXPECT_FALSE(SameLayout(Packed({2, 3}), Strided({2, 3}, {4, 1})));
  EXPECT_FALSE(SameLayout(Packed({2, 3}), Packed({3, 2})));
  EXPECT_FALSE(SameLayout(Packed({2, 3}), Packed({2, 3, 1})));
  EXPECT_FALSE(SameLayout(Packed({2, 3}), Packed({2, 3}, DataType::kInt32)));
}

TEST(TensorDesc, SizesToString) {
  EXPECT_EQ(SizesToString(Packed({1, 2, 3})), "{1,2,3}");
  EXPECT_EQ(SizesToString(TensorDesc{}), "{}");
}

bool OverlapsItself(const TensorDesc& tensor) {
  OverlapBudget budget;
  const Overlap overlap = FindOverlap(tensor, &budget);
  EXPECT_NE(overlap, Overlap::kUnknown) << "sizes " << SizesToString(tensor);
  return overlap == Overlap::kSome;
}

TEST(Overlap, Examples) {
  EXPECT_FALSE(OverlapsItself(TensorDesc{}));
  EXPECT_FALSE(OverlapsItself(Packed({1})));
  EXPECT_FALSE(OverlapsItself(Packed({2, 3, 4, 5, 6, 7, 8, 9})));
  EXPECT_FALSE(OverlapsItself(Strided({1, 1, 5}, {0, 0, 1})));  // size 1: stride does not matter
  EXPECT_FALSE(OverlapsItself(Strided({4, 3}, {1, 4})));        // transposed
  EXPECT_FALSE(OverlapsItself(Strided({2, 3}, {6, 2})));        // padded
  EXPECT_TRUE(OverlapsItself(Strided({2}, {0})));               // broadcast
  EXPECT_TRUE(OverlapsItself(Strided({2, 3}, {2, 1})));         // rows share elements
  EXPECT_FALSE(OverlapsItself(Strided({3, 2}, {2, 3})));        // 0,3,2,5,4,7: interleaved, yet distinct
  EXPECT_TRUE(OverlapsItself(Strided({4, 3}, {2, 3})));         // 3*2 == 2*3
  EXPECT_FALSE(OverlapsItself(Strided({2, 2, 2}, {5, 4, 2})));  // no combination of +-5, 4, 2 is zero
  EXPECT_TRUE(OverlapsItself(Strided({2, 2, 2}, {6, 4, 2})));   // 6 == 4 + 2
}

TEST(Overlap, HugeSizesAndStrides) {
  EXPECT_FALSE(OverlapsItself(Strided({kMax}, {kMax})));
  EXPECT_FALSE(OverlapsItself(Strided({2, kMax}, {kMax, 1})));
  EXPECT_TRUE(OverlapsItself(Strided({2, kMax}, {kMax - 1, 1})));
  // Coprime strides a and b first coincide at a * b: out of reach, or just within.
  EXPECT_FALSE(OverlapsItself(Strided({kMax, kMax}, {kMax, kMax - 1})));
  EXPECT_FALSE(OverlapsItself(Strided({kMax, kMax - 1}, {kMax - 1, kMax - 2})));
  EXPECT_TRUE(OverlapsItself(Strided({kMax - 1, kMax}, {kMax - 1, kMax - 2})));
  EXPECT_TRUE(OverlapsItself(Strided({kMax, kMax, kMax, kMax, kMax, kMax, kMax, kMax},
                                     {kMax, kMax, kMax, kMax, kMax, kMax, kMax, kMax})));
}

bool OverlapsByEnumeration(const TensorDesc& tensor) {
  std::set<uint64_t> offsets;
  const uint64_t count = ElementCount(tensor);
  for (uint64_t element = 0; element < count; ++element) {
    uint64_t rest = element, offset = 0;
    for (uint32_t i = 0; i < tensor.rank; ++i) {
      offset += rest % tensor.sizes[i] * tensor.strides[i];
      rest /= tensor.sizes[i];
    }
    if (!offsets.insert(offset).second) return true;
  }
  return false;
}

TEST(Overlap, AgreesWithEnumeration) {
  std::random_device device;
  for (const uint32_t seed : {1u, 2u, 3u, static_cast<uint32_t>(device())}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    int overlapping = 0;
    constexpr int kRounds = 20000;
    for (int round = 0; round < kRounds; ++round) {
      const uint32_t rank = 1 + random() % 8;
      const uint32_t max_size = rank > 5 ? 2 : rank > 3 ? 4 : 9;
      const uint32_t max_stride = 1u << (random() % 11);
      std::vector<uint32_t> sizes(rank), strides(rank);
      for (uint32_t& size : sizes) size = 1 + random() % max_size;
      for (uint32_t& stride : strides) stride = random() % 16 == 0 ? 0 : 1 + random() % max_stride;
      const TensorDesc tensor = Strided(sizes, strides);
      const bool expected = OverlapsByEnumeration(tensor);
      overlapping += expected;
      TensorDesc strides_as_sizes = tensor;
      strides_as_sizes.sizes = tensor.strides;
      ASSERT_EQ(OverlapsItself(tensor), expected)
          << "sizes " << SizesToString(tensor) << " strides " << SizesToString(strides_as_sizes);
    }
    // Both results occurred often.
    EXPECT_GT(overlapping, kRounds / 10);
    EXPECT_LT(overlapping, kRounds * 9 / 10);
  }
}

// Strides without structure, the search's worst case: exact for small tensors. When the budget is used up,
// the search ends, however large the tensors are and however many share it.
TEST(Overlap, HostileStridesEndSoon) {
  std::mt19937 random(3);
  std::vector<uint32_t> strides(8);
  for (uint32_t& stride : strides) stride = 0x80000000u | static_cast<uint32_t>(random());
  const TensorDesc small = Strided({2, 2, 2, 2, 2, 2, 2, 2}, strides);
  EXPECT_EQ(OverlapsItself(small), OverlapsByEnumeration(small));
  OverlapBudget budget;
  const uint32_t steps = budget.steps;
  const TensorDesc hostile = Strided({12, 12, 12, 12, 12, 12, 2, 2}, strides);
  EXPECT_EQ(FindOverlap(hostile, &budget), Overlap::kUnknown);
  EXPECT_EQ(budget.steps, 0u);
  EXPECT_EQ(FindOverlap(small, &budget), Overlap::kUnknown);  // the budget is used up
  // One step less than a search needs is not enough.
  budget.steps = steps;
  ASSERT_NE(FindOverlap(small, &budget), Overlap::kUnknown);
  OverlapBudget scarce{steps - budget.steps - 1};
  EXPECT_EQ(FindOverlap(small, &scarce), Overlap::kUnknown);
}

// Every layout that tiles, pads or transposes is decided without a search step.
TEST(Overlap, OrdinaryLayoutsNeedNoBudget) {
  OverlapBudget nothing{0};
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint32_t> sizes(1 + random() % 8), strides(sizes.size()), order(sizes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    uint32_t span = 1;
    for (const uint32_t axis : order) {
      sizes[axis] = 1 + random() % 9;
      strides[axis] = span + random() % 4;  // padded
      span = strides[axis] * sizes[axis];
    }
    ASSERT_EQ(FindOverlap(Strided(sizes, strides), &nothing), Overlap::kNone);
  }
  EXPECT_EQ(FindOverlap(Strided({2, 2}, {1, 1}), &nothing), Overlap::kSome);
}

}  // namespace
}  // namespace anydml
