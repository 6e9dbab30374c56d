// The moving operators against the examples of DirectML's pages and results computed by hand.
#include <gtest/gtest.h>

#include <numeric>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Values = std::vector<float>;
using Sizes = std::vector<uint32_t>;

TensorDesc Floats(const Sizes& sizes) { return Packed(DataType::kFloat32, sizes); }

// 1, 2, 3, ...
Values Counting(size_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// Output 0 of an operator whose input 0 has `values`.
Values Result(const OperatorDesc& desc, const Values& values) {
  const RunResult result = ExpectAllAgree(desc, {Scattered(*desc.inputs()[0], values)});
  return Gathered<float>(*desc.outputs()[0], result.outputs[0]);
}

OperatorDesc Slice1(const char* name, const TensorDesc& input, const TensorDesc& output, const Sizes& offsets,
                    const Sizes& sizes, const std::vector<int32_t>& strides) {
  const bool is_gradient = std::string_view(name) == "SLICE_GRAD";
  return MakeDesc(name, {{is_gradient ? "InputGradientTensor" : "InputTensor", input},
                         {is_gradient ? "OutputGradientTensor" : "OutputTensor", output},
                         {"DimensionCount", static_cast<uint32_t>(offsets.size())},
                         {"InputWindowOffsets", offsets},
                         {"InputWindowSizes", sizes},
                         {"InputWindowStrides", strides}});
}

TEST(Slice, OffsetsSizesAndStrides) {
  const OperatorDesc desc = MakeDesc("SLICE", {{"InputTensor", Floats({1, 1, 4, 4})},
                                               {"OutputTensor", Floats({1, 1, 2, 2})},
                                               {"DimensionCount", 4u},
                                               {"Offsets", Sizes{0, 0, 1, 0}},
                                               {"Sizes", Sizes{1, 1, 2, 2}},
                                               {"Strides", Sizes{1, 1, 2, 3}}});
  EXPECT_EQ(Result(desc, Counting(16)), (Values{5, 8, 13, 16}));
}

// The examples of SLICE1's page.
TEST(Slice1, ThePagesExamples) {
  const TensorDesc input = Floats({1, 1, 4, 4});
  EXPECT_EQ(Result(Slice1("SLICE1", input, Floats({1, 1, 2, 4}), {0, 0, 0, 0}, {1, 1, 4, 4}, {1, 1, 2, 1}),
                   Counting(16)),
            (Values{1, 2, 3, 4, 9, 10, 11, 12}));
  EXPECT_EQ(Result(Slice1("SLICE1", input, Floats({1, 1, 4, 2}), {0, 0, 0, 0}, {1, 1, 4, 4}, {1, 1, 1, -2}),
                   Counting(16)),
            (Values{4, 2, 8, 6, 12, 10, 16, 14}));
}

TEST(Slice1, WindowsAndNegativeStrides) {
  const TensorDesc input = Floats({10});
  // From the end of the window [2, 9).
  EXPECT_EQ(Result(Slice1("SLICE1", input, Floats({3}), {2}, {7}, {-3}), Counting(10)), (Values{9, 6, 3}));
  // Fewer than possible.
  EXPECT_EQ(Result(Slice1("SLICE1", input, Floats({2}), {2}, {7}, {-3}), Counting(10)), (Values{9, 6}));
  EXPECT_EQ(Result(Slice1("SLICE1", input, Floats({10}), {0}, {10}, {-1}), Counting(10)),
            (Values{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(Slice1, ATriangleOfAShearedInput) {
  // Each row begins one element later: clients build triangular masks this way.
  const TensorDesc sheared = Strided(DataType::kFloat32, {3, 3}, {2, 1});
  EXPECT_EQ(Result(Slice1("SLICE1", sheared, Floats({3, 3}), {0, 0}, {3, 3}, {1, 1}),
                   Gathered<float>(sheared, Scattered(Floats({7}), Counting(7)))),
            (Values{1, 2, 3, 3, 4, 5, 5, 6, 7}));
}

TEST(SliceGrad, ZerosAroundAndBetween) {
  EXPECT_EQ(Result(Slice1("SLICE_GRAD", Floats({1, 1, 1, 2}), Floats({1, 1, 3, 4}), {0, 0, 1, 0},
                          {1, 1, 1, 4}, {1, 1, 1, 2}),
                   {5, 6}),
            (Values{0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Result(Slice1("SLICE_GRAD", Floats({3}), Floats({8}), {1}, {6}, {-2}), {5, 6, 7}),
            (Values{0, 0, 7, 0, 6, 0, 5, 0}));
  EXPECT_EQ(Result(Slice1("SLICE_GRAD", Floats({2}), Floats({4}), {1}, {2}, {1}), {5, 6}),
            (Values{0, 5, 6, 0}));
}

TEST(Split, AlongAnAxis) {
  const TensorDesc input = Floats({2, 5});
  const std::vector<TensorDesc> outputs = {Floats({2, 2}), Floats({2, 1}), Floats({2, 2})};
  const OperatorDesc desc = MakeDesc(
      "SPLIT", {{"InputTensor", input}, {"OutputCount", 3u}, {"OutputTensors", outputs}, {"Axis", 1u}});
  const RunResult result = ExpectAllAgree(desc, {Scattered(input, Counting(10))});
  EXPECT_EQ(Gathered<float>(outputs[0], result.outputs[0]), (Values{1, 2, 6, 7}));
  EXPECT_EQ(Gathered<float>(outputs[1], result.outputs[1]), (Values{3, 8}));
  EXPECT_EQ(Gathered<float>(outputs[2], result.outputs[2]), (Values{4, 5, 9, 10}));
}

TEST(Split, EveryChannelApart) {
  constexpr uint32_t kChannels = 700, kRows = 9;
  const TensorDesc input = Floats({kRows, kChannels});
  const std::vector<TensorDesc> outputs(kChannels, Floats({kRows, 1}));
  const OperatorDesc desc = MakeDesc(
      "SPLIT",
      {{"InputTensor", input}, {"OutputCount", kChannels}, {"OutputTensors", outputs}, {"Axis", 1u}});
  const RunResult result = ExpectAllAgree(desc, {Scattered(input, Counting(kRows * kChannels))});
  for (uint32_t c = 0; c < kChannels; ++c) {
    const Values column = Gathered<float>(outputs[c], result.outputs[c]);
    for (uint32_t r = 0; r < kRows; ++r) ASSERT_EQ(column[r], static_cast<float>(r * kChannels + c + 1));
  }
}

TEST(Join, AlongAnAxis) {
  const std::vector<TensorDesc> inputs = {Floats({2, 2}), Floats({2, 1})};
  const OperatorDesc desc = MakeDesc(
      "JOIN", {{"InputCount", 2u}, {"InputTensors", inputs}, {"OutputTensor", Floats({2, 3})}, {"Axis", 1u}});
  const RunResult result =
      ExpectAllAgree(desc, {Scattered(inputs[0], Values{1, 2, 3, 4}), Scattered(inputs[1], Values{5, 6})});
  EXPECT_EQ(Gathered<float>(Floats({2, 3}), result.outputs[0]), (Values{1, 2, 5, 3, 4, 6}));
}

TEST(Join, OneIsACopy) {
  const OperatorDesc desc = MakeDesc("JOIN", {{"InputCount", 1u},
                                              {"InputTensors", std::vector<TensorDesc>{Floats({2, 2})}},
                                              {"OutputTensor", Floats({2, 2})},
                                              {"Axis", 0u}});
  EXPECT_EQ(Result(desc, {1, 2, 3, 4}), (Values{1, 2, 3, 4}));
}

TEST(Tile, RepeatsDimensions) {
  const OperatorDesc desc = MakeDesc("TILE", {{"InputTensor", Floats({1, 1, 2, 2})},
                                              {"OutputTensor", Floats({1, 1, 4, 6})},
                                              {"RepeatsCount", 4u},
                                              {"Repeats", Sizes{1, 1, 2, 3}}});
  EXPECT_EQ(Result(desc, {1, 2, 3, 4}), (Values{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4,  //
                                                1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(Tile, EveryOneOfEightDimensions) {
  const TensorDesc input = Floats(Sizes(8, 2)), output = Floats(Sizes(8, 4));
  const OperatorDesc desc = MakeDesc(
      "TILE",
      {{"InputTensor", input}, {"OutputTensor", output}, {"RepeatsCount", 8u}, {"Repeats", Sizes(8, 2)}});
  const Values result = Result(desc, Counting(256));
  for (uint32_t i = 0; i < result.size(); ++i) {
    uint32_t from = 0;
    for (uint32_t d = 0; d < 8; ++d) from = from * 2 + (i >> (2 * (7 - d)) & 3u) % 2;
    ASSERT_EQ(result[i], static_cast<float>(from + 1));
  }
}

OperatorDesc Pad(uint32_t mode, const Sizes& sizes, const Sizes& start, const Sizes& end, float value = 0,
                 DataType type = DataType::kFloat32) {
  Sizes padded = sizes;
  for (size_t d = 0; d < sizes.size(); ++d) padded[d] += start[d] + end[d];
  return MakeDesc("PADDING", {{"InputTensor", Packed(type, sizes)},
                              {"OutputTensor", Packed(type, padded)},
                              {"PaddingMode", mode},
                              {"PaddingValue", value},
                              {"DimensionCount", static_cast<uint32_t>(sizes.size())},
                              {"StartPadding", start},
                              {"EndPadding", end}});
}

TEST(Padding, Modes) {
  const Values abc = {1, 2, 3};
  EXPECT_EQ(Result(Pad(0, {3}, {2}, {1}, 9), abc), (Values{9, 9, 1, 2, 3, 9}));
  EXPECT_EQ(Result(Pad(1, {3}, {2}, {1}), abc), (Values{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(Result(Pad(2, {3}, {2}, {2}), abc), (Values{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(Result(Pad(3, {3}, {2}, {2}), abc), (Values{2, 1, 1, 2, 3, 3, 2}));
  EXPECT_EQ(Result(Pad(4, {3}, {2}, {2}), abc), (Values{2, 3, 1, 2, 3, 1, 2}));
}

TEST(Padding, LongerThanTheDimension) {
  const Values abc = {1, 2, 3};
  EXPECT_EQ(Result(Pad(2, {3}, {6}, {7}), abc), (Values{3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(Result(Pad(3, {3}, {7}, {8}), abc),
            (Values{1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2}));
  EXPECT_EQ(Result(Pad(4, {3}, {7}, {8}), abc),
            (Values{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}));
  EXPECT_EQ(Result(Pad(2, {1}, {3}, {2}), {7}), Values(6, 7));
}

// The page's examples of reflection and symmetry pad both dimensions, too.
TEST(Padding, TwoDimensions) {
  EXPECT_EQ(Result(Pad(2, {1, 1, 2, 2}, {0, 0, 1, 1}, {0, 0, 1, 1}), {1, 2, 3, 4}),
            (Values{4, 3, 4, 3, 2, 1, 2, 1, 4, 3, 4, 3, 2, 1, 2, 1}));
  EXPECT_EQ(Result(Pad(3, {1, 1, 2, 2}, {0, 0, 1, 1}, {0, 0, 1, 1}), {1, 2, 3, 4}),
            (Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  EXPECT_EQ(Result(Pad(0, {1, 1, 2, 2}, {0, 0, 1, 1}, {0, 0, 0, 1}, 9), {1, 2, 3, 4}),
            (Values{9, 9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9}));
}

TEST(Padding, EveryOneOfEightDimensions) {
  for (uint32_t mode = 0; mode <= 4; ++mode) {
    const Sizes sizes(8, 2);
    const OperatorDesc desc = Pad(mode, sizes, Sizes(8, 1), Sizes(8, 1), 9);
    const Values result = Result(desc, Counting(256));
    constexpr uint32_t kFrom[5][4] = {{2, 0, 1, 2}, {0, 0, 1, 1}, {1, 0, 1, 0}, {0, 0, 1, 1}, {1, 0, 1, 0}};
    for (uint32_t i = 0; i < result.size(); ++i) {
      uint32_t from = 0;
      bool outside = false;
      for (uint32_t d = 0; d < 8; ++d) {
        const uint32_t at = kFrom[mode][i >> (2 * (7 - d)) & 3u];
        outside |= at == 2;
        from = from * 2 + at;
      }
      ASSERT_EQ(result[i], outside ? 9 : static_cast<float>(from + 1)) << mode;
    }
  }
}

TEST(Padding, ValuesOfIntegersAreTruncatedAndSaturated) {
  const auto padded = [](float value) {
    const OperatorDesc desc = Pad(0, {1}, {1}, {0}, value, DataType::kInt8);
    const RunResult result = ExpectAllAgree(desc, {Scattered(*desc.inputs()[0], std::vector<int8_t>{5})});
    return Gathered<int8_t>(*desc.outputs()[0], result.outputs[0])[0];
  };
  EXPECT_EQ(padded(-2.9f), -2);
  EXPECT_EQ(padded(300), 127);
  EXPECT_EQ(padded(-300), -128);
}

TEST(Padding1, TheUnionHoldsAnElement) {
  Scalar value = {};
  value.bytes = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
  const TensorDesc input = Packed(DataType::kInt64, {1}), output = Packed(DataType::kInt64, {3});
  const OperatorDesc desc = MakeDesc("PADDING1", {{"InputTensor", input},
                                                  {"OutputTensor", output},
                                                  {"PaddingMode", 0u},
                                                  {"PaddingValueDataType", uint32_t(DataType::kInt64)},
                                                  {"PaddingValue", value},
                                                  {"DimensionCount", 1u},
                                                  {"StartPadding", Sizes{1}},
                                                  {"EndPadding", Sizes{1}}});
  const RunResult result = ExpectAllAgree(desc, {Scattered(input, std::vector<int64_t>{5})});
  EXPECT_EQ(Gathered<int64_t>(output, result.outputs[0]), (std::vector<int64_t>{INT64_MAX, 5, INT64_MAX}));
}

OperatorDesc Blocks(const char* name, const Sizes& input, const Sizes& output, uint32_t order) {
  return MakeDesc(name, {{"InputTensor", Floats(input)},
                         {"OutputTensor", Floats(output)},
                         {"BlockSize", 2u},
                         {"Order", order}});
}

TEST(DepthToSpace, BothOrders) {
  // Channels of 1 x 1 pixels: eight of them become two channels of 2 x 2.
  EXPECT_EQ(Result(Blocks("DEPTH_TO_SPACE1", {1, 8, 1, 1}, {1, 2, 2, 2}, 0), Counting(8)),
            (Values{1, 3, 5, 7, 2, 4, 6, 8}));
  EXPECT_EQ(Result(Blocks("DEPTH_TO_SPACE1", {1, 8, 1, 1}, {1, 2, 2, 2}, 1), Counting(8)),
            (Values{1, 2, 3, 4, 5, 6, 7, 8}));
  const OperatorDesc old = MakeDesc(
      "DEPTH_TO_SPACE",
      {{"InputTensor", Floats({1, 4, 1, 2})}, {"OutputTensor", Floats({1, 1, 2, 4})}, {"BlockSize", 2u}});
  EXPECT_EQ(Result(old, Counting(8)), (Values{1, 3, 2, 4, 5, 7, 6, 8}));
}

TEST(SpaceToDepth, IsTheInverse) {
  for (uint32_t order = 0; order < 2; ++order) {
    const Sizes depth = {2, 12, 3, 5}, space = {2, 3, 6, 10};
    const Values there = Result(Blocks("DEPTH_TO_SPACE1", depth, space, order), Counting(360));
    EXPECT_EQ(Result(Blocks("SPACE_TO_DEPTH1", space, depth, order), there), Counting(360));
  }
  const OperatorDesc old = MakeDesc(
      "SPACE_TO_DEPTH",
      {{"InputTensor", Floats({1, 1, 2, 4})}, {"OutputTensor", Floats({1, 4, 1, 2})}, {"BlockSize", 2u}});
  EXPECT_EQ(Result(old, Counting(8)), (Values{1, 3, 2, 4, 5, 7, 6, 8}));
}

TEST(ReverseSubsequences, LengthsClampAndShortOnesCopy) {
  const TensorDesc input = Floats({5, 4}), lengths = Packed(DataType::kUInt64, {5, 1});
  const OperatorDesc desc = MakeDesc(
      "REVERSE_SUBSEQUENCES",
      {{"InputTensor", input}, {"SequenceLengthsTensor", lengths}, {"OutputTensor", input}, {"Axis", 1u}});
  const RunResult result = ExpectAllAgree(
      desc,
      {Scattered(input, Counting(20)), Scattered(lengths, std::vector<uint64_t>{0, 1, 3, 4, ~uint64_t{0}})});
  EXPECT_EQ(Gathered<float>(input, result.outputs[0]),
            (Values{1,  2,  3,  4,  5,  6,  7,  8, 11, 10, 9, 12,  //
                    16, 15, 14, 13, 20, 19, 18, 17}));
}

TEST(ReverseSubsequences, ONNXsExampleWithTimeFirst) {
  const TensorDesc input = Floats({4, 4}), lengths = Packed(DataType::kUInt32, {1, 4});
  const OperatorDesc desc = MakeDesc(
      "REVERSE_SUBSEQUENCES",
      {{"InputTensor", input}, {"SequenceLengthsTensor", lengths}, {"OutputTensor", input}, {"Axis", 0u}});
  const Values columns = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const RunResult result = ExpectAllAgree(
      desc, {Scattered(input, columns), Scattered(lengths, std::vector<uint32_t>{4, 3, 2, 1})});
  EXPECT_EQ(Gathered<float>(input, result.outputs[0]),
            (Values{3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15}));
}

TEST(ValueScale, ABiasPerChannel) {
  const TensorDesc tensor = Floats({1, 3, 1, 2});
  const OperatorDesc desc = MakeDesc("VALUE_SCALE_2D", {{"InputTensor", tensor},
                                                        {"OutputTensor", tensor},
                                                        {"Scale", 2.0f},
                                                        {"ChannelCount", 3u},
                                                        {"Bias", Values{1, 10, 100}}});
  EXPECT_EQ(Result(desc, Counting(6)), (Values{3, 5, 16, 18, 110, 112}));
}

}  // namespace
}  // namespace anydml::testing
