// Operators with two tensors, and the choice between two tensors.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"

namespace anydml::testing {
namespace {

TEST(BinaryValues, AddSubtractMultiply) {
  Expect("ELEMENT_WISE_ADD",
         {F32({1, 16777216, 3e38f, kInf, -0.0f, 1e-45f}), F32({2, 1, 3e38f, -kInf, -0.0f, 1e-45f})}, {},
         {F32({3, 16777216, kInf, kNan, -0.0f, 3e-45f})});
  Expect("ELEMENT_WISE_ADD", {F16({2048, 65504, 2048}), F16({1, 16, 3})}, {}, {F16({2048, kInf, 2052})});
  Expect("ELEMENT_WISE_ADD", {I8({127, -128}), I8({1, -1})}, {}, {I8({-128, 127})});
  Expect("ELEMENT_WISE_ADD", {U8({255, 200}), U8({1, 100})}, {}, {U8({0, 44})});
  Expect("ELEMENT_WISE_ADD", {I16({32767}), I16({1})}, {}, {I16({-32768})});
  Expect("ELEMENT_WISE_ADD", {U16({65535}), U16({2})}, {}, {U16({1})});
  Expect("ELEMENT_WISE_ADD", {I32({INT32_MAX, 16777217}), I32({1, 1})}, {}, {I32({INT32_MIN, 16777218})});
  Expect("ELEMENT_WISE_ADD", {U32({UINT32_MAX}), U32({1})}, {}, {U32({0})});
  Expect("ELEMENT_WISE_ADD", {I64({INT64_MAX, 9007199254740993}), I64({1, 1})}, {},
         {I64({INT64_MIN, 9007199254740994})});
  Expect("ELEMENT_WISE_ADD", {U64({UINT64_MAX}), U64({2})}, {}, {U64({1})});
  Expect("ELEMENT_WISE_SUBTRACT", {F32({1, kInf, 0, -0.0f}), F32({3, kInf, 0, 0})}, {},
         {F32({-2, kNan, 0, -0.0f})});
  Expect("ELEMENT_WISE_SUBTRACT", {U8({0}), U8({1})}, {}, {U8({255})});
  Expect("ELEMENT_WISE_SUBTRACT", {U32({1}), U32({2})}, {}, {U32({UINT32_MAX})});
  Expect("ELEMENT_WISE_SUBTRACT", {I32({INT32_MIN}), I32({1})}, {}, {I32({INT32_MAX})});
  Expect("ELEMENT_WISE_SUBTRACT", {I64({-9007199254740993}), I64({1})}, {}, {I64({-9007199254740994})});
  Expect("ELEMENT_WISE_SUBTRACT", {U64({0}), U64({1})}, {}, {U64({UINT64_MAX})});
  Expect("ELEMENT_WISE_MULTIPLY", {F32({3, 1e30f, kInf, 1e-30f, -1}), F32({-2, 1e30f, 0, 1e-10f, 0})}, {},
         {F32({-6, kInf, kNan, 1e-40f, -0.0f})});
  Expect("ELEMENT_WISE_MULTIPLY", {F16({256, 3}), F16({256, 5})}, {}, {F16({kInf, 15})});
  Expect("ELEMENT_WISE_MULTIPLY", {I8({100, -128, 16}), I8({2, -1, 16})}, {}, {I8({-56, -128, 0})});
  Expect("ELEMENT_WISE_MULTIPLY", {U8({200}), U8({2})}, {}, {U8({144})});
  Expect("ELEMENT_WISE_MULTIPLY", {I32({65537, INT32_MIN}), I32({65537, -1})}, {},
         {I32({131073, INT32_MIN})});
  Expect("ELEMENT_WISE_MULTIPLY", {U32({4294967295}), U32({4294967295})}, {}, {U32({1})});
  Expect("ELEMENT_WISE_MULTIPLY", {I64({4294967297, 3037000500}), I64({4294967297, 3037000500})}, {},
         {I64({8589934593, -9223372036709301616})});
  Expect("ELEMENT_WISE_MULTIPLY", {U64({UINT64_MAX}), U64({3})}, {}, {U64({18446744073709551613u})});
}

// Division by 0 sets all bits. Quotients round toward zero.
TEST(BinaryValues, Divide) {
  Expect("ELEMENT_WISE_DIVIDE", {F32({1, 1, -1, 0, kInf, 7, 1}), F32({3, 0, 0, 0, kInf, kInf, -0.0f})}, {},
         {F32({0.33333334f, kInf, -kInf, kNan, kNan, 0, -kInf})});
  Expect("ELEMENT_WISE_DIVIDE", {F16({1}), F16({3})}, {}, {F16({0.33325195f})});
  Expect("ELEMENT_WISE_DIVIDE", {I32({7, -7, 7, INT32_MIN, 5, 0}), I32({2, 2, -2, -1, 0, 0})}, {},
         {I32({3, -3, -3, INT32_MIN, -1, -1})});
  Expect("ELEMENT_WISE_DIVIDE", {U32({7, UINT32_MAX, 5}), U32({2, 2, 0})}, {},
         {U32({3, 2147483647, UINT32_MAX})});
  Expect("ELEMENT_WISE_DIVIDE", {I8({-128, -7, 5}), I8({-1, 2, 0})}, {}, {I8({-128, -3, -1})});
  Expect("ELEMENT_WISE_DIVIDE", {U8({255, 9}), U8({2, 0})}, {}, {U8({127, 255})});
  Expect("ELEMENT_WISE_DIVIDE", {I16({-32768, 9}), I16({-1, 0})}, {}, {I16({-32768, -1})});
  Expect("ELEMENT_WISE_DIVIDE", {U16({65535, 9}), U16({256, 0})}, {}, {U16({255, 65535})});
  Expect("ELEMENT_WISE_DIVIDE", {I64({INT64_MIN, 9007199254740993, -7, 1}), I64({-1, 1, 2, 0})}, {},
         {I64({INT64_MIN, 9007199254740993, -3, -1})});
  Expect("ELEMENT_WISE_DIVIDE", {U64({UINT64_MAX, 3}), U64({1, 0})}, {}, {U64({UINT64_MAX, UINT64_MAX})});
}

TEST(BinaryValues, MaxMinMean) {
  const Values a = F32({1, -2, 0, -0.0f, kNan, 1, -kInf, 1e-45f}),
               b = F32({2, -3, -0.0f, 0, 1, kNan, 5, -1e-45f});
  Expect("ELEMENT_WISE_MAX", {a, b}, {}, {F32({2, -2, 0, 0, kNan, kNan, 5, 1e-45f})});
  Expect("ELEMENT_WISE_MIN", {a, b}, {}, {F32({1, -3, -0.0f, -0.0f, kNan, kNan, -kInf, -1e-45f})});
  Expect("ELEMENT_WISE_MAX", {F16({-0.0f, kNan}), F16({0, 3})}, {}, {F16({0, kNan})});
  Expect("ELEMENT_WISE_MAX", {I8({-128, 3}), I8({127, -3})}, {}, {I8({127, 3})});
  Expect("ELEMENT_WISE_MIN", {U8({200, 3}), U8({100, 255})}, {}, {U8({100, 3})});
  Expect("ELEMENT_WISE_MAX", {U32({0x80000000}), U32({1})}, {}, {U32({0x80000000})});
  Expect("ELEMENT_WISE_MIN", {U32({0x80000000}), U32({1})}, {}, {U32({1})});
  Expect("ELEMENT_WISE_MIN", {I32({INT32_MIN}), I32({1})}, {}, {I32({INT32_MIN})});
  Expect("ELEMENT_WISE_MAX", {I64({9007199254740993, -1}), I64({9007199254740992, INT64_MIN})}, {},
         {I64({9007199254740993, -1})});
  Expect("ELEMENT_WISE_MIN", {U64({UINT64_MAX, 18446744073709551614u}), U64({1, UINT64_MAX})}, {},
         {U64({1, 18446744073709551614u})});
  Expect("ELEMENT_WISE_MEAN", {F32({1, 3, kInf, -1}), F32({2, 3, -kInf, 1})}, {}, {F32({1.5f, 3, kNan, 0})});
  Expect("ELEMENT_WISE_MEAN", {F16({65504, 1}), F16({65504, 2})}, {}, {F16({65504, 1.5f})});
  Expect(
      "ELEMENT_WISE_MEAN",
      {I32({INT32_MAX, INT32_MIN, INT32_MIN, 1, -1, -3}), I32({INT32_MAX, INT32_MIN, INT32_MAX, 2, -2, 0})},
      {}, {I32({INT32_MAX, INT32_MIN, 0, 1, -1, -1})});
  Expect("ELEMENT_WISE_MEAN", {U32({UINT32_MAX, UINT32_MAX}), U32({UINT32_MAX, 0})}, {},
         {U32({UINT32_MAX, 2147483647})});
}

TEST(BinaryValues, PowOfFloats) {
  Expect("ELEMENT_WISE_POW",
         {F32({2, -2, -2, 1.5f, 10, 10, 0.99999994f, 1.0000001f, -1.5f, 2, 2, 0.1f}),
          F32({10, 3, 0.5f, -2.5f, 38, -45, 1e8f, -1e8f, 7, -149, -150, 0.1f})},
         {},
         {F32({1024, -8, kNan, 0.36288738f, 1e38f, 1e-45f, 0.0025787135f, 6.6497705e-6f, -17.085938f, 1e-45f,
               0, 0.7943282f})},
         4);
  Expect("ELEMENT_WISE_POW",
         {F32({0, kNan, 1, 0, -0.0f, -0.0f, -0.0f, -kInf, -kInf, -1, 0.5f, 2, kNan, 2, -2}),
          F32({0, 0, kNan, -1, -1, 3, 2, 3, 2, kInf, kInf, -kInf, 1, kNan, 16777216})},
         {}, {F32({1, 1, 1, kInf, -kInf, -0.0f, 0, -kInf, kInf, 1, 0, 0, kNan, kNan, kInf})}, 4);
  Expect("ELEMENT_WISE_POW", {F16({2, -3, 300}), F16({-24, 3, 2})}, {}, {F16({5.9604645e-8f, -27, kInf})}, 4);
  Expect("ELEMENT_WISE_POW", {F32({2, 3}), F32({2, 2})}, {{"ScaleBias", ScaleBias{-1, 1}}}, {F32({1, 4})}, 4);
  Expect("ELEMENT_WISE_POW", {F32({-2, 4}), F16({3, 0.5f})}, {}, {F32({-8, 2})}, 4);
  Expect("ELEMENT_WISE_POW", {F16({-2, 4}), F32({3, 0.5f})}, {}, {F16({-8, 2})}, 4);
}

// Exponents that FLOAT32 cannot represent: odd ones stay odd, and none is rounded.
TEST(BinaryValues, PowOfFloatsByIntegers) {
  Expect("ELEMENT_WISE_POW",
         {F32({-1, -1, -1, -2, 0, 0, -0.0f, 3, -1.0001f}),
          I32({16777217, 2147483647, INT32_MIN, -3, 0, -1, -1, 4, 300001})},
         {}, {F32({-1, -1, 1, -0.125f, 1, kInf, -kInf, 81, -1.0724777e13f})}, 4);
  Expect("ELEMENT_WISE_POW", {F32({-1, -1, kNan}), U32({UINT32_MAX, 4294967294, 0})}, {}, {F32({-1, 1, 1})},
         4);
  Expect("ELEMENT_WISE_POW", {F32({-2, 2}), U8({3, 255})}, {}, {F32({-8, kInf})}, 4);
  Expect("ELEMENT_WISE_POW", {F16({-2, 2}), I8({3, -14})}, {}, {F16({-8, 0.00006103515625f})}, 4);
  Expect("ELEMENT_WISE_POW",
         {F32({1.0000001f, 1.0000001f, -1.0000001f}), I32({536870943, 16777217, 16777217})}, {},
         {F32({6.235148e27f, 7.389056f, -7.389056f})}, 4);
  Expect("ELEMENT_WISE_POW", {F32({1.0000001f, 0.99999994f}), U32({600000001, 1000000007})}, {},
         {F32({1.1565387e31f, 1.3002616e-26f})}, 4);
}

// Both integral: modulo 2^n. Negative exponents: 1, -1, and 0 with all bits set, are not 0.
TEST(BinaryValues, PowOfIntegers) {
  Expect("ELEMENT_WISE_POW",
         {I8({3, 2, -2, 0, 0, 1, -1, -1, 2, -128}), I8({5, 8, 7, 0, -1, -5, -3, -2, -1, 1})}, {},
         {I8({-13, 0, -128, 1, -1, 1, -1, 1, 0, -128})});
  Expect("ELEMENT_WISE_POW", {U8({3, 0, 255, 255, 1}), I32({6, -1, -1, 2, -7})}, {},
         {U8({217, 255, 0, 1, 1})});
  Expect("ELEMENT_WISE_POW", {U16({12345}), U8({3})}, {}, {U16({25449})});
  Expect("ELEMENT_WISE_POW", {I32({7, -7, 10, -1, 2}), I32({13, 13, 9, INT32_MAX, 31})}, {},
         {I32({-1895237401, 1895237401, 1000000000, -1, INT32_MIN})});
  Expect("ELEMENT_WISE_POW", {U32({3, 0, UINT32_MAX, UINT32_MAX}), I32({41, -2, -1, 3})}, {},
         {U32({2069870691, UINT32_MAX, 0, UINT32_MAX})});
  Expect("ELEMENT_WISE_POW", {I32({-1, 3}), U32({UINT32_MAX, 4294967295})}, {}, {I32({-1, -1431655765})});
}

// An integer to a floating-point power: computed in FLOAT64, rounded toward zero, saturated.
TEST(BinaryValues, PowOfIntegersByFloats) {
  Expect("ELEMENT_WISE_POW",
         {I32({9, 2, -8, 2, -2, 10, 0, 2, 0, 3}), F32({0.5f, 3.5f, 1 / 3.0f, 31, 31, 10, -1, -1, 0, 20})}, {},
         {I32({3, 11, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MAX, 0, 1, INT32_MAX})});
  Expect("ELEMENT_WISE_POW", {U32({3, 2, 125}), F32({20, 31.5f, 1.5f})}, {},
         {U32({3486784401, 3037000499, 1397})});
  Expect("ELEMENT_WISE_POW", {I8({-5, 12, 11}), F16({3, 2, 2})}, {}, {I8({-125, 127, 121})});
  Expect("ELEMENT_WISE_POW", {U8({16, 15}), F32({2, 2})}, {}, {U8({255, 225})});
}

TEST(BinaryValues, ModulusOfFloats) {
  const Values a = F32({5.5f, -5.5f, 5.5f, -5.5f, 6, -6, 1e30f, -1e30f, 10, 5, -5, kInf, 5, kNan});
  const Values b = F32({2, 2, -2, -2, 3, 3, 7, 7, 0.1f, kInf, kInf, 2, 0, 2});
  Expect("ELEMENT_WISE_MODULUS_TRUNCATE", {a, b}, {},
         {F32({1.5f, -1.5f, 1.5f, -1.5f, 0, -0.0f, 1, -1, 0.09999985f, 5, -5, kNan, kNan, kNan})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {a, b}, {},
         {F32({1.5f, 0.5f, -0.5f, -1.5f, 0, -0.0f, 1, 6, 0.09999985f, 5, kInf, kNan, kNan, kNan})});
  Expect("ELEMENT_WISE_MODULUS_TRUNCATE", {F16({-7.5f, 60000}), F16({2, 7})}, {}, {F16({-1.5f, 3})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {F16({-7.5f, 60000}), F16({2, -7})}, {}, {F16({0.5f, -4})});
}

TEST(BinaryValues, ModulusOfIntegers) {
  const Values a = I32({7, -7, 7, -7, INT32_MIN, 5, -6}), b = I32({3, 3, -3, -3, -1, 0, 3});
  Expect("ELEMENT_WISE_MODULUS_TRUNCATE", {a, b}, {}, {I32({1, -1, 1, -1, 0, -1, 0})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {a, b}, {}, {I32({1, 2, -2, -1, 0, -1, 0})});
  Expect("ELEMENT_WISE_MODULUS_TRUNCATE", {I8({-128, -7}), I8({-1, 0})}, {}, {I8({0, -1})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {I8({-128, -7, 100}), I8({3, 4, -128})}, {}, {I8({1, 1, -28})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {U8({200, 9}), U8({7, 0})}, {}, {U8({4, 255})});
  Expect("ELEMENT_WISE_MODULUS_TRUNCATE", {U32({UINT32_MAX}), U32({10})}, {}, {U32({5})});
  Expect("ELEMENT_WISE_MODULUS_TRUNCATE", {I64({9007199254740993, INT64_MIN}), I64({10, -1})}, {},
         {I64({3, 0})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {I64({-9007199254740993, 1}), I64({10, 0})}, {}, {I64({7, -1})});
  Expect("ELEMENT_WISE_MODULUS_FLOOR", {U64({UINT64_MAX, 5}), U64({10, 0})}, {}, {U64({5, UINT64_MAX})});
}

// The angle of the point (B, A).
TEST(BinaryValues, AtanYx) {
  Expect("ELEMENT_WISE_ATAN_YX",
         {F32({0, -0.0f, 0, -0.0f, 1, -1, 1, -1, kInf, -kInf, kInf, 1, 1e-30f, 3, kNan, 1}),
          F32({0, 0, -0.0f, -1, 0, -0.0f, 1, -1, kInf, -kInf, 2, -kInf, -1e30f, 4, 1, kNan})},
         {},
         {F32({0, -0.0f, 3.1415927f, -3.1415927f, 1.5707964f, -1.5707964f, 0.7853982f, -2.3561945f,
               0.7853982f, -2.3561945f, 1.5707964f, 3.1415927f, 3.1415927f, 0.6435011f, kNan, kNan})},
         2);
  Expect("ELEMENT_WISE_ATAN_YX", {F16({3}), F16({4})}, {}, {F16({0.6435547f})}, 2);
}

TEST(BinaryValues, DifferenceSquare) {
  Expect("ELEMENT_WISE_DIFFERENCE_SQUARE", {F32({1, -3, kInf, 1e30f}), F32({3, 2, kInf, -1e30f})}, {},
         {F32({4, 25, kNan, kInf})});
  Expect("ELEMENT_WISE_DIFFERENCE_SQUARE", {F16({300, 3}), F16({-1, 5})}, {}, {F16({kInf, 4})});
  Expect("ELEMENT_WISE_DIFFERENCE_SQUARE", {I32({1, 65537, INT32_MIN}), I32({3, 0, 1})}, {},
         {I32({4, 131073, 1})});
  // 1 - 3 is 2^32 - 2, whose square is 4 modulo 2^32.
  Expect("ELEMENT_WISE_DIFFERENCE_SQUARE", {U32({1, 65537}), U32({3, 0})}, {}, {U32({4, 131073})});
}

// Nonzero means true. Values are copied.
TEST(BinaryValues, If) {
  const Values condition = U8({0, 1, 2, 128, 255});
  Expect("ELEMENT_WISE_IF", {condition, I32({1, 2, 3, 4, 5}), I32({-1, -2, -3, -4, -5})}, {},
         {I32({-1, 2, 3, 4, 5})});
  Expect("ELEMENT_WISE_IF", {U8({1, 0}), F32Bits({0x7F800001, 5}), F32Bits({6, 0xFFC12345})}, {},
         {F32Bits({0x7F800001, 0xFFC12345})});
  Expect("ELEMENT_WISE_IF", {U8({1, 0}), F16Bits({0x7C01, 5}), F16Bits({6, 0xFE01})}, {},
         {F16Bits({0x7C01, 0xFE01})});
  Expect("ELEMENT_WISE_IF", {U8({3, 0}), F64Bits({0x7FF0000000000001, 5}), F64Bits({6, 7})}, {},
         {F64Bits({0x7FF0000000000001, 7})});
  Expect("ELEMENT_WISE_IF", {U8({3, 0}), U8({200, 5}), U8({6, 255})}, {}, {U8({200, 255})});
  Expect("ELEMENT_WISE_IF", {U8({3, 0}), I64({INT64_MIN, 5}), I64({6, 9007199254740993})}, {},
         {I64({INT64_MIN, 9007199254740993})});
}

// Either input is transposed; the last tiles and blocks of tiles are partial.
TEST(BinaryValues, Across) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const char* name : {"ELEMENT_WISE_SUBTRACT", "ELEMENT_WISE_MAX"}) {
      const TensorDesc packed = Packed(type, {520, 1040});
      const TensorDesc across = Strided(type, {520, 1040}, {1, 520});
      for (const bool first : {true, false}) {
        const TensorDesc &a = first ? across : packed, &b = first ? packed : across;
        ExpectAllAgree(MakeDesc(name, {{"ATensor", a}, {"BTensor", b}, {"OutputTensor", packed}}),
                       {RandomBytes(a, random), RandomBytes(b, random)});
      }
    }
  }
}

}  // namespace
}  // namespace anydml::testing
