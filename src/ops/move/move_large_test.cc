// All implementations of the moving operators against each other, at sizes for which they use different ways
// to copy.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

// Enough elements for a GPU thread to write several repetitions.
TEST(Tile, RepeatsLargeDimensions) {
  std::mt19937_64 random(TestSeed());
  const TensorDesc input = Packed(DataType::kFloat16, {3, 256, 512});
  ExpectAllAgree(MakeDesc("TILE", {{"InputTensor", input},
                                   {"OutputTensor", Packed(DataType::kFloat16, {9, 256, 1024})},
                                   {"RepeatsCount", 3u},
                                   {"Repeats", Sizes{3, 1, 2}}}),
                 {RandomBytes(input, random)});
}

TEST(Tile, MoreThan2To31Elements) {
  if (std::getenv("ANYDML_TEST_LARGE") == nullptr)
    GTEST_SKIP() << "takes gigabytes; ANYDML_TEST_LARGE=1 runs it";
  constexpr uint32_t kSize = 257, kRepeats = 1 << 23;
  const TensorDesc input = Packed(DataType::kUInt8, {kSize});
  const OperatorDesc desc = MakeDesc("TILE", {{"InputTensor", input},
                                              {"OutputTensor", Packed(DataType::kUInt8, {kSize * kRepeats})},
                                              {"RepeatsCount", 1u},
                                              {"Repeats", Sizes{kRepeats}}});
  std::vector<uint8_t> values(kSize);
  std::iota(values.begin(), values.end(), uint8_t{1});
  for (const char* name : RunnableImplementations(desc)) {
    if (std::string_view(name) == "cpu.reference") continue;
    const RunResult result =
        RunOperator(desc, {Scattered(input, values)}, {.implementation = name, .threads = 2});
    const uint8_t* const bytes = result.outputs[0].data();
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < kRepeats; ++i)
      wrong += std::memcmp(bytes + i * kSize, values.data(), kSize) != 0;
    EXPECT_EQ(wrong, 0u) << name;
  }
}

OperatorDesc Frame(const TensorDesc& input, const TensorDesc& output, uint32_t mode, const Sizes& start,
                   const Sizes& end) {
  return MakeDesc("PADDING", {{"InputTensor", input},
                              {"OutputTensor", output},
                              {"PaddingMode", mode},
                              {"PaddingValue", 7.0f},
                              {"DimensionCount", input.rank},
                              {"StartPadding", start},
                              {"EndPadding", end}});
}

// Padding of every mode around images whose rows are about as long as a unit and longer, with elements of
// every width.
TEST(Padding, Frames) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kUInt8, DataType::kFloat16, DataType::kFloat32, DataType::kInt64}) {
    for (const uint32_t width : {14u, 15u, 45u, 112u, 2100u}) {
      const TensorDesc input = Packed(type, {2, 3, 7, width});
      const TensorDesc columns = Strided(type, {2, 3, 7, width}, {3 * 7 * width, 7 * width, 1, 7});
      for (uint32_t mode = 0; mode < 5; ++mode) {
        for (const TensorDesc& from : {input, columns}) {
          ExpectAllAgree(Frame(from, Packed(type, {2, 4, 8, width + 2}), mode, {0, 1, 0, 1}, {0, 0, 1, 1}),
                         {RandomBytes(from, random)});
        }
        // Padding larger than the tensor, and no padding along rows.
        ExpectAllAgree(Frame(input, Packed(type, {5, 3, 24, width + 3}), mode, {2, 0, 9, 3}, {1, 0, 8, 0}),
                       {RandomBytes(input, random)});
        ExpectAllAgree(Frame(input, Packed(type, {2, 6, 7, width}), mode, {0, 2, 0, 0}, {0, 1, 0, 0}),
                       {RandomBytes(input, random)});
      }
    }
  }
}

// Large enough for non-temporal stores; rows begin anywhere in a cache line.
TEST(Padding, LargeFrames) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kFloat32, DataType::kInt64}) {
    const TensorDesc input = Packed(type, {400, 100, 110}), output = Packed(type, {400, 103, 113});
    for (uint32_t mode = 0; mode < 5; ++mode) {
      ExpectAllAgree(Frame(input, output, mode, {0, 1, 2}, {0, 2, 1}), {RandomBytes(input, random)});
    }
  }
}

// Of the last dimension of a matrix.
OperatorDesc EverySecond(const TensorDesc& input, const TensorDesc& output, const Sizes& offsets,
                         const Sizes& sizes) {
  return MakeDesc("SLICE1", {{"InputTensor", input},
                             {"OutputTensor", output},
                             {"DimensionCount", 2u},
                             {"InputWindowOffsets", offsets},
                             {"InputWindowSizes", sizes},
                             {"InputWindowStrides", std::vector<int32_t>{1, 2}}});
}

// Rows of whole 16-byte units, with elements of every width.
TEST(Slice, EverySecond) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kUInt8, DataType::kFloat16, DataType::kFloat32, DataType::kInt64}) {
    for (const uint32_t width : {64u, 95u}) {
      const TensorDesc input = Strided(type, {5, width}, {112, 1}),
                       output = Packed(type, {5, (width + 1) / 2});
      ExpectAllAgree(EverySecond(input, output, {0, 0}, {5, width}), {RandomBytes(input, random)});
    }
  }
}

// Enough for non-temporal stores.
TEST(Slice, EverySecondOfMany) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kFloat32, DataType::kInt64}) {
    const TensorDesc input = Packed(type, {2100, 4007}), output = Packed(type, {2100, 2003});
    ExpectAllAgree(EverySecond(input, output, {0, 1}, {2100, 4006}), {RandomBytes(input, random)});
    // The slice ends at the tensor's last element.
    const TensorDesc whole = Packed(type, {2100, 4031}), lines = Packed(type, {2100, 2016});
    ExpectAllAgree(EverySecond(whole, lines, {0, 0}, {2100, 4031}), {RandomBytes(whole, random)});
  }
}

// Lines long enough for the wide tiles of 2-byte elements.
TEST(Transpose, LongLines) {
  std::mt19937_64 random(TestSeed());
  for (const uint32_t rows : {136u, 134u, 133u}) {
    const TensorDesc input = Strided(DataType::kFloat16, {rows, 520}, {1, rows});
    const TensorDesc output = Packed(DataType::kFloat16, {rows, 520});
    ExpectAllAgree(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", input}, {"OutputTensor", output}}),
                   {RandomBytes(input, random)});
  }
}

}  // namespace
}  // namespace anydml::testing
