// Local response normalisation and its gradient against numbers worked out by hand (or, the gradient, by
// complex steps), and their refusals.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"
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
  // Of an even window, one more comes behind the element.
  Expect("LOCAL_RESPONSE_NORMALIZATION", {Channels({1, 2, 3, 4})},
         {{"CrossChannel", kYes}, {"LocalSize", 2u}, {"Alpha", 2.0f}, {"Beta", 1.0f}, {"Bias", 1.0f}},
         {Channels({0.16666667f, 0.14285715f, 0.115384616f, 0.23529412f})}, 8);
}

TEST(Lrn, InSpace) {
  // Alpha is divided by LocalSize here, too, not by the number of elements.
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

TEST(LrnCheck, Refusals) {
  const OperatorDesc desc =
      Describe("LOCAL_RESPONSE_NORMALIZATION", {Channels({1, 2, 3, 4})}, {}, {Channels({1, 2, 3, 4})});
  EXPECT_EQ(ImplementationOf(desc).check(desc, kLatestFeatureLevel).message(),
            "LOCAL_RESPONSE_NORMALIZATION: LocalSize is 0 but must be at least 1");
}

}  // namespace
}  // namespace anydml::testing
