// Loops and copies.
#include <gtest/gtest.h>

#include <utility>

#include "ops/common/loop_nest.h"
#include "ops/common/nest_copy.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/common/strided_copy.h"
#include "ops/common/transpose_block.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Nest = LoopNest<2>;

LoopNest<2> NestOf(const TensorDesc& a, const TensorDesc& b) {
  Nest nest;
  for (uint32_t d = 0; d < a.rank; ++d) nest.Append(a.sizes[d], {a.strides[d], b.strides[d]});
  return nest;
}

TEST(LoopNest, CoalescesWhatAllOperandsContinue) {
  const TensorDesc packed = Packed(DataType::kUInt8, {2, 3, 4});
  EXPECT_EQ(NestOf(packed, packed).rank, 1u);
  EXPECT_EQ(NestOf(packed, packed).loops[0].size, 24u);
  const Nest nest = NestOf(packed, Strided(DataType::kUInt8, {2, 3, 4}, {12, 4, 1}));
  EXPECT_EQ(nest.rank, 1u);
  EXPECT_EQ(NestOf(packed, Strided(DataType::kUInt8, {2, 3, 4}, {16, 4, 1})).rank, 2u);
  EXPECT_EQ(NestOf(packed, Strided(DataType::kUInt8, {2, 3, 4}, {0, 4, 1})).rank, 2u);
  EXPECT_EQ(NestOf(packed, Strided(DataType::kUInt8, {2, 3, 4}, {1, 2, 6})).rank, 3u);
}

TEST(LoopNest, DimensionsOfOneVanish) {
  const TensorDesc tensor = Strided(DataType::kUInt8, {1, 2, 1, 3, 1}, {99, 3, 77, 1, 55});
  EXPECT_EQ(NestOf(tensor, tensor).rank, 1u);
  const TensorDesc one = Strided(DataType::kUInt8, {1, 1}, {9, 9});
  EXPECT_EQ(NestOf(one, one).rank, 0u);
  int calls = 0;
  ForEach(NestOf(one, one), [&](const Nest::Offsets& offsets) {
    ++calls;
    EXPECT_EQ(offsets, (Nest::Offsets{0, 0}));
  });
  EXPECT_EQ(calls, 1);
}

TEST(LoopNest, BroadcastDimensionsCoalesceWithEachOther) {
  const TensorDesc tensor = Strided(DataType::kUInt8, {2, 3}, {0, 0});
  EXPECT_EQ(NestOf(tensor, tensor).rank, 1u);
}

TEST(LoopNest, VisitsInRowMajorOrder) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 500; ++i) {
    std::vector<uint32_t> sizes;
    for (uint32_t d = Uniform(random, 1, 8); d > 0; --d) sizes.push_back(Uniform(random, 1, 3));
    const TensorDesc a = MakeTensor(DataType::kUInt8, sizes, kInputLayouts[i % 4], random);
    const TensorDesc b = MakeTensor(DataType::kUInt8, sizes, kInputLayouts[i / 4 % 4], random);
    std::vector<uint64_t> visited_a, visited_b;
    ForEach(NestOf(a, b), {5, 7}, [&](const Nest::Offsets& offsets) {
      visited_a.push_back(offsets[0] - 5);
      visited_b.push_back(offsets[1] - 7);
    });
    ASSERT_EQ(visited_a, RowMajorOffsets(a));
    ASSERT_EQ(visited_b, RowMajorOffsets(b));
  }
}

TEST(LoopNest, SortingPutsTheSmallestStrideInside) {
  const TensorDesc columns = Strided(DataType::kUInt8, {2, 3, 4}, {1, 2, 6});
  const Nest sorted = SortedByStride(NestOf(columns, columns), 0);
  EXPECT_EQ(sorted.rank, 1u);  // packed when sorted
  EXPECT_EQ(sorted.loops[0].size, 24u);
}

TEST(NestParts, EveryIterationInOnePart) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 500; ++i) {
    std::vector<uint32_t> sizes;
    for (uint32_t d = Uniform(random, 1, 4); d > 0; --d) sizes.push_back(Uniform(random, 1, 9));
    const TensorDesc tensor = MakeTensor(DataType::kUInt8, sizes, kOutputLayouts[i % 3], random);
    const Nest nest = NestOf(tensor, tensor);
    const uint32_t wanted = Uniform(random, 1, 12);
    const auto parts = CutNest(nest, LoopToCut(nest, wanted), wanted);
    ASSERT_GE(parts.size(), 1u);
    ASSERT_LE(parts.size(), wanted);
    std::vector<uint64_t> visited;
    for (const NestPart<2>& part : parts) {
      ForEach(part.outer, part.start, [&](const Nest::Offsets& offsets) {
        ASSERT_EQ(offsets[0], offsets[1]);
        for (uint64_t k = 0; k < part.inner.size; ++k) {
          visited.push_back(offsets[0] + k * part.inner.strides[0]);
        }
      });
    }
    auto expected = RowMajorOffsets(tensor);
    std::sort(expected.begin(), expected.end());
    std::sort(visited.begin(), visited.end());
    ASSERT_EQ(visited, expected);
  }
}

TEST(NestParts, TheOutermostLongLoopIsCut) {
  const TensorDesc padded = Strided(DataType::kUInt8, {2, 100, 1000}, {200000, 1001, 1});
  const Nest nest = NestOf(padded, padded);
  EXPECT_EQ(LoopToCut(nest, 2), 1u);
  EXPECT_EQ(LoopToCut(nest, 100), 2u);
  EXPECT_EQ(LoopToCut(nest, 1000), 2u);
  EXPECT_EQ(CutNest(nest, 0, 7).size(), 2u);  // it has two iterations
}

TEST(NestParts, SmallWorkIsNotCut) {
  EXPECT_EQ(PartsForBytes(511 << 10, 8), 1u);
  EXPECT_EQ(PartsForBytes(uint64_t{1} << 40, 1), 1u);
  EXPECT_EQ(PartsForBytes(512 << 10, 8), 2u);
  EXPECT_EQ(PartsForBytes(uint64_t{1} << 40, 8), 32u);
}

TEST(StridedCopy, NothingToDoInPlace) {
  const TensorDesc tensor = Strided(DataType::kUInt16, {2, 3}, {4, 1});
  const StridedCopy copy(tensor, tensor);
  EXPECT_TRUE(copy.in_place());
  EXPECT_FALSE(StridedCopy(tensor, Packed(DataType::kUInt16, {2, 3})).in_place());
}

// Checks element (i, j) of a transposed copy, in elements of `width` bytes.
void ExpectTransposed(uint32_t width, uint64_t rows, uint64_t columns, uint64_t gap, uint32_t parts,
                      bool streams) {
  Nest nest;
  nest.Append(rows, {1, columns + gap});
  nest.Append(columns, {rows + gap, 1});
  const auto tag = [](uint64_t element, uint32_t byte) {
    return static_cast<std::byte>((element * 0x9E3779B97F4A7C15u) >> (8 + 8 * byte));
  };
  std::vector<std::byte> from(columns * (rows + gap) * width), to(rows * (columns + gap) * width);
  for (uint64_t e = 0; e < from.size() / width; ++e) {
    for (uint32_t b = 0; b < width; ++b) from[e * width + b] = tag(e, b);
  }
  const NestCopy copy(nest, width, streams);
  for (uint32_t p = 0; p < parts; ++p) copy.Run(from.data(), to.data(), p, parts);
  uint64_t wrong = 0;
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < columns + gap; ++c) {
      for (uint32_t b = 0; b < width; ++b) {
        const std::byte want = c < columns ? tag(c * (rows + gap) + r, b) : std::byte{0};
        wrong += to[(r * (columns + gap) + c) * width + b] != want;
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << width << " bytes, " << rows << " x " << columns << ", gap " << gap << ", " << parts
                       << " parts";
}

TEST(NestCopy, TransposesWhatHasManyTiles) {
  for (const uint32_t width : {1u, 2u, 4u, 8u}) {
    for (const bool streams : {false, true}) {
      ExpectTransposed(width, 640, 768, 0, 1, streams);
      ExpectTransposed(width, 517, 1031, 3, 3, streams);
      ExpectTransposed(width, 3, 50000, 0, 2, streams);
      ExpectTransposed(width, 50000, 2, 0, 5, streams);
      ExpectTransposed(width, 5, 9999, 1, 4, streams);
      ExpectTransposed(width, 64, 3000, 0, 2, streams);  // long tiles
      ExpectTransposed(width, 3000, 32, 0, 2, streams);
      ExpectTransposed(width, 9, 700, 7, 1, streams);
    }
  }
}

// From and to any alignment, writing nothing else.
TEST(StreamCopy, AllLengths) {
  std::vector<std::byte> from(1000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 0x9E3779B1u >> 16);
  for (uint64_t bytes = 0; bytes < 700; bytes += 1 + bytes / 100) {
    const uint64_t source = bytes * 7 % 80, target = bytes * 13 % 150;
    std::vector<std::byte> expected(1000, std::byte{1}), copied = expected, computed = expected;
    std::copy_n(from.data() + source, bytes, expected.data() + target);
    StreamCopy(copied.data() + target, from.data() + source, bytes);
    StreamComputed(computed.data() + target, from.data() + source, bytes);
    EndStream();
    EXPECT_EQ(copied, expected) << bytes;
    EXPECT_EQ(computed, expected) << bytes;
  }
}

// The target begins at a cache line; bytes outside the block are not written.
template <typename T>
void ExpectTurned(uint64_t rows, uint64_t columns, uint64_t height, TransposeTo where) {
  const uint64_t width = (columns + 63) / 32 * 32;
  std::vector<T> from(columns * height), memory(rows * width + 64, T{7});
  for (uint64_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 0x9E3779B1u >> 8 | 8);
  T* const to = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) / sizeof(T);
  TransposeBlock(from.data(), static_cast<int64_t>(height), rows, columns, to, static_cast<int64_t>(width),
                 where);
  EndStream();
  uint64_t wrong = 0;
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < width; ++c)
      wrong += to[r * width + c] != (c < columns ? from[c * height + r] : T{7});
  }
  EXPECT_EQ(wrong, 0u) << sizeof(T) << " bytes, " << rows << " x " << columns << ", " << height << " apart, "
                       << static_cast<int>(where);
}

TEST(TransposeBlock, AnySize) {
  for (const uint64_t rows : {1, 3, 8, 16, 31, 32, 50, 64, 131}) {
    for (const uint64_t columns : {1, 7, 8, 16, 32, 45, 64, 100, 245}) {
      for (const auto where :
           {TransposeTo::kTile, TransposeTo::kTiles, TransposeTo::kTensor, TransposeTo::kStream}) {
        // The second one: columns whose cache lines map to the same set.
        for (const uint64_t height : {rows + 5, uint64_t{1024}}) {
          ExpectTurned<uint16_t>(rows, columns, height, where);
          ExpectTurned<uint32_t>(rows, columns, height, where);
        }
      }
    }
  }
  for (const auto where :
       {TransposeTo::kTile, TransposeTo::kTiles, TransposeTo::kTensor, TransposeTo::kStream}) {
    ExpectTurned<uint16_t>(700, 100, 705, where);  // long columns
    ExpectTurned<uint32_t>(700, 100, 705, where);
    ExpectTurned<uint16_t>(130, 300, 1024, where);  // many of them
    ExpectTurned<uint16_t>(300, 300, 1024, where);
  }
}

TEST(NestCopy, LongRunsAndPeriodsInParts) {
  for (const uint32_t width : {1u, 2u, 4u, 8u}) {
    std::vector<std::byte> from(300000 * width), to(from.size() + 64);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    Nest run;
    run.Append(300000, {1, 1});
    for (uint32_t p = 0; p < 7; ++p) NestCopy(run, width, p % 2 == 0).Run(from.data(), to.data(), p, 7);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    EXPECT_TRUE(
        std::all_of(to.begin() + from.size(), to.end(), [](std::byte b) { return b == std::byte{0}; }));
    Nest periods;
    periods.Append(300000 / 7, {0, 7});
    periods.Append(7, {1, 1});
    for (uint32_t p = 0; p < 3; ++p) NestCopy(periods, width, false).Run(from.data(), to.data(), p, 3);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < 300000 / 7 * 7 * width; ++i) wrong += to[i] != from[i % (7 * width)];
    EXPECT_EQ(wrong, 0u) << width;
  }
}

}  // namespace
}  // namespace anydml::testing
