// Operators with one tensor that are not activations. Expected transcendental values were computed with 400
// bits and rounded.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"
#include "ops/element/operators.h"

namespace anydml::testing {
namespace {

TEST(UnaryValues, IdentityMovesBits) {
  Expect("ELEMENT_WISE_IDENTITY", {F32Bits({0x7F800001, 0xFFC12345, 0x80000000, 1})}, {},
         {F32Bits({0x7F800001, 0xFFC12345, 0x80000000, 1})});
  Expect("ELEMENT_WISE_IDENTITY", {F64Bits({0x7FF0000000000001, 0x8000000000000000})}, {},
         {F64Bits({0x7FF0000000000001, 0x8000000000000000})});
  Expect("ELEMENT_WISE_IDENTITY", {I64({INT64_MIN, 9007199254740993})}, {},
         {I64({INT64_MIN, 9007199254740993})});
  // Clients use it to negate and to add.
  Expect("ELEMENT_WISE_IDENTITY", {I64({9007199254740993, INT64_MIN})}, {{"ScaleBias", ScaleBias{-1, 0}}},
         {I64({-9007199254740993, INT64_MIN})});
  Expect("ELEMENT_WISE_IDENTITY", {U8({254, 255, 0})}, {{"ScaleBias", ScaleBias{1, 3}}}, {U8({1, 2, 3})});
}

TEST(UnaryValues, Abs) {
  Expect("ELEMENT_WISE_ABS", {F32Bits({0xBF800000, 0x80000000, 0x80000001, 0xFF800000, 0xFFC12345})}, {},
         {F32Bits({0x3F800000, 0, 1, 0x7F800000, 0x7FC12345})});
  Expect("ELEMENT_WISE_ABS", {F16Bits({0xBC00, 0x8000, 0x8001, 0xFE01})}, {},
         {F16Bits({0x3C00, 0, 1, 0x7E01})});
  Expect("ELEMENT_WISE_ABS", {I8({-1, -127, -128, 5})}, {}, {I8({1, 127, -128, 5})});
  Expect("ELEMENT_WISE_ABS", {I16({-32767, -32768})}, {}, {I16({32767, -32768})});
  Expect("ELEMENT_WISE_ABS", {I32({-2147483647, INT32_MIN})}, {}, {I32({2147483647, INT32_MIN})});
  Expect("ELEMENT_WISE_ABS", {I64({-9007199254740993, INT64_MIN})}, {}, {I64({9007199254740993, INT64_MIN})});
}

// Integers, however large, wrap.
TEST(UnaryValues, ScaleBiasOfIntegersWraps) {
  const Values input = I32({1, 2, 3});
  const auto expect = [&](float scale, float bias, const Values& want) {
    Expect("ELEMENT_WISE_IDENTITY", {input}, {{"ScaleBias", ScaleBias{scale, bias}}}, {want});
  };
  expect(1, 0x1p64f, input);
  expect(1, -0x1p100f, input);
  expect(0x1p90f, 7, I32({7, 7, 7}));
  expect(1, 0x1p31f, I32({INT32_MIN + 1, INT32_MIN + 2, INT32_MIN + 3}));
  expect(-0x1.8p63f, 0, I32({0, 0, 0}));
  Expect("ELEMENT_WISE_IDENTITY", {I64({1, 2})}, {{"ScaleBias", ScaleBias{-0x1.8p63f, 0}}},
         {I64({INT64_C(1) << 62, INT64_MIN})});
}

TEST(UnaryValues, ScaleBiasComesFirst) {
  Expect("ELEMENT_WISE_ABS", {F32({1, -1, 0.5f})}, {{"ScaleBias", ScaleBias{-3, 1}}}, {F32({2, 4, 0.5f})});
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24; rounding the product removes the last term.
  constexpr float x = 1 + 0x1p-12f;
  Expect("ELEMENT_WISE_ABS", {F32({x})}, {{"ScaleBias", ScaleBias{x, -(1 + 0x1p-11f)}}}, {F32({0})});
  Expect("ELEMENT_WISE_SQRT", {F32({4, -0.25f})}, {{"ScaleBias", ScaleBias{2, 1}}}, {F32({3, 0.70710677f})});
  Expect("ELEMENT_WISE_EXP", {F32({4, 2})}, {{"ScaleBias", ScaleBias{0.5f, -2}}}, {F32({1, 0.36787945f})}, 2);
  // Clients compute a / x as 1 / (a x).
  Expect("ELEMENT_WISE_RECIP", {F32({4, 0.5f})}, {{"ScaleBias", ScaleBias{2, 0}}}, {F32({0.125f, 1})});
  // Computed in FLOAT32: FLOAT16 cannot represent 2049.
  Expect("ELEMENT_WISE_ABS", {F16({1})}, {{"ScaleBias", ScaleBias{2049, -2048}}}, {F16({1})});
}

// Integer Scale and Bias wrap in the tensor's type before the function; others are computed in FLOAT64,
// rounded toward zero and saturated.
TEST(UnaryValues, ScaleBiasOfIntegers) {
  Expect("ELEMENT_WISE_ABS", {I8({100, -100, 50})}, {{"ScaleBias", ScaleBias{2, 0}}}, {I8({56, 56, 100})});
  Expect("ELEMENT_WISE_ABS", {I16({20000})}, {{"ScaleBias", ScaleBias{2, 0}}}, {I16({25536})});
  Expect("ELEMENT_WISE_ABS", {I32({1 << 30})}, {{"ScaleBias", ScaleBias{3, 0}}}, {I32({1073741824})});
  Expect("ELEMENT_WISE_CLIP", {U8({100, 200, 5})},
         {{"ScaleBias", ScaleBias{2, 1}}, {"Min", 50.0f}, {"Max", 150.0f}}, {U8({150, 145, 50})});
  Expect("ELEMENT_WISE_CLIP", {I8({100, -100})},
         {{"ScaleBias", ScaleBias{2, 0}}, {"Min", -100.0f}, {"Max", 60.0f}}, {I8({-56, 56})});
  Expect("ELEMENT_WISE_THRESHOLD", {U16({40000})}, {{"ScaleBias", ScaleBias{2, 0}}, {"Min", 1.0f}},
         {U16({14464})});
  Expect("ELEMENT_WISE_ABS", {I8({100, -100, -3})}, {{"ScaleBias", ScaleBias{1.5f, 0}}},
         {I8({127, -128, 4})});
  Expect("ELEMENT_WISE_CLIP", {I64({9007199254740993})},
         {{"ScaleBias", ScaleBias{-1, 1}}, {"Min", -kInf}, {"Max", kInf}}, {I64({-9007199254740992})});
}

TEST(UnaryValues, Rounding) {
  Expect("ELEMENT_WISE_CEIL", {F32({-0.5f, 0.5f, -1.5f, 1e-40f, 8388607.5f, -0.0f, kInf, -kInf, kNan})}, {},
         {F32({-0.0f, 1, -1, 1, 8388608, -0.0f, kInf, -kInf, kNan})});
  Expect("ELEMENT_WISE_FLOOR", {F32({-0.5f, 0.5f, -1.5f, -1e-40f, 8388607.5f, -0.0f, kInf, -kInf, kNan})}, {},
         {F32({-1, 0, -2, -1, 8388607, -0.0f, kInf, -kInf, kNan})});
  Expect("ELEMENT_WISE_CEIL", {F16({-0.5f, 1.0009765625f})}, {}, {F16({-0.0f, 2})});
  Expect("ELEMENT_WISE_FLOOR", {F16({-0.5f, 1.0009765625f})}, {}, {F16({-1, 1})});
  const Values numbers = F32({0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49999997f, -0.3f, 8388609, 4194304.5f,
                              1e30f, -0.0f, kInf, kNan});
  Expect("ELEMENT_WISE_ROUND", {numbers}, {{"RoundingMode", 0u}},
         {F32({0, 2, 2, -0.0f, -2, -2, 0, -0.0f, 8388609, 4194304, 1e30f, -0.0f, kInf, kNan})});
  Expect("ELEMENT_WISE_ROUND", {numbers}, {{"RoundingMode", 1u}},
         {F32({0, 1, 2, -0.0f, -1, -2, 0, -0.0f, 8388609, 4194304, 1e30f, -0.0f, kInf, kNan})});
  // TOWARD_INFINITY: ties round away from zero.
  Expect("ELEMENT_WISE_ROUND", {numbers}, {{"RoundingMode", 2u}},
         {F32({1, 2, 3, -1, -2, -3, 0, -0.0f, 8388609, 4194305, 1e30f, -0.0f, kInf, kNan})});
  Expect("ELEMENT_WISE_ROUND", {F16({512.5f, 1.5f, 2.5f})}, {{"RoundingMode", 0u}}, {F16({512, 2, 2})});
}

TEST(UnaryValues, SignAndNegate) {
  Expect("ELEMENT_WISE_SIGN", {F32({3, -3, 0, -0.0f, 1e-45f, -1e-45f, kInf, -kInf, kNan})}, {},
         {F32({1, -1, 0, 0, 1, -1, 1, -1, 0})});
  Expect("ELEMENT_WISE_SIGN", {F16({-2, -0.0f, 6e4f, kNan})}, {}, {F16({-1, 0, 1, 0})});
  Expect("ELEMENT_WISE_SIGN", {I8({-128, 0, 127})}, {}, {I8({-1, 0, 1})});
  Expect("ELEMENT_WISE_SIGN", {U8({255, 0})}, {}, {U8({1, 0})});
  Expect("ELEMENT_WISE_SIGN", {U32({0x80000000, 0})}, {}, {U32({1, 0})});
  Expect("ELEMENT_WISE_SIGN", {I64({INT64_MIN, 0, INT64_MAX})}, {}, {I64({-1, 0, 1})});
  Expect("ELEMENT_WISE_SIGN", {U64({UINT64_MAX, 0})}, {}, {U64({1, 0})});
  Expect("ELEMENT_WISE_NEGATE", {F32Bits({0x3F800000, 0, 0x80000000, 0x7FC12345, 0xFF800000})}, {},
         {F32Bits({0xBF800000, 0x80000000, 0, 0xFFC12345, 0x7F800000})});
  Expect("ELEMENT_WISE_NEGATE", {F16Bits({0x3C00, 0x7E01})}, {}, {F16Bits({0xBC00, 0xFE01})});
  Expect("ELEMENT_WISE_NEGATE", {I8({1, -128, 127})}, {}, {I8({-1, -128, -127})});
  Expect("ELEMENT_WISE_NEGATE", {I16({-32768, 3})}, {}, {I16({-32768, -3})});
  Expect("ELEMENT_WISE_NEGATE", {I32({INT32_MIN, 7})}, {}, {I32({INT32_MIN, -7})});
  Expect("ELEMENT_WISE_NEGATE", {I64({INT64_MIN, -9007199254740993})}, {},
         {I64({INT64_MIN, 9007199254740993})});
}

TEST(UnaryValues, RootsAndReciprocals) {
  Expect("ELEMENT_WISE_SQRT", {F32({2, 9, 0, -0.0f, -1, 1e-45f, 3.4028235e38f, kInf, -kInf, kNan})}, {},
         {F32({1.4142135f, 3, 0, -0.0f, kNan, 3.743392e-23f, 1.8446743e19f, kInf, kNan, kNan})});
  Expect("ELEMENT_WISE_SQRT", {F16({2, -0.0f, -2})}, {}, {F16({1.4140625f, -0.0f, kNan})});
  Expect("ELEMENT_WISE_RECIP", {F32({3, 0, -0.0f, kInf, -kInf, 1e-40f, 3e38f, kNan})}, {},
         {F32({0.33333334f, kInf, -kInf, 0, -0.0f, kInf, 3.333333e-39f, kNan})});
  Expect("ELEMENT_WISE_RECIP", {F16({3, -0.0f, 5.9604645e-8f})}, {}, {F16({0.33325195f, -kInf, kInf})});
}

// max(Min, min(x, Max)): Min where Min > Max.
TEST(UnaryValues, Clip) {
  Expect("ELEMENT_WISE_CLIP", {F32({-2, 0.5f, 3, -0.0f, kInf, -kInf, kNan})}, {{"Min", -1.0f}, {"Max", 1.0f}},
         {F32({-1, 0.5f, 1, -0.0f, 1, -1, kNan})});
  Expect("ELEMENT_WISE_CLIP", {F32({-2, 2, 9})}, {{"Min", 5.0f}, {"Max", 1.0f}}, {F32({5, 5, 5})});
  Expect("ELEMENT_WISE_CLIP", {F32({-2, 1e30f, -0.0f})}, {{"Min", -kInf}, {"Max", kInf}},
         {F32({-2, 1e30f, -0.0f})});
  // +0 is larger than -0.
  Expect("ELEMENT_WISE_CLIP", {F32({-0.0f, 0})}, {{"Min", 0.0f}, {"Max", 1.0f}}, {F32({0, 0})});
  Expect("ELEMENT_WISE_CLIP", {F32({-0.0f, 0})}, {{"Min", -1.0f}, {"Max", -0.0f}}, {F32({-0.0f, -0.0f})});
  // 0.1 and 1000.3 in FLOAT16.
  Expect("ELEMENT_WISE_CLIP", {F16({0, 2000, 1})}, {{"Min", 0.1f}, {"Max", 1000.3f}},
         {F16({0.099975586f, 1000.5f, 1})});
  Expect("ELEMENT_WISE_CLIP", {F16({65504})}, {{"Min", 0.0f}, {"Max", 1e6f}}, {F16({65504})});
  // Bounds round toward zero and saturate.
  Expect("ELEMENT_WISE_CLIP", {I32({-5, 0, 5})}, {{"Min", -1.9f}, {"Max", 2.9f}}, {I32({-1, 0, 2})});
  Expect("ELEMENT_WISE_CLIP", {I8({-128, 5, 127})}, {{"Min", -1000.0f}, {"Max", 1000.0f}},
         {I8({-128, 5, 127})});
  Expect("ELEMENT_WISE_CLIP", {U8({0, 100, 255})}, {{"Min", -7.5f}, {"Max", 99.9f}}, {U8({0, 99, 99})});
  Expect("ELEMENT_WISE_CLIP", {U8({0, 100, 255})}, {{"Min", 7.5f}, {"Max", 3.0f}}, {U8({7, 7, 7})});
  Expect("ELEMENT_WISE_CLIP", {U32({3000000000, 1})}, {{"Min", 2.0f}, {"Max", 4e9f}}, {U32({3000000000, 2})});
  Expect("ELEMENT_WISE_CLIP", {I64({INT64_MIN, 9007199254740993, INT64_MAX})},
         {{"Min", -kInf}, {"Max", 1e19f}}, {I64({INT64_MIN, 9007199254740993, INT64_MAX})});
  Expect("ELEMENT_WISE_CLIP", {U64({0, UINT64_MAX})}, {{"Min", -1.0f}, {"Max", kInf}},
         {U64({0, UINT64_MAX})});
}

TEST(UnaryValues, Clip1) {
  const auto bounds = [](const Values& in, auto min, auto max, const Values& out, bool unknown = false) {
    const auto type = unknown ? 0u : static_cast<uint32_t>(in.tensor.type);
    Expect("ELEMENT_WISE_CLIP1", {in},
           {{"MinMaxDataType", type}, {"Min", ScalarOf(min)}, {"Max", ScalarOf(max)}}, {out});
  };
  bounds(F32({-2, 0.5f, kNan}), -1.5f, 0.25f, F32({-1.5f, 0.25f, kNan}));
  bounds(F32({-2, 9}), 5.0f, 1.0f, F32({5, 5}));
  bounds(F16({-2, 2, 0}), uint16_t{0xBC00}, uint16_t{0x3800}, F16({-1, 0.5f, 0}));
  bounds(I8({-128, 3, 127}), int8_t{-3}, int8_t{2}, I8({-3, 2, 2}));
  bounds(U8({0, 3, 255}), uint8_t{0}, uint8_t{1}, U8({0, 1, 1}));
  bounds(U8({0, 3, 255}), uint8_t{1}, uint8_t{200}, U8({1, 3, 200}), /*unknown=*/true);
  bounds(I16({-32768, 5}), int16_t{-300}, int16_t{4}, I16({-300, 4}));
  bounds(U16({0, 65535}), uint16_t{1}, uint16_t{65534}, U16({1, 65534}));
  bounds(I32({INT32_MIN, 16777217}), int32_t{-16777217}, int32_t{16777219}, I32({-16777217, 16777217}));
  bounds(U32({0, UINT32_MAX}), 1u, 4294967294u, U32({1, 4294967294}));
  bounds(I64({INT64_MIN, INT64_MAX}), -INT64_MAX, int64_t{9007199254740993},
         I64({-INT64_MAX, 9007199254740993}));
  bounds(U64({0, UINT64_MAX}), uint64_t{1}, UINT64_MAX - 1, U64({1, UINT64_MAX - 1}));
}

TEST(UnaryValues, Threshold) {
  Expect("ELEMENT_WISE_THRESHOLD", {F32({-1, 0.5f, 3, kInf, -kInf, kNan})}, {{"Min", 0.75f}},
         {F32({0.75f, 0.75f, 3, kInf, 0.75f, kNan})});
  Expect("ELEMENT_WISE_THRESHOLD", {F16({0, 1, kInf})}, {{"Min", 0.1f}}, {F16({0.099975586f, 1, kInf})});
  Expect("ELEMENT_WISE_THRESHOLD", {I32({-5, -1, 0, INT32_MAX})}, {{"Min", -1.9f}},
         {I32({-1, -1, 0, INT32_MAX})});
  Expect("ELEMENT_WISE_THRESHOLD", {U8({0, 255})}, {{"Min", 300.0f}}, {U8({255, 255})});
  Expect("ELEMENT_WISE_THRESHOLD", {I8({-128, 1})}, {{"Min", -300.0f}}, {I8({-128, 1})});
}

TEST(UnaryValues, Transcendental) {
  Expect("ELEMENT_WISE_ACOS", {F32({0, 1, -1, 0.5f, -0.5f, 0.99999994f, 1.0000001f, -2, kInf, kNan})}, {},
         {F32({1.5707964f, 0, 3.1415927f, 1.0471976f, 2.0943952f, 0.00034526698f, kNan, kNan, kNan, kNan})},
         2);
  Expect("ELEMENT_WISE_ASIN", {F32({0, -0.0f, 1, -1, 0.5f, 1e-20f, -0.99999994f, 1.0000001f, -kInf, kNan})},
         {}, {F32({0, -0.0f, 1.5707964f, -1.5707964f, 0.5235988f, 1e-20f, -1.570451f, kNan, kNan, kNan})}, 2);
  Expect("ELEMENT_WISE_ATAN", {F32({0, -0.0f, 1, -3, kInf, -kInf, 1e-40f, 1e10f, kNan})}, {},
         {F32({0, -0.0f, 0.7853982f, -1.2490457f, 1.5707964f, -1.5707964f, 1e-40f, 1.5707964f, kNan})}, 2);
  Expect("ELEMENT_WISE_COS", {F32({0, -0.0f, 1, -2, 1.5707964f, 1000000, -3e38f, kInf, -kInf, kNan})}, {},
         {F32({1, 1, 0.5403023f, -0.41614684f, -4.371139e-8f, 0.93675214f, -0.48429477f, kNan, kNan, kNan})},
         2);
  Expect(
      "ELEMENT_WISE_SIN", {F32({0, -0.0f, 1, 3.1415927f, -100, 1e22f, 3e38f, 1e-40f, kInf, kNan})}, {},
      {F32({0, -0.0f, 0.84147096f, -8.742278e-8f, 0.50636566f, -0.7340815f, 0.8749049f, 1e-40f, kNan, kNan})},
      2);
  Expect(
      "ELEMENT_WISE_TAN", {F32({0, -0.0f, 1, 1.5707964f, -100, 1e10f, 3e38f, 1e-40f, -kInf, kNan})}, {},
      {F32({0, -0.0f, 1.5574077f, -22877332.0f, 0.58721393f, -0.5583496f, -1.8065544f, 1e-40f, kNan, kNan})},
      2);
  Expect("ELEMENT_WISE_EXP", {F32({0, -0.0f, 1, -1, 88.7f, 88.8f, -90, -103, -104, kInf, -kInf, kNan})}, {},
         {F32({1, 1, 2.7182817f, 0.36787945f, 3.3259769e38f, kInf, 8.19401e-40f, 1e-45f, 0, kInf, 0, kNan})},
         2);
  Expect("ELEMENT_WISE_LOG",
         {F32({0, -0.0f, 1, -1, 2, 10, 1e-45f, 0.99999994f, 3.4028235e38f, kInf, -kInf, kNan})}, {},
         {F32({-kInf, -kInf, 0, kNan, 0.6931472f, 2.3025851f, -103.27893f, -5.9604645e-8f, 88.72284f, kInf,
               kNan, kNan})},
         2);
  Expect("ELEMENT_WISE_ERF", {F32({0, -0.0f, 0.5f, -0.5f, 1, 3, -4, 1e-40f, kInf, -kInf, kNan})}, {},
         {F32({0, -0.0f, 0.5204999f, -0.5204999f, 0.8427008f, 0.9999779f, -1, 1.12837e-40f, 1, -1, kNan})},
         2);
  Expect("ELEMENT_WISE_SINH", {F32({0, -0.0f, 1, -1, 1e-5f, 89, -89.5f, kInf, -kInf, kNan})}, {},
         {F32({0, -0.0f, 1.1752012f, -1.1752012f, 1e-5f, 2.2448064e38f, -kInf, kInf, -kInf, kNan})}, 2);
  Expect("ELEMENT_WISE_COSH", {F32({0, -0.0f, 1, -2, 89, -89.5f, kInf, -kInf, kNan})}, {},
         {F32({1, 1, 1.5430807f, 3.7621956f, 2.2448064e38f, kInf, kInf, kInf, kNan})}, 2);
  Expect("ELEMENT_WISE_TANH", {F32({0, -0.0f, 0.5f, -0.5f, 1e-10f, -9, 20, kInf, -kInf, kNan})}, {},
         {F32({0, -0.0f, 0.46211717f, -0.46211717f, 1e-10f, -0.99999994f, 1, 1, -1, kNan})}, 2);
  Expect("ELEMENT_WISE_ASINH", {F32({0, -0.0f, 1, -1, 1e-10f, -1e30f, 3.4028235e38f, kInf, -kInf, kNan})}, {},
         {F32({0, -0.0f, 0.8813736f, -0.8813736f, 1e-10f, -69.7707f, 89.415985f, kInf, -kInf, kNan})}, 2);
  Expect("ELEMENT_WISE_ACOSH", {F32({1, 1.0000001f, 2, 1e30f, 0.99999994f, 0, -1, kInf, kNan})}, {},
         {F32({0, 0.00048828125f, 1.316958f, 69.7707f, kNan, kNan, kNan, kInf, kNan})}, 2);
  Expect("ELEMENT_WISE_ATANH", {F32({0, -0.0f, 0.5f, -0.5f, 1, -1, 1e-10f, 0.99999994f, 1.0000001f, kNan})},
         {}, {F32({0, -0.0f, 0.54930615f, -0.54930615f, kInf, -kInf, 1e-10f, 8.66434f, kNan, kNan})}, 2);
}

// Computed in FLOAT32 and rounded once.
TEST(UnaryValues, TranscendentalOfHalves) {
  Expect("ELEMENT_WISE_EXP", {F16({1, -1, 11, 11.1015625f, -15, -16.5f, -18, 0})}, {},
         {F16({2.71875f, 0.36791992f, 59872, kInf, 2.9802322e-7f, 5.9604645e-8f, 0, 1})}, 2);
  Expect("ELEMENT_WISE_SIN", {F16({1, -100, 60000, 5.9604645e-8f, -0.0f})}, {},
         {F16({0.8413086f, 0.50634766f, 0.95751953f, 5.9604645e-8f, -0.0f})}, 2);
  Expect("ELEMENT_WISE_LOG", {F16({10, 5.9604645e-8f, 65504})}, {},
         {F16({2.3027344f, -16.640625f, 11.09375f})}, 2);
  Expect("ELEMENT_WISE_TANH", {F16({0.5f, -3, 6})}, {}, {F16({0.4621582f, -0.9951172f, 1})}, 2);
  Expect("ELEMENT_WISE_ERF", {F16({0.25f, -1})}, {}, {F16({0.2763672f, -0.84277344f})}, 2);
}

// An exponent of 0.5 is not a square root: the square root of -0 is -0.
TEST(UnaryValues, ConstantPow) {
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({4, 2, 0, -0.0f, kInf, -kInf, -4, kNan})}, {{"Exponent", 0.5f}},
         {F32({2, 1.4142135f, 0, 0, kInf, kInf, kNan, kNan})}, 4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({2, -2, 0, -0.0f, -kInf, 1.1f})}, {{"Exponent", 3.0f}},
         {F32({8, -8, 0, -0.0f, -kInf, 1.3310001f})}, 4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({2, -2, 10, kInf, -kInf, 0, -0.0f})}, {{"Exponent", -1.0f}},
         {F32({0.5f, -0.5f, 0.1f, 0, -0.0f, kInf, -kInf})}, 4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({3, -3, 1e-23f, 2e19f, kNan})}, {{"Exponent", 2.0f}},
         {F32({9, 9, 0, kInf, kNan})}, 4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({3, 0, kInf, -3})}, {{"Exponent", 0.0f}}, {F32({1, 1, 1, 1})}, 4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F16({300, -3, 0.0010004044f})}, {{"Exponent", 2.0f}},
         {F16({kInf, 9, 1.013279e-6f})}, 4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({7, 2})}, {{"Exponent", 1.7f}}, {F32({27.331703f, 3.2490096f})},
         4);
  Expect("ELEMENT_WISE_CONSTANT_POW", {F32({2, kNan})}, {{"Exponent", 0.0f}}, {F32({1, 1})}, 4);
  // Integers: computed in FLOAT64, rounded toward zero, saturated; NaN becomes 0.
  Expect("ELEMENT_WISE_CONSTANT_POW", {I32({3, -3, 0, 46341, -46341})}, {{"Exponent", 2.0f}},
         {I32({9, 9, 0, INT32_MAX, INT32_MAX})});
  Expect("ELEMENT_WISE_CONSTANT_POW", {I32({9, 2, -4, 2147395600})}, {{"Exponent", 0.5f}},
         {I32({3, 1, 0, 46340})});
  Expect("ELEMENT_WISE_CONSTANT_POW", {I32({1, -1, 2, 0})}, {{"Exponent", -1.0f}},
         {I32({1, -1, 0, INT32_MAX})});
  Expect("ELEMENT_WISE_CONSTANT_POW", {U8({3, 6, 7})}, {{"Exponent", 3.0f}}, {U8({27, 216, 255})});
  Expect("ELEMENT_WISE_CONSTANT_POW", {I8({-5, -6, 5})}, {{"Exponent", 3.0f}}, {I8({-125, -128, 125})});
  Expect("ELEMENT_WISE_CONSTANT_POW", {U32({65536, 3})}, {{"Exponent", 2.0f}}, {U32({UINT32_MAX, 9})});
}

class EveryOperatorHasValues final : public ::testing::Environment {
  void TearDown() override {
    const auto& tests = *::testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() != tests.total_test_count()) return;
    for (const OperatorType type : ElementOperatorTypes()) {
      EXPECT_TRUE(ExpectedOperators().contains(static_cast<uint32_t>(type))) << FindOperator(type)->name;
    }
  }
};
const auto* const kEveryOperator = ::testing::AddGlobalTestEnvironment(new EveryOperatorHasValues);

}  // namespace
}  // namespace anydml::testing
