// Gradients, and one step of ADAM.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"

namespace anydml::testing {
namespace {

TEST(TrainValues, ReluGrad) {
  Expect("ACTIVATION_RELU_GRAD",
         {F32({1, 0, -0.0f, -1, kNan, kInf, 1e-45f, 2}), F32({10, 20, 30, 40, 50, 60, -70, kNan})}, {},
         {F32({10, 0, 0, 0, 0, 60, -70, kNan})});
  Expect("ACTIVATION_RELU_GRAD", {F16({1, -1}), F16({-0.5f, 3})}, {}, {F16({-0.5f, 0})});
  Expect("ACTIVATION_RELU_GRAD", {I8({1, 0, -128}), I8({-128, 5, 6})}, {}, {I8({-128, 0, 0})});
  Expect("ACTIVATION_RELU_GRAD", {I32({1, INT32_MIN}), I32({16777217, 6})}, {}, {I32({16777217, 0})});
  Expect("ACTIVATION_RELU_GRAD", {I16({1, -1}), I16({-300, 6})}, {}, {I16({-300, 0})});
}

// The gradient is 0 at the bounds and outside of them.
TEST(TrainValues, ClipGrad) {
  Expect("ELEMENT_WISE_CLIP_GRAD",
         {F32({-1, -0.5f, 1, 2, kNan, -kInf, 0.99999994f}), F32({1, 2, 3, 4, 5, 6, -7})},
         {{"Min", -1.0f}, {"Max", 1.0f}}, {F32({0, 2, 0, 0, 5, 0, -7})});
  Expect("ELEMENT_WISE_CLIP_GRAD", {F32({0, 2, 9, kNan}), F32({1, 2, 3, 4})}, {{"Min", 5.0f}, {"Max", 1.0f}},
         {F32({0, 0, 0, 4})});
  Expect("ELEMENT_WISE_CLIP_GRAD", {F32({1e30f, kInf, -kInf}), F32({1, 2, 3})},
         {{"Min", -kInf}, {"Max", kInf}}, {F32({1, 0, 0})});
  // 0.1 in FLOAT16.
  Expect("ELEMENT_WISE_CLIP_GRAD", {F16({0.099975586f, 0.5f}), F16({1, 2})}, {{"Min", 0.1f}, {"Max", 1.0f}},
         {F16({0, 2})});
  // Bounds round toward zero.
  Expect("ELEMENT_WISE_CLIP_GRAD", {I32({-2, -1, 0, 1, 2}), I32({1, 2, 3, 4, 5})},
         {{"Min", -1.9f}, {"Max", 2.9f}}, {I32({0, 0, 3, 4, 0})});
  Expect("ELEMENT_WISE_CLIP_GRAD", {U8({0, 1, 254, 255}), U8({1, 2, 3, 4})},
         {{"Min", -3.0f}, {"Max", 300.0f}}, {U8({0, 2, 3, 0})});
  Expect("ELEMENT_WISE_CLIP_GRAD", {U64({UINT64_MAX, 1}), U64({1, UINT64_MAX})},
         {{"Min", 0.0f}, {"Max", 3.0f}}, {U64({0, UINT64_MAX})});
}

TEST(TrainValues, ClipGrad1) {
  const auto bounds = [](const Values& x, const Values& gradient, auto min, auto max, const Values& out) {
    Expect("ELEMENT_WISE_CLIP_GRAD1", {x, gradient},
           {{"MinMaxDataType", static_cast<uint32_t>(x.tensor.type)},
            {"Min", ScalarOf(min)},
            {"Max", ScalarOf(max)}},
           {out});
  };
  bounds(F32({-1, 0, 1, kNan}), F32({1, 2, 3, 4}), -1.0f, 1.0f, F32({0, 2, 0, 4}));
  bounds(F16({-1, 0}), F16({1, 2}), uint16_t{0xBC00}, uint16_t{0x3C00}, F16({0, 2}));
  bounds(I8({-3, -2, 2}), I8({1, 2, 3}), int8_t{-3}, int8_t{2}, I8({0, 2, 0}));
  bounds(I64({9007199254740993, 9007199254740992, -5}), I64({1, INT64_MIN, 3}), int64_t{-5},
         int64_t{9007199254740993}, I64({0, INT64_MIN, 0}));
  bounds(U64({UINT64_MAX - 1, 1}), U64({1, 2}), uint64_t{0}, UINT64_MAX, U64({1, 2}));
  bounds(U32({0x80000000, 1}), U32({1, 2}), 0u, 2u, U32({0, 2}));
}

// M' = 1/2 + 3/2, V' = 27/4 + 9/4, rate = sqrt(1/4) / (1/2), X' = X - 2 M' / (sqrt(V') + 1).
TEST(TrainValues, AdamByHand) {
  const Attributes attributes = {
      {"LearningRate", 2.0f}, {"Beta1", 0.5f}, {"Beta2", 0.75f}, {"Epsilon", 1.0f}};
  Expect("ADAM_OPTIMIZER", {F32({10, -1}), F32({1, 1}), F32({9, 9}), F32({3, 3}), U32({1})}, attributes,
         {F32({9, -2}), F32({2, 2}), F32({9, 9})});
  Expect("ADAM_OPTIMIZER", {F16({10, -1}), F16({1, 1}), F16({9, 9}), F16({3, 3}), U32({1})}, attributes,
         {F16({9, -2}), F16({2, 2}), F16({9, 9})});
  // The step is used as given: step 0 gives 0 / 0.
  Expect("ADAM_OPTIMIZER", {F32({10}), F32({1}), F32({9}), F32({3}), U32({0})}, attributes,
         {F32({kNan}), F32({2}), F32({9})});
}

TEST(TrainValues, AdamAsUsual) {
  const auto expect = [](const std::vector<Values>& in, float rate, const std::vector<Values>& out) {
    Expect("ADAM_OPTIMIZER", in,
           {{"LearningRate", rate}, {"Beta1", 0.9f}, {"Beta2", 0.999f}, {"Epsilon", 1e-8f}}, out, 4);
  };
  expect({F32({1}), F32({0}), F32({0}), F32({0.5f}), U32({1})}, 0.001f,
         {F32({0.999f}), F32({0.050000012f}), F32({0.00024999678f})});
  expect({F32({1.5f}), F32({0.1f}), F32({0.02f}), F32({-0.3f}), U32({10})}, 0.001f,
         {F32({1.4999352f}), F32({0.05999999f}), F32({0.020069998f})});
  expect({F32({-0.25f}), F32({-1.5f}), F32({3}), F32({2}), U32({1000})}, 0.001f,
         {F32({-0.24947213f}), F32({-1.1499999f}), F32({3.001f})});
  expect({F16({1}), F16({0}), F16({0}), F16({0.5f}), U32({1})}, 0.1f,
         {F16({0.89990234f}), F16({0.049987793f}), F16({0.0002501011f})});
  expect({F16({1.5f}), F16({0.099975586f}), F16({0.020004272f}), F16({-0.30004883f}), U32({10})}, 0.1f,
         {F16({1.4931641f}), F16({0.05996704f}), F16({0.020080566f})});
}

}  // namespace
}  // namespace anydml::testing
