// Mean-variance and Lp normalization against results computed by hand or in FLOAT64, and error messages.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/element/expect_values.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr uint32_t kYes = 1;

using Axes = std::vector<uint32_t>;

TEST(Mvn, OnnxInstanceNormalization) {
  const Values x = Shaped(F32({-1, 0, 1, 2, 3, 4}), {1, 2, 1, 3});
  const Values scale = Shaped(F32({1, 1.5f}), {1, 2, 1, 1}), bias = Shaped(F32({0, 1}), {1, 2, 1, 1});
  const Values y = Shaped(F32({-1.2247357f, 0, 1.2247357f, -0.83710355f, 1, 2.8371036f}), {1, 2, 1, 3});
  Expect("MEAN_VARIANCE_NORMALIZATION", {x, scale, bias},
         {{"NormalizeVariance", kYes}, {"Epsilon", kEpsilon}}, {y}, 4);
  Expect("MEAN_VARIANCE_NORMALIZATION1", {x, scale, bias},
         {{"AxisCount", 2u}, {"Axes", Axes{3, 2}}, {"NormalizeVariance", kYes}, {"Epsilon", kEpsilon}}, {y},
         4);
  Expect("MEAN_VARIANCE_NORMALIZATION2", {x, scale, bias},
         {{"AxisCount", 2u},
          {"Axes", Axes{2, 3}},
          {"UseMean", kYes},
          {"UseVariance", kYes},
          {"Epsilon", kEpsilon}},
         {y}, 4);
}

TEST(Mvn, AcrossChannels) {
  const Values x = Shaped(F32({-1, 0, 1, 2, 3, 4}), {1, 2, 1, 3});
  Expect("MEAN_VARIANCE_NORMALIZATION", {x}, {{"CrossChannel", kYes}, {"NormalizeVariance", kYes}},
         {Shaped(F32({-1.4638501f, -0.8783101f, -0.29277003f, 0.29277003f, 0.8783101f, 1.4638501f}),
                 {1, 2, 1, 3})},
         4);
  // Without the variance nothing is divided, and Epsilon is ignored.
  Expect("MEAN_VARIANCE_NORMALIZATION", {x}, {{"Epsilon", 7.0f}},
         {Shaped(F32({-1, 0, 1, -1, 0, 1}), {1, 2, 1, 3})});
}

// The variance of large numbers: E[x^2] - E[x]^2 would lose all digits.
TEST(Mvn, LayerNormalization) {
  const Attributes attributes = {{"AxisCount", 1u}, {"Axes", Axes{1}}, {"NormalizeVariance", kYes}};
  const Values y = Shaped(F32({-1.3416408f, -0.4472136f, 0.4472136f, 1.3416408f, -1.3416408f, -0.4472136f,
                               0.4472136f, 1.3416408f}),
                          {2, 4});
  Expect("MEAN_VARIANCE_NORMALIZATION1", {Shaped(F32({1, 2, 3, 4, 100001, 100002, 100003, 100004}), {2, 4})},
         attributes, {y}, 4);
  // Transposed, with a gap in the output.
  Expect("MEAN_VARIANCE_NORMALIZATION1", {Shaped(F32({1, 2, 3, 4, 1, 2, 3, 4}), {2, 4}, {1, 2})}, attributes,
         {Shaped(y, {2, 4}, {6, 1})}, 4);
  Expect("MEAN_VARIANCE_NORMALIZATION1", {F16({1, 2, 3, 4})},
         {{"AxisCount", 1u}, {"Axes", Axes{0}}, {"NormalizeVariance", kYes}},
         {F16Bits({0xBD5E, 0xB728, 0x3728, 0x3D5E})}, 1);
  // Scale along the row, bias per row, and an activation of the sum.
  Expect("MEAN_VARIANCE_NORMALIZATION1",
         {Shaped(F32({-1, 1, -1, 1}), {2, 2}), Shaped(F32({2, 3}), {1, 2}), Shaped(F32({1, -5}), {2, 1})},
         {{"AxisCount", 1u},
          {"Axes", Axes{1}},
          {"NormalizeVariance", kYes},
          {"FusedActivation", Fused("ACTIVATION_RELU")}},
         {Shaped(F32({0, 4, 0, 0}), {2, 2})});
}

TEST(Mvn, WithoutMeanOrVariance) {
  const Values x = Shaped(F32({3, 4}), {1, 2}), bias = Shaped(F32({10, 20}), {1, 2});
  const auto expect = [&](uint32_t mean, uint32_t variance, const Values& y, uint32_t ulps) {
    Expect("MEAN_VARIANCE_NORMALIZATION2", {x},
           {{"AxisCount", 1u}, {"Axes", Axes{1}}, {"UseMean", mean}, {"UseVariance", variance}}, {y}, ulps);
  };
  expect(0, 1, Shaped(F32({0.84852815f, 1.1313709f}), {1, 2}), 2);  // by the root of the mean of squares
  expect(1, 0, Shaped(F32({-0.5f, 0.5f}), {1, 2}), 0);
  expect(1, 1, Shaped(F32({-1, 1}), {1, 2}), 0);
  expect(0, 0, x, 0);
  Expect("MEAN_VARIANCE_NORMALIZATION2", {x, {}, bias}, {{"AxisCount", 1u}, {"Axes", Axes{1}}},
         {Shaped(F32({13, 24}), {1, 2})});
}

TEST(Mvn, EveryElementIsItsOwnSetWithoutAxes) {
  const Values x = F32({3, -4}), scale = F32({5, 6}), bias = F32({10, 20});
  Expect("MEAN_VARIANCE_NORMALIZATION1", {x, scale, bias},
         {{"AxisCount", 0u}, {"Axes", Axes{}}, {"NormalizeVariance", kYes}, {"Epsilon", kEpsilon}}, {bias});
  // 0 divided by 0.
  Expect("MEAN_VARIANCE_NORMALIZATION1", {x},
         {{"AxisCount", 0u}, {"Axes", Axes{}}, {"NormalizeVariance", kYes}}, {F32({kNan, kNan})});
}

TEST(LpNormalization, Norms) {
  const Values x = Shaped(F32({3, 4, 0, 0, -0.25f, 0}), {3, 2});
  const auto expect = [&](uint32_t p, float epsilon, std::initializer_list<float> y, uint32_t ulps) {
    Expect("LP_NORMALIZATION", {x}, {{"Axis", 1u}, {"P", p}, {"Epsilon", epsilon}}, {Shaped(F32(y), {3, 2})},
           ulps);
  };
  expect(2, kEpsilon, {0.6f, 0.8f, 0, 0, -1, 0}, 0);
  expect(1, kEpsilon, {0.42857143f, 0.5714286f, 0, 0, -1, 0}, 0);
  expect(2, 0.5f, {0.6f, 0.8f, 0, 0, -0.5f, 0}, 0);
  expect(2, 0, {0.6f, 0.8f, kNan, kNan, -1, 0}, 0);
}

// Sets long enough to be divided among threads, along and across contiguous elements.
TEST(Mvn, LongSets) {
  for (const bool is_row : {true, false}) {
    constexpr uint32_t kLong = 100003;
    const std::vector<uint32_t> sizes =
        is_row ? std::vector<uint32_t>{3, kLong} : std::vector<uint32_t>{kLong, 3};
    const TensorDesc tensor = Packed(DataType::kFloat32, sizes);
    std::vector<float> numbers(size_t{3} * kLong);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7919 % 1009) * 0.01f;
    ExpectAllAgree(MakeDesc("MEAN_VARIANCE_NORMALIZATION1", {{"InputTensor", tensor},
                                                             {"OutputTensor", tensor},
                                                             {"AxisCount", 1u},
                                                             {"Axes", Axes{is_row ? 1u : 0u}},
                                                             {"NormalizeVariance", kYes},
                                                             {"Epsilon", kEpsilon}}),
                   {Scattered(tensor, numbers), {}, {}});
  }
}

// Rows of all lengths that kernels distinguish, at even and odd addresses; with a scale along each row and a
// bias per row.
TEST(Mvn, RowsOfManyLengths) {
  constexpr uint32_t kRows = 2;
  Thinning thinning;
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const uint32_t length : {16,   17,   33,   100,  128,   129,   500,   512,   1000,  1024,
                                  2048, 4095, 4096, 5000, 16384, 20000, 30001, 32768, 33000, 70000}) {
      for (const uint32_t gap : {0, 3}) {
        if (!thinning.Runs()) continue;
        const TensorDesc tensor = Strided(type, {kRows, length}, {length + gap, 1});
        const TensorDesc scale = Packed(type, {1, length}), bias = Packed(type, {kRows, 1});
        const auto bytes = [](const TensorDesc& of, uint32_t step) {
          std::vector<float> numbers(ElementCount(of));
          for (size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = static_cast<float>(i * step % 101) * 0.125f - 4;
          }
          if (of.type == DataType::kFloat32) return Scattered(of, numbers);
          std::vector<Half> halves;
          for (const float number : numbers) halves.push_back(ToHalf(number));
          return Scattered(of, halves);
        };
        SCOPED_TRACE(StrCat(Name(type), " ", length, " gap ", gap));
        ExpectAllAgree(MakeDesc("MEAN_VARIANCE_NORMALIZATION1", {{"InputTensor", tensor},
                                                                 {"ScaleTensor", scale},
                                                                 {"BiasTensor", bias},
                                                                 {"OutputTensor", tensor},
                                                                 {"AxisCount", 1u},
                                                                 {"Axes", Axes{1}},
                                                                 {"NormalizeVariance", kYes},
                                                                 {"Epsilon", kEpsilon}}),
                       {bytes(tensor, 37), bytes(scale, 53), bytes(bias, 11)});
      }
    }
  }
}

// Equal elements of a row give equal results, wherever in the row they are.
TEST(Mvn, EqualElementsHaveEqualResults) {
  constexpr uint32_t kLength = 16 * 9 + 15;  // vectors and single elements
  constexpr float kNumbers[] = {0.1f, -2.3f, 7.7f};
  const TensorDesc row = Packed(DataType::kFloat32, {1, kLength});
  const TensorDesc one = Strided(DataType::kFloat32, {1, kLength}, {0, 0});
  std::vector<float> numbers;
  for (uint32_t i = 0; i < kLength; ++i) numbers.push_back(kNumbers[i % 3]);
  const OperatorDesc desc = MakeDesc("MEAN_VARIANCE_NORMALIZATION1", {{"InputTensor", row},
                                                                      {"ScaleTensor", row},
                                                                      {"BiasTensor", one},
                                                                      {"OutputTensor", row},
                                                                      {"AxisCount", 1u},
                                                                      {"Axes", Axes{1}},
                                                                      {"NormalizeVariance", kYes},
                                                                      {"Epsilon", kEpsilon}});
  const std::vector<Bytes> inputs = {Scattered(row, numbers), Scattered(row, numbers),
                                     Scattered(one, std::vector<float>(kLength, 0.7f))};
  for (const char* implementation : RunnableImplementations(desc)) {
    const RunResult result = RunOperator(desc, inputs, {.implementation = implementation});
    if (result.implementation.empty()) continue;  // the implementation does not take the problem
    const auto results = Gathered<float>(row, result.outputs.at(0));
    for (uint32_t i = 3; i < kLength; ++i)
      EXPECT_EQ(results[i], results[i % 3]) << implementation << " " << i;
  }
}

std::string Message(const OperatorDesc& desc, FeatureLevel level = kLatestFeatureLevel) {
  return ImplementationOf(desc).check(desc, level).message();
}

TEST(MvnCheck, Refusals) {
  const Values x = Shaped(F32({1, 2, 3, 4, 5, 6}), {1, 2, 1, 3});
  const Values one = Shaped(F32({1}), {1, 1, 1, 1}), two = Shaped(F32({1, 2}), {1, 2, 1, 1});
  const auto describe = [&](const std::vector<Values>& inputs, const Axes& axes) {
    return Describe("MEAN_VARIANCE_NORMALIZATION1", inputs,
                    {{"AxisCount", static_cast<uint32_t>(axes.size())}, {"Axes", axes}}, {x});
  };
  EXPECT_EQ(Message(describe({x}, {})), "");
  EXPECT_EQ(
      Message(describe({x}, {4})),
      "MEAN_VARIANCE_NORMALIZATION1: Axes[0] is 4 but InputTensor.DimensionCount is 4; axes must be in [0, "
      "3]");
  EXPECT_EQ(Message(describe({x}, {2, 3, 2})),
            "MEAN_VARIANCE_NORMALIZATION1: Axes[2] is 2 once more; each axis may be given once");
  EXPECT_EQ(
      Message(describe({x, Shaped(F32({1, 2}), {1, 1, 1, 2})}, {3})),
      "MEAN_VARIANCE_NORMALIZATION1: ScaleTensor.Sizes[3] is 2 but must be 1 or InputTensor.Sizes[3], which "
      "is 3");
  EXPECT_EQ(Message(describe({x, two}, {3}), 0x5100),
            "MEAN_VARIANCE_NORMALIZATION1: BiasTensor is null but ScaleTensor is not; they come together at "
            "feature level 5.1 (one may come without the other from 5.2 on)");
  EXPECT_EQ(Message(describe({x, two}, {3}), 0x5200), "");
  EXPECT_EQ(
      Message(describe({x, two, one}, {3}), 0x3100),
      "MEAN_VARIANCE_NORMALIZATION1: BiasTensor.Sizes[1] is 1 but must be 2, that of InputTensor, at feature "
      "level 3.1 (1 is allowed from 4.0 on)");
  EXPECT_EQ(Message(describe({x, two, one}, {3}), 0x4000), "");
  EXPECT_EQ(
      Message(Describe("MEAN_VARIANCE_NORMALIZATION", {x, {}, one}, {}, {x}), 0x1000),
      "MEAN_VARIANCE_NORMALIZATION: ScaleTensor is null but BiasTensor is not; they come together at feature "
      "level 1.0 (one may come without the other from 5.2 on)");
  EXPECT_EQ(Message(Describe("LP_NORMALIZATION", {x}, {{"P", 3u}}, {x})),
            "LP_NORMALIZATION: P is 3 but must be 1 or 2");
}

}  // namespace
}  // namespace anydml::testing
