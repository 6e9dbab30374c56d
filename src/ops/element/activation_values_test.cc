// Activations, separate and fused. Expected transcendental values were computed with 400 bits and rounded.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"

namespace anydml::testing {
namespace {

TEST(ActivationValues, Exact) {
  Expect("ACTIVATION_IDENTITY", {F32Bits({0x7F800001, 0x80000000})}, {}, {F32Bits({0x7F800001, 0x80000000})});
  Expect("ACTIVATION_LINEAR", {F32({1, -2, kInf, kNan})}, {{"Alpha", 3.0f}, {"Beta", 0.25f}},
         {F32({3.25f, -5.75f, kInf, kNan})});
  const float x = 1 + 0x1p-12f;
  Expect("ACTIVATION_LINEAR", {F32({x})}, {{"Alpha", x}, {"Beta", -(1 + 0x1p-11f)}}, {F32({0})});  // no FMA
  Expect("ACTIVATION_LINEAR", {F16({1})}, {{"Alpha", 2049.0f}, {"Beta", -2048.0f}}, {F16({1})});
  Expect("ACTIVATION_LEAKY_RELU", {F32({2, -0.1f, 0, -0.0f, -1e-40f, kInf, -kInf, kNan})}, {{"Alpha", 0.01f}},
         {F32({2, -0.001f, 0, -0.0f, -1e-42f, kInf, -kInf, kNan})});
  Expect("ACTIVATION_THRESHOLDED_RELU", {F32({1, 1.0000001f, 0.5f, -3, kInf, -kInf, kNan})},
         {{"Alpha", 1.0f}}, {F32({0, 1.0000001f, 0, 0, kInf, 0, 0})});
  Expect("ACTIVATION_THRESHOLDED_RELU", {F32({-1, -3, -0.0f})}, {{"Alpha", -2.0f}}, {F32({-1, 0, -0.0f})});
  Expect("ACTIVATION_HARD_SIGMOID", {F32({0, 1, -1, 2.5f, -2.5f, 3, -3, 0.3f, kInf, -kInf, kNan})},
         {{"Alpha", 0.2f}, {"Beta", 0.5f}}, {F32({0.5f, 0.7f, 0.3f, 1, 0, 1, 0, 0.56f, 1, 0, kNan})});
  Expect("ACTIVATION_HARD_SWISH", {F32({0, 1, -1, 3, -3, 6, -6, 0.7f, kInf, kNan})},
         {{"Alpha", 1 / 6.0f}, {"Beta", 0.5f}},
         {F32({0, 0.6666667f, -0.3333333f, 3, -0.0f, 6, -0.0f, 0.43166667f, kInf, kNan})});
  Expect("ACTIVATION_SOFTSIGN",
         {F32({0, -0.0f, 1, -3, 0.1f, 3.4028235e38f, -3.4028235e38f, kInf, -kInf, kNan})}, {},
         {F32({0, -0.0f, 0.5f, -0.75f, 0.09090909f, 1, -1, kNan, kNan, kNan})});
}

TEST(ActivationValues, ReluOfEveryType) {
  Expect("ACTIVATION_RELU", {F32({2, -2, 0, -0.0f, 1e-45f, -1e-45f, kInf, -kInf, kNan})}, {},
         {F32({2, 0, 0, 0, 1e-45f, 0, kInf, 0, kNan})});
  Expect("ACTIVATION_RELU", {F16({2, -2, -0.0f, kNan})}, {}, {F16({2, 0, 0, kNan})});
  Expect("ACTIVATION_RELU", {I8({-128, 127, 0})}, {}, {I8({0, 127, 0})});
  Expect("ACTIVATION_RELU", {I16({-32768, 5})}, {}, {I16({0, 5})});
  Expect("ACTIVATION_RELU", {I32({INT32_MIN, 16777217})}, {}, {I32({0, 16777217})});
  Expect("ACTIVATION_PARAMETERIZED_RELU", {F32({2, -2, -0.0f, -kInf, kNan}), F32({9, 0.25f, 5, 0, 1})}, {},
         {F32({2, -0.5f, -0.0f, kNan, kNan})});
  Expect("ACTIVATION_PARAMETERIZED_RELU", {I8({-100, 100, -3}), I8({2, 2, -2})}, {}, {I8({56, 100, 6})});
  Expect("ACTIVATION_PARAMETERIZED_RELU", {I32({INT32_MIN, -7}), I32({-1, 3})}, {}, {I32({INT32_MIN, -21})});
  Expect("ACTIVATION_PARAMETERIZED_RELU", {F16({-2}), F16({0.5f})}, {}, {F16({-1})});
}

// x - Bias above Threshold, x + Bias below -Threshold, else 0. Integers are computed in floating point and
// round toward zero.
TEST(ActivationValues, Shrink) {
  const Attributes fields = {{"Bias", 0.75f}, {"Threshold", 0.5f}};
  Expect("ACTIVATION_SHRINK", {F32({2, -2, 0.5f, -0.5f, 0.625f, -0.625f, -0.0f, kInf, kNan})}, fields,
         {F32({1.25f, -1.25f, 0, 0, -0.125f, 0.125f, 0, kInf, 0})});
  Expect("ACTIVATION_SHRINK", {F16({2, -2, 0.25f})}, fields, {F16({1.25f, -1.25f, 0})});
  Expect("ACTIVATION_SHRINK", {I32({3, -3, 0, 1, INT32_MIN, 16777217})}, fields,
         {I32({2, -2, 0, 0, -2147483647, 16777216})});
  Expect("ACTIVATION_SHRINK", {I8({-128, 127, 2})}, {{"Bias", -5.0f}, {"Threshold", 3.0f}},
         {I8({-128, 127, 0})});
  Expect("ACTIVATION_SHRINK", {U8({3, 4, 255})}, {{"Bias", 5.0f}, {"Threshold", 3.0f}}, {U8({0, 0, 250})});
  Expect("ACTIVATION_SHRINK", {U32({UINT32_MAX, 1})}, {{"Bias", 2.0f}, {"Threshold", 1.0f}},
         {U32({4294967293, 0})});
  // With a threshold below 0, the upper condition is tested first.
  Expect("ACTIVATION_SHRINK", {F32({0, -3})}, {{"Bias", 1.0f}, {"Threshold", -2.0f}}, {F32({-1, -2})});
}

TEST(ActivationValues, Transcendental) {
  Expect("ACTIVATION_SIGMOID", {F32({0, -0.0f, 1, -1, 20, -20, -100, -104, kInf, -kInf, kNan})}, {},
         {F32({0.5f, 0.5f, 0.7310586f, 0.26894143f, 1, 2.0611537e-9f, 3.8e-44f, 0, 1, 0, kNan})}, 4);
  Expect("ACTIVATION_TANH", {F32({0, -0.0f, 0.5f, -1, -50, 50, kInf, -kInf, kNan})}, {},
         {F32({0, -0.0f, 0.46211717f, -0.7615942f, -1, 1, 1, -1, kNan})}, 2);
  Expect("ACTIVATION_ELU", {F32({0, -0.0f, 1, -1, -1e-10f, -50, kInf, -kInf, kNan})}, {{"Alpha", 1.0f}},
         {F32({0, -0.0f, 1, -0.63212055f, -1e-10f, -1, kInf, -1, kNan})}, 4);
  Expect("ACTIVATION_ELU", {F32({3, -1, -kInf})}, {{"Alpha", 0.3f}}, {F32({3, -0.18963617f, -0.3f})}, 4);
  Expect("ACTIVATION_SCALED_ELU", {F32({0, 1, 3, -1, -1e-10f, -30, kInf, -kInf, kNan})},
         {{"Alpha", 1.6732f}, {"Gamma", 1.0507f}},
         {F32({0, 1.0507f, 3.1520998f, -1.1112876f, -1.7580312e-10f, -1.7580311f, kInf, -1.7580311f, kNan})},
         4);
  Expect("ACTIVATION_CELU", {F32({0, 1, -1, -4, -1e-10f, -100, kInf, -kInf, kNan})}, {{"Alpha", 2.0f}},
         {F32({0, 1, -0.78693867f, -1.7293295f, -1e-10f, -2, kInf, -2, kNan})}, 4);
  Expect("ACTIVATION_CELU", {F32({1, -1, -0.25f})}, {{"Alpha", 0.5f}}, {F32({1, -0.43233237f, -0.19673467f})},
         4);
  Expect("ACTIVATION_CELU", {F32({1, -1})}, {{"Alpha", -1.0f}}, {F32({1, -1.7182819f})}, 4);
  Expect("ACTIVATION_SCALED_TANH", {F32({0, -0.0f, 1, -3, 100, kInf, -kInf, kNan})},
         {{"Alpha", 2.0f}, {"Beta", 0.5f}}, {F32({0, -0.0f, 0.92423433f, -1.8102965f, 2, 2, -2, kNan})}, 4);
  Expect("ACTIVATION_SCALED_TANH", {F32({1, -2})}, {{"Alpha", 1.7159f}, {"Beta", 0.6666667f}},
         {F32({0.99999726f, -1.4929388f})}, 4);
  // Gamma compensates for a small Alpha.
  Expect("ACTIVATION_SCALED_ELU", {F32({-1e-40f, -1e-44f})}, {{"Alpha", 0.01f}, {"Gamma", 100.0f}},
         {F32({-1e-40f, -1e-44f})}, 4);
  Expect("ACTIVATION_SOFTPLUS", {F32({0, 1, -1, -20, -100, 100, 3e38f, kInf, -kInf, kNan})},
         {{"Steepness", 1.0f}},
         {F32({0.6931472f, 1.3132616f, 0.3132617f, 2.0611537e-9f, 3.8e-44f, 100, 3e38f, kInf, 0, kNan})}, 4);
  Expect("ACTIVATION_SOFTPLUS", {F32({0, 1, -1, -40, 50})}, {{"Steepness", 2.0f}},
         {F32({0.3465736f, 1.063464f, 0.06346401f, 9.024257e-36f, 50})}, 4);
  Expect("ACTIVATION_SOFTPLUS", {F32({0, 1, -1})}, {{"Steepness", 0.0f}},
         {F32({0.6931472f, 1.3132616f, 0.3132617f})}, 4);
  Expect("ACTIVATION_SOFTPLUS", {F32({1, -1})}, {{"Steepness", 0.5f}}, {F32({1.948154f, 0.948154f})}, 4);
  Expect("ACTIVATION_PARAMETRIC_SOFTPLUS", {F32({0, 1, -1, -30, 100, kInf, -kInf, kNan})},
         {{"Alpha", 0.25f}, {"Beta", 2.0f}},
         {F32({0.1732868f, 0.531732f, 0.031732004f, 2.1891277e-27f, 50, kInf, 0, kNan})}, 4);
  Expect("ACTIVATION_PARAMETRIC_SOFTPLUS", {F32({1, -1})}, {{"Alpha", -3.0f}, {"Beta", -1.0f}},
         {F32({-0.93978506f, -3.939785f})}, 4);
  Expect("ACTIVATION_GELU", {F32({0, -0.0f, 1, -1, 3, -3, -5, -10, -13, -14, 10, kInf, kNan})}, {},
         {F32({0, -0.0f, 0.8413448f, -0.15865526f, 2.9959502f, -0.004049694f, -1.4332578e-6f, -7.619853e-23f,
               -7.952314e-38f, -1.1e-43f, 10, kInf, kNan})},
         4);
  Expect("ACTIVATION_SWISH", {F32({0, -0.0f, 1, -1, 20, -20, -100, kInf, kNan})},
         {{"SigmoidInputScale", 1.0f}},
         {F32({0, -0.0f, 0.7310586f, -0.26894143f, 20, -4.122307e-8f, -3.72e-42f, kInf, kNan})}, 4);
  Expect("ACTIVATION_SWISH", {F32({2, -2})}, {{"SigmoidInputScale", 1.702f}},
         {F32({1.9356586f, -0.064341374f})}, 4);
}

TEST(ActivationValues, TranscendentalOfHalves) {
  Expect("ACTIVATION_GELU", {F16({1, -1, -4, -5.5f, 20})}, {},
         {F16({0.8413086f, -0.1586914f, -0.00012671947f, -1.1920929e-7f, 20})}, 4);
  Expect("ACTIVATION_SIGMOID", {F16({1, -8, -17.5f})}, {}, {F16({0.73095703f, 0.00033545494f, 0})}, 4);
  Expect("ACTIVATION_SOFTPLUS", {F16({1, -8})}, {{"Steepness", 1.0f}}, {F16({1.3134766f, 0.00033545494f})},
         4);
  Expect("ACTIVATION_ELU", {F16({-1, 2})}, {{"Alpha", 1.0f}}, {F16({-0.6323242f, 2})}, 4);
}

// Where the function is steep, rounding a product before the function costs many ulps of the result.
TEST(ActivationValues, ProductsInside) {
  Expect("ACTIVATION_SOFTPLUS", {F32({-26.7f})}, {{"Steepness", 3.0f}}, {F32({5.4436445e-36f})}, 4);
  Expect("ACTIVATION_SWISH", {F32({-50.3f})}, {{"SigmoidInputScale", 1.702f}}, {F32({-3.321673e-36f})}, 4);
  // The same for a product that overflows but is divided again, or is not needed.
  Expect("ACTIVATION_SOFTPLUS", {F32({3e38f})}, {{"Steepness", 2.0f}}, {F32({3e38f})}, 4);
  Expect("ACTIVATION_PARAMETRIC_SOFTPLUS", {F32({3e38f, -3e38f})}, {{"Alpha", 0.25f}, {"Beta", 2.0f}},
         {F32({1.5e38f, 0})}, 4);
  Expect("ACTIVATION_SWISH", {F32({3e38f})}, {{"SigmoidInputScale", 2.0f}}, {F32({3e38f})}, 4);
}

// act(1 + 0.5) and act(-2 + 0.5); the sum is not rounded before the activation.
TEST(ActivationValues, Add1) {
  const Values a = F32({1, -2, 3e38f, kNan}), b = F32({0.5f, 0.5f, 3e38f, 1});
  const auto expect = [&](const FieldValue& fused, float first, float second, float overflowed,
                          uint32_t ulps = 0, float nan = kNan) {
    Expect("ELEMENT_WISE_ADD1", {a, b}, {{"FusedActivation", fused}}, {F32({first, second, overflowed, nan})},
           ulps);
  };
  expect({}, 1.5f, -1.5f, kInf);
  expect(Fused("ACTIVATION_IDENTITY"), 1.5f, -1.5f, kInf);
  expect(Fused("ACTIVATION_LINEAR", {{"Alpha", 2.0f}, {"Beta", 1.0f}}), 4, -2, kInf);
  expect(Fused("ACTIVATION_RELU"), 1.5f, 0, kInf);
  expect(Fused("ACTIVATION_LEAKY_RELU", {{"Alpha", 0.5f}}), 1.5f, -0.75f, kInf);
  expect(Fused("ACTIVATION_THRESHOLDED_RELU", {{"Alpha", 1.5f}}), 0, 0, kInf, 0, 0);
  expect(Fused("ACTIVATION_SHRINK", {{"Bias", 0.25f}, {"Threshold", 1.0f}}), 1.25f, -1.25f, kInf, 0, 0);
  expect(Fused("ACTIVATION_HARD_SIGMOID", {{"Alpha", 0.25f}, {"Beta", 0.5f}}), 0.875f, 0.125f, 1);
  expect(Fused("ACTIVATION_SOFTSIGN"), 0.6f, -0.6f, kNan);

  expect(Fused("ACTIVATION_SIGMOID"), 0.8175745f, 0.18242553f, 1, 4);
  expect(Fused("ACTIVATION_TANH"), 0.90514827f, -0.90514827f, 1, 2);
  expect(Fused("ACTIVATION_SCALED_TANH", {{"Alpha", 2.0f}, {"Beta", 0.5f}}), 1.2702979f, -1.2702979f, 2, 4);
  expect(Fused("ACTIVATION_ELU", {{"Alpha", 2.0f}}), 1.5f, -1.5537397f, kInf, 4);
  expect(Fused("ACTIVATION_CELU", {{"Alpha", 2.0f}}), 1.5f, -1.0552669f, kInf, 4);
  expect(Fused("ACTIVATION_SCALED_ELU", {{"Alpha", 2.0f}, {"Gamma", 3.0f}}), 4.5f, -4.661219f, kInf, 4);
  expect(Fused("ACTIVATION_SOFTPLUS", {{"Steepness", 2.0f}}), 1.5242937f, 0.024293676f, kInf, 4);
  expect(Fused("ACTIVATION_SOFTPLUS", {{"Steepness", 0.0f}}), 1.7014133f, 0.20141327f, kInf, 4);
  expect(Fused("ACTIVATION_PARAMETRIC_SOFTPLUS", {{"Alpha", 0.25f}, {"Beta", 2.0f}}), 0.76214683f,
         0.012146838f, kInf, 4);
  expect(Fused("ACTIVATION_GELU"), 1.3997892f, -0.1002108f, kInf, 4);
  // FLOAT16 cannot represent 2048 + 1.
  Expect("ELEMENT_WISE_ADD1", {F16({2048}), F16({1})},
         {{"FusedActivation", Fused("ACTIVATION_LINEAR", {{"Alpha", 1.0f}, {"Beta", -2048.0f}})}},
         {F16({1})});
}

}  // namespace
}  // namespace anydml::testing
