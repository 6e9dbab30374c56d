// The softmax family against results computed by hand and closed forms.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

OperatorDesc Over(const char* name, const TensorDesc& input, const TensorDesc& output,
                  const std::vector<uint32_t>& axes) {
  return MakeDesc(name, {{"InputTensor", input},
                         {"OutputTensor", output},
                         {"AxisCount", static_cast<uint32_t>(axes.size())},
                         {"Axes", axes}});
}

std::vector<float> Outcome(const OperatorDesc& desc, const std::vector<float>& numbers) {
  const Bytes input = Scattered(*desc.inputs()[0], numbers);
  return Gathered<float>(*desc.outputs()[0], ExpectAllAgree(desc, {input}).outputs[0]);
}

std::vector<float> OfRow(const char* name, const std::vector<float>& numbers) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {1, 1, 1, static_cast<uint32_t>(numbers.size())});
  return Outcome(MakeDesc(name, {{"InputTensor", tensor}, {"OutputTensor", tensor}}), numbers);
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

// Logarithms of 1, 2, 4 and 1: eighths.
TEST(Softmax, Eighths) {
  const std::vector<float> x = {0, std::log(2.0f), std::log(4.0f), 0};
  ExpectNear(OfRow("ACTIVATION_SOFTMAX", x), {0.125f, 0.25f, 0.5f, 0.125f});
  ExpectNear(OfRow("ACTIVATION_LOG_SOFTMAX", x),
             {std::log(0.125f), std::log(0.25f), std::log(0.5f), std::log(0.125f)});
  EXPECT_EQ(OfRow("ACTIVATION_HARDMAX", x), (std::vector<float>{0, 0, 1, 0}));
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  ExpectNear(OfRow("ACTIVATION_SOFTMAX", {1000, 1000}), {0.5f, 0.5f});
  ExpectNear(OfRow("ACTIVATION_SOFTMAX", {-1e30f, 0}), {0, 1});
  EXPECT_EQ(OfRow("ACTIVATION_LOG_SOFTMAX", {-1000, 0}), (std::vector<float>{-1000, 0}));
  EXPECT_EQ(OfRow("ACTIVATION_LOG_SOFTMAX", {-INFINITY, 0}), (std::vector<float>{-INFINITY, 0}));
}

// A FLOAT32 sum of so many terms, added one by one, would be off by more than a thousandth.
TEST(Softmax, LongColumns) {
  constexpr uint32_t kRows = 400000;
  const TensorDesc tensor = Packed(DataType::kFloat32, {1, 1, kRows, 2});
  std::vector<float> x(2 * kRows, 0.1f);
  x[0] = 0.7f;
  const std::vector<float> y = Outcome(Over("ACTIVATION_SOFTMAX1", tensor, tensor, {2}), x);
  double sum = 0;
  for (uint32_t row = 0; row < kRows; ++row) sum += y[2 * row];
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(Softmax, NumbersThatAreNone) {
  for (const char* name : {"ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX"}) {
    for (const auto& x : {std::vector<float>{-INFINITY, -INFINITY}, {INFINITY, 0}, {NAN, 0}, {1, -NAN}}) {
      for (const float y : OfRow(name, x)) EXPECT_EQ(std::bit_cast<uint32_t>(y), 0x7FC00000u) << name;
    }
  }
}

// The page's tensor; the sets are rows, columns, and both.
TEST(Hardmax, SetsOfAxes) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {1, 2, 3});
  const std::vector<float> x = {4, 7, 7, 9, 1, 7};
  const auto hardmax = [&](const std::vector<uint32_t>& axes) {
    return Outcome(Over("ACTIVATION_HARDMAX1", tensor, tensor, axes), x);
  };
  EXPECT_EQ(hardmax({2}), (std::vector<float>{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(hardmax({1}), (std::vector<float>{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(hardmax({2, 1}), (std::vector<float>{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(hardmax({}), (std::vector<float>{1, 1, 1, 1, 1, 1}));
}

TEST(Hardmax, TheFirstNanCounts) {
  EXPECT_EQ(OfRow("ACTIVATION_HARDMAX", {INFINITY, NAN, 3, NAN}), (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(OfRow("ACTIVATION_HARDMAX", {-INFINITY, -INFINITY}), (std::vector<float>{1, 0}));
  EXPECT_EQ(OfRow("ACTIVATION_HARDMAX", {-0.0f, 0, -1}), (std::vector<float>{1, 0, 0}));
}

TEST(Softmax, SetsOfAxes) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {2, 2});
  const float ln3 = std::log(3.0f);
  const auto softmax = [&](const std::vector<uint32_t>& axes) {
    return Outcome(Over("ACTIVATION_SOFTMAX1", tensor, tensor, axes), {0, ln3, ln3, 0});
  };
  ExpectNear(softmax({1}), {0.25f, 0.75f, 0.75f, 0.25f});
  ExpectNear(softmax({0, 1}), {0.125f, 0.375f, 0.375f, 0.125f});
  EXPECT_EQ(softmax({}), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(Outcome(Over("ACTIVATION_LOG_SOFTMAX1", tensor, tensor, {}), {5, 6, 7, 8}),
            (std::vector<float>{0, 0, 0, 0}));
}

// Equal numbers give 1 / n, for rows and columns of every kind of length.
TEST(Softmax, EqualNumbers) {
  for (const uint32_t n : {1u, 2u, 31u, 64u, 1000u, 4096u, 8192u, 16384u, 40000u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const bool columns : {false, true}) {
        const TensorDesc tensor = columns ? Packed(type, {n, 3}) : Packed(type, {3, n});
        Bytes bytes(tensor.total_bytes);  // zeros
        const auto result =
            ExpectAllAgree(Over("ACTIVATION_SOFTMAX1", tensor, tensor, {columns ? 0u : 1u}), {bytes});
        const float want = 1.0f / static_cast<float>(n);
        const float got = type == DataType::kFloat32 ? Gathered<float>(tensor, result.outputs[0])[n]
                                                     : ToFloat(Gathered<Half>(tensor, result.outputs[0])[n]);
        EXPECT_NEAR(got, want, want * 2e-3) << n;
      }
    }
  }
}

TEST(SoftmaxCheck, Refusals) {
  const TensorDesc wide = Packed(DataType::kFloat32, {1, 2, 3, 4}),
                   flat = Packed(DataType::kFloat32, {1, 3, 4});
  const auto message = [](const OperatorDesc& desc) {
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  EXPECT_EQ(message(MakeDesc("ACTIVATION_SOFTMAX", {{"InputTensor", flat}, {"OutputTensor", flat}})), "");
  EXPECT_EQ(message(MakeDesc("ACTIVATION_SOFTMAX", {{"InputTensor", wide}, {"OutputTensor", wide}})),
            "ACTIVATION_SOFTMAX: InputTensor.Sizes is {1,2,3,4} but all but the last two must be 1");
  EXPECT_EQ(message(Over("ACTIVATION_HARDMAX1", flat, flat, {3})),
            "ACTIVATION_HARDMAX1: Axes[0] is 3 but InputTensor.DimensionCount is 3; axes must be in [0, 2]");
}

}  // namespace
}  // namespace anydml::testing
