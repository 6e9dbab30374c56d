// FOLD and UNFOLD against the examples of DirectML's pages and results computed by hand.
#include <gtest/gtest.h>

#include <numeric>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Numbers = std::vector<uint32_t>;

OperatorDesc Describe(const char* name, const TensorDesc& input, const TensorDesc& output,
                      const Numbers& windows, const Numbers& strides, const Numbers& dilations,
                      const Numbers& start, const Numbers& end) {
  return MakeDesc(name, {{"InputTensor", input},
                         {"OutputTensor", output},
                         {"DimensionCount", static_cast<uint32_t>(windows.size())},
                         {"WindowSizes", windows},
                         {"Strides", strides},
                         {"Dilations", dilations},
                         {"StartPadding", start},
                         {"EndPadding", end}});
}

template <typename T>
std::vector<T> ResultOf(const OperatorDesc& desc, const std::vector<T>& elements) {
  const RunResult result = ExpectAllAgree(desc, {Scattered(*desc.inputs()[0], elements)});
  return Gathered<T>(*desc.outputs()[0], result.outputs[0]);
}

std::vector<float> Count(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return numbers;
}

TEST(Fold, ThePagesFirstExample) {
  const auto desc =
      Describe("FOLD", Packed(DataType::kFloat32, {1, 9, 4}), Packed(DataType::kFloat32, {1, 1, 4, 4}),
               {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0});
  EXPECT_EQ(ResultOf(desc, Count(36)), (std::vector<float>{0, 5, 13, 9, 14, 38, 54, 32,  //
                                                           38, 86, 102, 56, 26, 57, 65, 35}));
}

TEST(Fold, ThePagesPaddedExamples) {
  const std::vector<float> first = {26, 70, 102, 60, 78, 183, 231, 129, 84, 195, 243, 135, 82, 182, 214, 116};
  const auto one = Describe("FOLD", Packed(DataType::kFloat32, {1, 9, 8}),
                            Packed(DataType::kFloat32, {1, 1, 4, 4}), {3, 3}, {1, 1}, {1, 1}, {1, 0}, {1, 0});
  EXPECT_EQ(ResultOf(one, Count(72)), first);
  const auto two = Describe("FOLD", Packed(DataType::kFloat32, {1, 18, 8}),
                            Packed(DataType::kFloat32, {1, 2, 4, 4}), {3, 3}, {1, 1}, {1, 1}, {1, 0}, {1, 0});
  std::vector<float> both = first;
  both.insert(both.end(), {170, 358, 390, 204, 294, 615, 663, 345, 300, 627, 675, 351, 226, 470, 502, 260});
  EXPECT_EQ(ResultOf(two, Count(144)), both);
}

TEST(Unfold, ThePagesExamples) {
  const TensorDesc image = Packed(DataType::kFloat32, {1, 1, 5, 5});
  const auto plain = Describe("UNFOLD", image, Packed(DataType::kFloat32, {1, 9, 9}), {3, 3}, {1, 1}, {1, 1},
                              {0, 0}, {0, 0});
  EXPECT_EQ(
      ResultOf(plain, Count(25)),
      (std::vector<float>{0,  1,  2,  5,  6,  7,  10, 11, 12, 1,  2,  3,  6,  7,  8,  11, 12, 13, 2,  3,  4,
                          7,  8,  9,  12, 13, 14, 5,  6,  7,  10, 11, 12, 15, 16, 17, 6,  7,  8,  11, 12, 13,
                          16, 17, 18, 7,  8,  9,  12, 13, 14, 17, 18, 19, 10, 11, 12, 15, 16, 17, 20, 21, 22,
                          11, 12, 13, 16, 17, 18, 21, 22, 23, 12, 13, 14, 17, 18, 19, 22, 23, 24}));
  const auto padded = Describe("UNFOLD", image, Packed(DataType::kFloat32, {1, 9, 15}), {3, 3}, {1, 1},
                               {1, 1}, {1, 0}, {1, 0});
  const auto columns = ResultOf(padded, Count(25));
  EXPECT_EQ(std::vector<float>(columns.begin(), columns.begin() + 15),
            (std::vector<float>{0, 0, 0, 0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17}));
  EXPECT_EQ(std::vector<float>(columns.end() - 15, columns.end()),
            (std::vector<float>{7, 8, 9, 12, 13, 14, 17, 18, 19, 22, 23, 24, 0, 0, 0}));
}

TEST(Fold, IntegersWrapAndHalvesAddUpInFloat32) {
  const auto bytes = Describe("FOLD", Packed(DataType::kUInt8, {1, 2, 2}),
                              Packed(DataType::kUInt8, {1, 1, 3}), {2}, {1}, {1}, {0}, {0});
  EXPECT_EQ(ResultOf<uint8_t>(bytes, {200, 100, 100, 7}), (std::vector<uint8_t>{200, 200, 7}));
  // 2048 + 1 + 1 would stay 2048 if each sum were rounded.
  const auto halves = Describe("FOLD", Packed(DataType::kFloat16, {1, 3, 3}),
                               Packed(DataType::kFloat16, {1, 1, 5}), {3}, {1}, {1}, {0}, {0});
  const RunResult result =
      ExpectAllAgree(halves, {Scattered<uint16_t>(Packed(DataType::kFloat16, {1, 3, 3}),
                                                  {0, 0, 0x3C00, 0, 0x3C00, 0, 0x6800, 0, 0})});
  EXPECT_EQ(Gathered<uint16_t>(Packed(DataType::kFloat16, {1, 1, 5}), result.outputs[0])[2], 0x6801);
}

TEST(Fold, StridesAndDilations) {
  const TensorDesc image = Packed(DataType::kInt32, {1, 1, 6}), columns = Packed(DataType::kInt32, {1, 2, 3});
  const auto unfold = Describe("UNFOLD", image, columns, {2}, {2}, {3}, {1}, {1});
  EXPECT_EQ(ResultOf<int32_t>(unfold, {1, 2, 3, 4, 5, 6}), (std::vector<int32_t>{0, 2, 4, 3, 5, 0}));
  const auto fold = Describe("FOLD", columns, image, {2}, {2}, {3}, {1}, {1});
  EXPECT_EQ(ResultOf<int32_t>(fold, {9, 2, 4, 3, 5, 9}), (std::vector<int32_t>{0, 2, 3, 4, 5, 0}));
}

TEST(Fold, SentencesOfRefusals) {
  const TensorDesc image = Packed(DataType::kFloat32, {1, 1, 5, 5});
  const auto message = [](const OperatorDesc& desc) {
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  const auto unfold = [&](const TensorDesc& columns, const Numbers& windows, const Numbers& strides) {
    return message(Describe("UNFOLD", image, columns, windows, strides, Numbers(windows.size(), 1),
                            Numbers(windows.size(), 0), Numbers(windows.size(), 0)));
  };
  const TensorDesc columns = Packed(DataType::kFloat32, {1, 9, 9});
  EXPECT_EQ(unfold(columns, {3, 3}, {1, 1}), "");
  EXPECT_EQ(unfold(Packed(DataType::kFloat32, {1, 1, 9, 9}), {3, 3}, {1, 1}), "");
  EXPECT_EQ(unfold(Packed(DataType::kFloat32, {1, 9, 8}), {3, 3}, {1, 1}),
            "UNFOLD: OutputTensor.Sizes is {1,9,8} but must be {1,9,9}: batches, the taps of a window in all "
            "channels, and windows");
  EXPECT_EQ(
      unfold(columns, {3}, {1}),
      "UNFOLD: DimensionCount is 1 but InputTensor.DimensionCount is 4; it must be 2 less, from 1 to 6");
  EXPECT_EQ(unfold(columns, {3, 3}, {1, 0}), "UNFOLD: Strides[1] is 0 but must be at least 1");
  EXPECT_EQ(unfold(columns, {3, 6}, {1, 1}),
            "UNFOLD: WindowSizes[1] is 6, which covers 6 elements, but InputTensor.Sizes[3] with its padding "
            "is 5; it may be at most that");
  EXPECT_EQ(unfold(Packed(DataType::kInt32, {1, 9, 9}), {3, 3}, {1, 1}),
            "UNFOLD: OutputTensor.DataType is INT32 but must be that of InputTensor, FLOAT32");
}

}  // namespace
}  // namespace anydml::testing
