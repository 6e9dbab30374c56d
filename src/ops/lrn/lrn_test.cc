// Local response normalization and its gradient against results computed by hand (gradients also by complex
// steps), and error messages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string_view>

#include "base/half.h"
#include "ops/element/expect_values.h"
#include "support/compare.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kYes = 1;

Values Channels(std::initializer_list<float> numbers) { return Shaped(F32(numbers), {1, 4, 1, 1}); }

// s = 1 + 1 + 4, 1 + 1 + 4 + 9, ...: the window ends at the borders.
TEST(Lrn, AcrossChannels) {
  Expect("LOCAL_RESPONSE_NORMALIZATION", {Channels({1, 2, 3, 4})},
         {{"CrossChannel", kYes}, {"LocalSize", 3u}, {"Alpha", 3.0f}, {"Beta", 1.0f}, {"Bias", 1.0f}},
         {Channels({0.16666667f, 0.13333334f, 0.1f, 0.15384616f})}, 8);
  // A window of even size has one more element after the centre.
  Expect("LOCAL_RESPONSE_NORMALIZATION", {Channels({1, 2, 3, 4})},
         {{"CrossChannel", kYes}, {"LocalSize", 2u}, {"Alpha", 2.0f}, {"Beta", 1.0f}, {"Bias", 1.0f}},
         {Channels({0.16666667f, 0.14285715f, 0.115384616f, 0.23529412f})}, 8);
}

TEST(Lrn, InSpace) {
  // Here, too, Alpha is divided by LocalSize, not by the number of elements in the window.
  Expect("LOCAL_RESPONSE_NORMALIZATION", {Shaped(F32({1, 2, 3, 4}), {1, 1, 2, 2})},
         {{"LocalSize", 3u}, {"Alpha", 3.0f}, {"Beta", 1.0f}, {"Bias", 1.0f}},
         {Shaped(F32({0.032258064f, 0.06451613f, 0.09677419f, 0.12903225f}), {1, 1, 2, 2})}, 8);
  const Values x = Shaped(F32({-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6}), {1, 1, 3, 4});
  const Attributes attributes = {{"LocalSize", 2u}, {"Alpha", 0.5f}, {"Beta", 0.75f}, {"Bias", 1.0f}};
  Expect("LOCAL_RESPONSE_NORMALIZATION", {x}, attributes,
         {Shaped(F32({-0.8006572f, -0.88260025f, -0.835313f, -0.8773827f, -0.22065006f, 0, 0.116874956f,
                      0.33112004f, 0.67899686f, 0.6511718f, 0.6177745f, 1.0669676f}),
                 {1, 1, 3, 4})},
         8);
  Expect("LOCAL_RESPONSE_NORMALIZATION_GRAD",
         {x, Shaped(F32({-3, 0, 3, -1, 2, -2, 1, -3, 0, 3, -1, 2}), {1, 1, 3, 4})}, attributes,
         {Shaped(F32({-0.08876852f, 0.31330064f, 0.32273456f, -0.5610646f, 0.4975603f, -0.32026288f,
                      0.28522998f, -0.31158662f, 0.06619502f, 0.31617016f, -0.39038146f, 0.14921898f}),
                 {1, 1, 3, 4})},
         64);
}

TEST(Lrn, Gradient) {
  const Values x = Channels({1, 2, 3, 4}), gradient = Channels({1, -1, 0.5f, 2});
  Expect("LOCAL_RESPONSE_NORMALIZATION_GRAD", {x, gradient},
         {{"CrossChannel", kYes}, {"LocalSize", 3u}, {"Alpha", 3.0f}, {"Beta", 1.0f}, {"Bias", 1.0f}},
         {Channels({0.12888889f, -0.14888889f, -0.011005918f, -0.031084813f})}, 64);
  Expect("LOCAL_RESPONSE_NORMALIZATION_GRAD", {x, gradient},
         {{"CrossChannel", kYes}, {"LocalSize", 2u}, {"Alpha", 0.5f}, {"Beta", 0.75f}, {"Bias", 2.0f}},
         {Channels({0.3654618f, -0.30128345f, 0.18426198f, -0.056025807f})}, 64);
}

TEST(Lrn, WindowsLargerThanTheTensor) {
  Expect("LOCAL_RESPONSE_NORMALIZATION", {Channels({1, 2, 3, 4})},
         {{"CrossChannel", kYes}, {"LocalSize", 0xFFFFFFFFu}, {"Beta", 1.0f}, {"Bias", 2.0f}},
         {Channels({0.5f, 1, 1.5f, 2})}, 4);
}

// Bias and the sum of squares cancel at some element, where the relative error of a power of the difference
// is large. Elsewhere the bound stays narrow.
void ExpectBoundsNearPoles(const char* name, DataType type, std::mt19937_64& random) {
  const TensorDesc tensor = Packed(type, {1, 7, 3, 5});
  constexpr uint32_t kSize = 3;
  const float alpha = -0.5f, beta = Uniform(random, 0, 1) == 0 ? 0.75f : 1.0f;
  std::vector<float> x(7 * 3 * 5), gradients(x.size());
  for (float& number : x) number = ToFloat(ToHalf(static_cast<float>(random() % 20001) * 1e-3f - 10));
  for (float& number : gradients) number = ToFloat(ToHalf(static_cast<float>(random() % 2001) * 1e-3f - 1));
  const size_t pole = 15 + random() % 75;  // with channels on both sides
  double sum = 0;
  for (const size_t i : {pole - 15, pole, pole + 15}) sum += double{x[i]} * x[i];
  const auto bias = static_cast<float>(0.5 / kSize * sum * (1 + 1e-6 * static_cast<double>(random() % 100)));
  const bool is_gradient = std::string_view(name).ends_with("GRAD");
  OperatorDesc desc = MakeDesc(name, {{"InputTensor", tensor},
                                      {is_gradient ? "OutputGradientTensor" : "OutputTensor", tensor},
                                      {"CrossChannel", kYes},
                                      {"LocalSize", kSize},
                                      {"Alpha", alpha},
                                      {"Beta", beta},
                                      {"Bias", bias}});
  const auto bytes = [&](const std::vector<float>& numbers) {
    if (type == DataType::kFloat32) return Scattered(tensor, numbers);
    std::vector<Half> halves;
    for (const float number : numbers) halves.push_back(ToHalf(number));
    return Scattered(tensor, halves);
  };
  std::vector<Bytes> inputs = {bytes(x)};
  if (is_gradient) {
    desc.fields[static_cast<size_t>(FindField(*desc.schema, "InputGradientTensor"))] = tensor;
    inputs.push_back(bytes(gradients));
  }
  const RunResult reference = ExpectAllAgree(desc, inputs);
  const std::vector<double> errors = ErrorsOf(desc, inputs)[0];
  EXPECT_GT(errors[pole], 0.01);
  if (type == DataType::kFloat16) return;
  const std::vector<float> want = Gathered<float>(tensor, reference.outputs[0]);
  size_t narrow = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) || errors[i] < 1e-4 * std::abs(want[i]) + 1e-5) ++narrow;
  }
  EXPECT_GT(narrow, want.size() / 4);
}

TEST(Lrn, NearPoles) {
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", TestSeed()));
  std::printf("ANYDML_TEST_SEED=%llu\n", static_cast<unsigned long long>(TestSeed()));
  std::mt19937_64 random(TestSeed());
  const int count = TestIterations(20);
  for (int i = 0; i < count && !HasFailure(); ++i) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      ExpectBoundsNearPoles("LOCAL_RESPONSE_NORMALIZATION", type, random);
      ExpectBoundsNearPoles("LOCAL_RESPONSE_NORMALIZATION_GRAD", type, random);
    }
  }
}

TEST(LrnCheck, Refusals) {
  const OperatorDesc desc =
      Describe("LOCAL_RESPONSE_NORMALIZATION", {Channels({1, 2, 3, 4})}, {}, {Channels({1, 2, 3, 4})});
  EXPECT_EQ(ImplementationOf(desc).check(desc, kLatestFeatureLevel).message(),
            "LOCAL_RESPONSE_NORMALIZATION: LocalSize is 0 but must be at least 1");
}

}  // namespace
}  // namespace anydml::testing
