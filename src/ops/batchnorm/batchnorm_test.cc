// Batch normalization and its gradients against results computed by hand or in FLOAT64, and error messages.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/element/expect_values.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

TEST(BatchNorm, Inference) {
  const Values x = Shaped(F32({1, 2, 3, 5, 6, 7}), {1, 2, 1, 3});
  const auto per_channel = [](float a, float b) { return Shaped(F32({a, b}), {1, 2, 1, 1}); };
  Expect("BATCH_NORMALIZATION",
         {x, per_channel(2, 5), per_channel(0.25f, 3.75f), per_channel(1, 4), per_channel(0, 10)},
         {{"Epsilon", 0.25f}}, {Shaped(F32({-1.4142135f, 0, 1.4142135f, 10, 12, 14}), {1, 2, 1, 3})}, 1);
  // Each parameter broadcasts in a different way.
  Expect("BATCH_NORMALIZATION",
         {x, Shaped(F32({1, 2, 3}), {1, 1, 1, 3}), Shaped(F32({4}), {1, 1, 1, 1}), per_channel(2, 4),
          Shaped(F32({0, 1, 2, 3, 4, 5}), {1, 2, 1, 3})},
         {{"FusedActivation", Fused("ACTIVATION_LINEAR", {{"Alpha", 2.0f}, {"Beta", 1.0f}})}},
         {Shaped(F32({1, 3, 5, 23, 25, 27}), {1, 2, 1, 3})});
}

TEST(BatchNorm, VariancesThatAreNone) {
  const Values one = F32({1}), zero = F32({0});
  Expect("BATCH_NORMALIZATION", {one, zero, F32({-1}), one, zero}, {}, {F32({kNan})});
  Expect("BATCH_NORMALIZATION", {one, zero, zero, one, zero}, {}, {F32({kInf})});
  Expect("BATCH_NORMALIZATION", {one, one, zero, one, zero}, {}, {F32({kNan})});
}

TEST(BatchNorm, Halves) {
  // FLOAT16 cannot represent 2048 + 1, but it can represent the difference that follows.
  Expect("BATCH_NORMALIZATION", {F16({2049.f - 1}), F16({-1}), F16({1}), F16({1}), F16({-2048})}, {},
         {F16({1})});
}

TEST(BatchNorm, Training) {
  const Values x = Shaped(F32({1, 2, 6, 0, 0, 3}), {1, 2, 3});
  const Values scale = Shaped(F32({2, 1}), {1, 2, 1}), bias = Shaped(F32({1, 0}), {1, 2, 1});
  const Values mean = Shaped(F32({3, 1}), {1, 2, 1}), variance = Shaped(F32({4.6666665f, 2}), {1, 2, 1});
  const auto expect = [&](const Values& added, std::initializer_list<float> y) {
    Expect("BATCH_NORMALIZATION_TRAINING", {x, scale, bias, added}, {{"Epsilon", 0.5f}},
           {Shaped(F32(y), {1, 2, 3}), mean, variance}, 8);
  };
  expect({}, {-0.7597654f, 0.12011731f, 3.639648f, -0.6324555f, -0.6324555f, 1.264911f});
  expect(Shaped(F32({1, 1, 1, 1, 1, 1}), {1, 2, 3}),
         {0.24023461f, 1.1201173f, 4.639648f, 0.36754447f, 0.36754447f, 2.264911f});
}

// x - mean = {-2, -1, 3}; scale / sqrt(variance + epsilon) = 3.
TEST(BatchNorm, Gradients) {
  const Values x = Shaped(F32({1, 2, 6}), {1, 3}), gradient = Shaped(F32({1, 0, 0}), {1, 3});
  const auto one = [](float a) { return Shaped(F32({a}), {1, 1}); };
  const std::vector<Values> inputs = {x, gradient, one(3), one(3.5f), one(6)};
  Expect("BATCH_NORMALIZATION_GRAD", inputs, {{"Epsilon", 0.5f}},
         {Shaped(F32({3, 0, 0}), {1, 3}), one(-1), one(1)});
  Expect("BATCH_NORMALIZATION_TRAINING_GRAD", inputs, {{"Epsilon", 0.5f}},
         {Shaped(F32({1, -1.5f, 0.5f}), {1, 3}), one(-1), one(1)}, 4);
}

// Sets long enough to be divided among threads, along and across contiguous elements.
TEST(BatchNorm, LongSets) {
  constexpr uint32_t kLong = 100003;
  for (const bool is_row : {true, false}) {
    const auto shape = [&](uint32_t length) {
      return is_row ? std::vector<uint32_t>{2, length} : std::vector<uint32_t>{length, 2};
    };
    const TensorDesc tensor = Packed(DataType::kFloat32, shape(kLong));
    const TensorDesc parameter = Packed(DataType::kFloat32, shape(1));
    std::vector<float> numbers(size_t{2} * kLong), gradients(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<float>(i * 7919 % 1009) * 0.01f;
      gradients[i] = static_cast<float>(i * 104729 % 997) * 0.01f - 4;
    }
    ExpectAllAgree(
        MakeDesc("BATCH_NORMALIZATION_TRAINING_GRAD", {{"InputTensor", tensor},
                                                       {"InputGradientTensor", tensor},
                                                       {"MeanTensor", parameter},
                                                       {"VarianceTensor", parameter},
                                                       {"ScaleTensor", parameter},
                                                       {"OutputGradientTensor", tensor},
                                                       {"OutputScaleGradientTensor", parameter},
                                                       {"OutputBiasGradientTensor", parameter},
                                                       {"Epsilon", 0.0f}}),
        {Scattered(tensor, numbers), Scattered(tensor, gradients),
         Scattered(parameter, std::vector<float>{5, 4}), Scattered(parameter, std::vector<float>{8, 9}),
         Scattered(parameter, std::vector<float>{1, 2})});
  }
}

TEST(BatchNorm, NeighbouringChannels) {
  for (const uint32_t channels : {16u, 21u, 1030u}) {
    const TensorDesc tensor =
        Strided(DataType::kFloat32, {2, channels, 3, 5}, {15 * channels, 1, 5 * channels, channels});
    const TensorDesc parameter = Packed(DataType::kFloat32, {1, channels, 1, 1});
    std::vector<float> numbers(size_t{30} * channels);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7919 % 1009) * 0.01f;
    numbers[5] = kInf;
    numbers[7] = kNan;
    const auto some = [&](float start, float step) {
      std::vector<float> values(channels);
      for (uint32_t c = 0; c < channels; ++c) values[c] = start + step * static_cast<float>(c % 13);
      return Scattered(parameter, values);
    };
    ExpectAllAgree(MakeDesc("BATCH_NORMALIZATION", {{"InputTensor", tensor},
                                                    {"MeanTensor", parameter},
                                                    {"VarianceTensor", parameter},
                                                    {"ScaleTensor", parameter},
                                                    {"BiasTensor", parameter},
                                                    {"OutputTensor", tensor},
                                                    {"Spatial", uint32_t{1}},
                                                    {"Epsilon", 0.01f}}),
                   {Scattered(tensor, numbers), some(1, 0.3f), some(0.5f, 0.1f), some(-1, 0.2f), some(0, 1)});
  }
}

TEST(BatchNormCheck, Refusals) {
  const Values x = Shaped(F32({1, 2, 3, 4, 5, 6}), {1, 2, 1, 3}), two = Shaped(F32({1, 2}), {1, 2, 1, 1});
  const Values wrong = Shaped(F32({1, 2, 3}), {1, 3, 1, 1});
  const auto message = [&](const std::vector<Values>& inputs, uint32_t spatial, FeatureLevel level) {
    const OperatorDesc desc = Describe("BATCH_NORMALIZATION", inputs, {{"Spatial", spatial}}, {x});
    return ImplementationOf(desc).check(desc, level).message();
  };
  EXPECT_EQ(message({x, two, two, two, two}, 0, kLatestFeatureLevel), "");
  EXPECT_EQ(
      message({x, two, wrong, two, two}, 1, kLatestFeatureLevel),
      "BATCH_NORMALIZATION: VarianceTensor.Sizes[1] is 3 but must be 1 or InputTensor.Sizes[1], which is 2");
  EXPECT_EQ(message({x, two, two, two, two}, 1, 0x3100), "");
  EXPECT_EQ(
      message({x, two, two, two, two}, 0, 0x3100),
      "BATCH_NORMALIZATION: MeanTensor.Sizes[3] is 1 but must be 3, that of InputTensor, where Spatial is "
      "FALSE at feature level 3.1 (Spatial is ignored from 4.0 on)");
  EXPECT_EQ(message({x, x, x, two, two}, 0, 0x3100), "");
  const OperatorDesc gradient =
      Describe("BATCH_NORMALIZATION_GRAD", {x, x, wrong, wrong, wrong}, {}, {x, wrong, wrong});
  EXPECT_EQ(
      ImplementationOf(gradient).check(gradient, kLatestFeatureLevel).message(),
      "BATCH_NORMALIZATION_GRAD: ScaleTensor.Sizes[1] is 3 but must be 1 or InputTensor.Sizes[1], which is "
      "2");
}

// Rows with whole units and with partial units, in one part and in several.
TEST(BatchNorm, LongRows) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const std::vector<uint32_t>& sizes :
         {std::vector<uint32_t>{2, 3, 20, 40}, {2, 3, 13, 17}, {1, 2, 100, 128}, {1, 2, 99, 101}}) {
      const TensorDesc x = Packed(type, sizes), parameter = Packed(type, {1, sizes[1], 1, 1});
      ExpectAllAgree(MakeDesc("BATCH_NORMALIZATION", {{"InputTensor", x},
                                                      {"MeanTensor", parameter},
                                                      {"VarianceTensor", parameter},
                                                      {"ScaleTensor", parameter},
                                                      {"BiasTensor", parameter},
                                                      {"OutputTensor", x},
                                                      {"Spatial", 1u},
                                                      {"Epsilon", 1e-5f}}),
                     {RandomBytes(x, random), RandomBytes(parameter, random), RandomBytes(parameter, random),
                      RandomBytes(parameter, random), RandomBytes(parameter, random)});
    }
  }
}

}  // namespace
}  // namespace anydml::testing
