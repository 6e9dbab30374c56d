// Conversions between types, with and without scales and zero points.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/element/expect_values.h"

namespace anydml::testing {
namespace {

// Rounds toward zero and saturates; NaN becomes 0.
TEST(CastValues, FloatsToIntegers) {
  const Values x = F32({1.9f, -1.9f, 0.99f, -0.99f, 3e9f, -3e9f, 1e30f, -1e30f, kInf, -kInf, kNan, -0.0f});
  Expect("CAST", {x}, {}, {I8({1, -1, 0, 0, 127, -128, 127, -128, 127, -128, 0, 0})});
  Expect("CAST", {x}, {}, {U8({1, 0, 0, 0, 255, 0, 255, 0, 255, 0, 0, 0})});
  Expect("CAST", {x}, {}, {I16({1, -1, 0, 0, 32767, -32768, 32767, -32768, 32767, -32768, 0, 0})});
  Expect("CAST", {x}, {}, {U16({1, 0, 0, 0, 65535, 0, 65535, 0, 65535, 0, 0, 0})});
  Expect("CAST", {x}, {},
         {I32({1, -1, 0, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0, 0})});
  Expect("CAST", {x}, {}, {U32({1, 0, 0, 0, 3000000000, 0, UINT32_MAX, 0, UINT32_MAX, 0, 0, 0})});
  Expect("CAST", {x}, {},
         {I64({1, -1, 0, 0, 3000000000, -3000000000, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0, 0})});
  Expect("CAST", {x}, {}, {U64({1, 0, 0, 0, 3000000000, 0, UINT64_MAX, 0, UINT64_MAX, 0, 0, 0})});
  Expect("CAST", {F32({127.9f, 128, -128.9f, -129})}, {}, {I8({127, 127, -128, -128})});
  Expect("CAST", {F32({255.9f, 256, 3.7f})}, {}, {U8({255, 255, 3})});
  // A power of two, and the largest FLOAT32 below it.
  Expect("CAST", {F32({2147483520, 2147483648.0f})}, {}, {I32({2147483520, INT32_MAX})});
  Expect("CAST", {F32({0x1.fffffep63f, 0x1p64f})}, {}, {U64({18446742974197923840u, UINT64_MAX})});
  Expect("CAST", {F32({0x1.fffffep62f, 0x1p63f, -0x1p63f})}, {},
         {I64({9223371487098961920, INT64_MAX, INT64_MIN})});
  Expect("CAST", {F16({65504, -3.5f, kInf, kNan})}, {}, {I8({127, -3, 127, 0})});
  Expect("CAST", {F16({65504, -3.5f, kInf, kNan})}, {}, {U16({65504, 0, 65535, 0})});
  Expect("CAST", {F64({2147483647.9, -2147483648.9, 1e300, -0.9, 0.1})}, {},
         {I32({INT32_MAX, INT32_MIN, INT32_MAX, 0, 0})});
  Expect("CAST", {F64({9007199254740994, -1e19, 1e19})}, {}, {I64({9007199254740994, INT64_MIN, INT64_MAX})});
  Expect("CAST", {F64({18446744073709549568.0, 18446744073709551616.0, -1})}, {},
         {U64({18446744073709549568u, UINT64_MAX, 0})});
  Expect("CAST", {F64Bits({0x7FF8000000000000, 0xFFF0000000000000})}, {}, {U8({0, 0})});
}

// To nearest, ties to even, in one rounding.
TEST(CastValues, FloatsToFloats) {
  Expect("CAST",
         {F32({65519.996f, 65520, 1 + 0x1p-11f, 1 + 0x3p-11f, 0x1p-25f, 0x3p-25f, 0x1.000002p-25f, -1e-30f,
               -kInf, kNan})},
         {}, {F16Bits({0x7BFF, 0x7C00, 0x3C00, 0x3C02, 0, 2, 1, 0x8000, 0xFC00, 0x7E00})});
  Expect("CAST", {F64({1 + 0x1p-24, 1 + 0x1p-24 + 0x1p-50, 1e300, -1e-46, 0x1p-149, 0x1.8p-150, 0x1p-150})},
         {}, {F32({1, 1 + 0x1p-23f, kInf, -0.0f, 0x1p-149f, 0x1p-149f, 0})});
  // Rounding to FLOAT32 first would turn these into ties.
  Expect("CAST",
         {F64({1 + 0x1p-11 + 0x1p-40, -(1 + 0x1p-11 + 0x1p-40), 1 + 0x3p-11 - 0x1p-40, 65519.9999999, 65520,
               0x1p-25 + 0x1p-60, 0x1p-25, 0x3p-25 - 0x1p-60, 1e300, -1e-300})},
         {}, {F16Bits({0x3C01, 0xBC01, 0x3C01, 0x7BFF, 0x7C00, 1, 0, 1, 0x7C00, 0x8000})});
  Expect("CAST", {F16Bits({1, 0x8000, 0x3555, 0x7C00, 0x7BFF})}, {},
         {F32({5.9604645e-8f, -0.0f, 0.33325195f, kInf, 65504})});
  Expect("CAST", {F16Bits({1, 0xFBFF})}, {}, {F64({0x1p-24, -65504})});
  Expect("CAST", {F32({0.1f, 1e-45f, -kInf})}, {},
         {F64({0.100000001490116119384765625, 0x1p-149, -INFINITY})});
}

TEST(CastValues, IntegersToFloats) {
  Expect("CAST", {I32({16777217, 16777219, -16777217, INT32_MAX, INT32_MIN})}, {},
         {F32({16777216, 16777220, -16777216, 2147483648.0f, -2147483648.0f})});
  Expect("CAST", {U32({UINT32_MAX, 16777217})}, {}, {F32({4294967296.0f, 16777216})});
  // 2^60 + 2^36 + 1 is above the tie; rounding to FLOAT64 first would make it a tie.
  Expect("CAST", {I64({1152921573326323713, -1152921573326323713, INT64_MAX, 16777217})}, {},
         {F32({0x1.000002p60f, -0x1.000002p60f, 0x1p63f, 16777216})});
  Expect("CAST", {U64({9223372586610589697u, UINT64_MAX})}, {}, {F32({0x1.000002p63f, 0x1p64f})});
  Expect("CAST", {I64({9007199254740993, 9007199254740995, INT64_MIN})}, {},
         {F64({9007199254740992, 9007199254740996, -0x1p63})});
  Expect("CAST", {U64({UINT64_MAX, 9007199254740993})}, {}, {F64({0x1p64, 9007199254740992})});
  Expect("CAST", {I64({2049, 2051, 65519, 65520, -70000})}, {},
         {F16Bits({0x6800, 0x6802, 0x7BFF, 0x7C00, 0xFC00})});
  Expect("CAST", {U32({2049, 65520})}, {}, {F16Bits({0x6800, 0x7C00})});
  Expect("CAST", {U8({0, 255})}, {}, {F16({0, 255})});
  Expect("CAST", {I16({-32768, 32767})}, {}, {F64({-32768, 32767})});
  Expect("CAST", {I8({-128, 127})}, {}, {F32({-128, 127})});
}

// Narrowing keeps the low bits; widening extends the sign of the source type.
TEST(CastValues, IntegersToIntegers) {
  Expect("CAST", {I32({300, -129, 127, INT32_MIN})}, {}, {I8({44, 127, 127, 0})});
  Expect("CAST", {U8({200, 255})}, {}, {I8({-56, -1})});
  Expect("CAST", {I8({-1, -128})}, {}, {U32({UINT32_MAX, 0xFFFFFF80})});
  Expect("CAST", {I8({-1, -128})}, {}, {U64({UINT64_MAX, 0xFFFFFFFFFFFFFF80})});
  Expect("CAST", {U8({255})}, {}, {I64({255})});
  Expect("CAST", {U32({UINT32_MAX})}, {}, {I64({4294967295})});
  Expect("CAST", {I32({-1})}, {}, {I64({-1})});
  Expect("CAST", {I64({0x180000001, -1, INT64_MIN})}, {}, {I32({INT32_MIN + 1, -1, 0})});
  Expect("CAST", {U64({0xFFFFFFFF00000080})}, {}, {I8({-128})});
  Expect("CAST", {I16({-2})}, {}, {U16({65534})});
  Expect("CAST", {U16({65535})}, {}, {I32({65535})});
}

TEST(CastValues, EqualTypesMoveBits) {
  Expect("CAST", {F32Bits({0x7F800001, 0xFFC12345})}, {}, {F32Bits({0x7F800001, 0xFFC12345})});
  Expect("CAST", {I64({9007199254740993})}, {}, {I64({9007199254740993})});
}

// clamp(round(x / scale) + zero point): ties to even, then the sum.
TEST(QuantizeValues, QuantizeLinear) {
  const Values x = F32({0, 2, 3, 1, 5, -3, 1000, -254, -1000, kInf, -kInf, kNan});
  const auto all = [](float value) {
    return Shaped(F32({value, value, value, value, value, value, value, value, value, value, value, value}),
                  {12}, {0});
  };
  const auto zero_points = [](uint8_t value) {
    return Shaped(U8({value, value, value, value, value, value, value, value, value, value, value, value}),
                  {12}, {0});
  };
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {x, all(2), zero_points(128)}, {},
         {U8({128, 129, 130, 128, 130, 126, 255, 1, 0, 255, 0, 128})});
  // 1 / 2 is rounded to 0 before 1 is added.
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {x, all(2), zero_points(1)}, {},
         {U8({1, 2, 3, 1, 3, 0, 255, 0, 0, 255, 0, 1})});
  // Without a zero point: 0.
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {x, all(2)}, {}, {U8({0, 1, 2, 0, 2, 0, 255, 0, 0, 255, 0, 0})});
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {x, all(2)}, {},
         {I8({0, 1, 2, 0, 2, -2, 127, -127, -128, 127, -128, 0})});
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {F32({1, -1, 0}), F32({0, 0, 0}), U8({7, 7, 7})}, {},
         {U8({255, 0, 7})});
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {F32({-200, 200, 10}), F32({1, 1, 4}), I8({100, -100, -5})}, {},
         {I8({-100, 100, -3})});
  // A quotient, not a product with the reciprocal.
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {F32({-885.5f, -871.5f}), F32({7, 7})}, {}, {I8({-126, -124})});
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR", {F16({1, -0.5f, 100}), F16({0.099975586f, 1, 0.5f}), I8({0, 3, 0})},
         {}, {I8({10, 3, 127})});
  // INT32 is converted to FLOAT32: 2^24 + 1 is rounded, so that its quotient by 2^25 is exactly a half.
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR",
         {I32({7, -7, 16777217, INT32_MIN}), F32({2, 2, 0x1p25f, 1}), U8({10, 10, 10, 10})}, {},
         {U8({14, 6, 10, 0})});
  // One scale per row, through strides.
  Expect("ELEMENT_WISE_QUANTIZE_LINEAR",
         {Shaped(F32({1, 2, 3, 10, 20, 30}), {2, 3}), Shaped(F32({1, 1, 1, 10, 10, 10}), {2, 3}, {1, 0}),
          Shaped(U8({0, 0, 0, 5, 5, 5}), {2, 3}, {1, 0})},
         {}, {Shaped(U8({1, 2, 3, 6, 7, 8}), {2, 3})});
}

// The difference is exact, the product rounded once.
TEST(QuantizeValues, DequantizeLinear) {
  const char* const name = "ELEMENT_WISE_DEQUANTIZE_LINEAR";
  Expect(name, {U8({0, 128, 255}), F32({0.5f, 0.5f, 0.5f}), U8({128, 128, 128})}, {}, {F32({-64, 0, 63.5f})});
  Expect(name, {U8({0, 128, 255}), F32({0.5f, 0.5f, 0.5f})}, {}, {F32({0, 64, 127.5f})});
  Expect(name, {I8({-128, 127}), F32({1, -2}), I8({127, -128})}, {}, {F32({-255, -510})});
  Expect(name, {I16({-32768}), F32({1}), I16({32767})}, {}, {F32({-65535})});
  Expect(name, {U16({0, 2049}), F16({1, 1}), U16({65535, 0})}, {}, {F16({-kInf, 2048})});
  Expect(name,
         {I32({INT32_MIN, INT32_MAX, 16777217, 100000001}), F32({0.5f, 0.5f, 1, 1}),
          I32({INT32_MAX, INT32_MIN, 0, 100000000})},
         {}, {F32({-2147483648.0f, 2147483648.0f, 16777216, 1})});
  Expect(name, {U32({0, UINT32_MAX, UINT32_MAX}), F32({1, 1, 1}), U32({UINT32_MAX, 0, 4294967294})}, {},
         {F32({-4294967296.0f, 4294967296.0f, 1})});
  Expect(name, {U32({UINT32_MAX}), F32({1})}, {}, {F32({4294967296.0f})});
  // 3 * 0.1 in FLOAT16, in one rounding; infinite scales.
  Expect(name, {U8({3, 1, 0}), F16({0.099975586f, kInf, kInf})}, {}, {F16({0.2998047f, kInf, kNan})});
}

TEST(QuantizeValues, FourBitsLieLowHalfFirst) {
  EXPECT_EQ(U4({1, 2, 3}).bytes, (Bytes{0x21, (kGap & 0xF0) | 3, kGap, kGap}));
  EXPECT_EQ(I4({-8, -1}).bytes, (Bytes{0xF8, kGap, kGap, kGap}));
}

// Without a zero point, the middle of the unsigned range represents 0.
TEST(QuantizeValues, Quantize) {
  const Values x = F32({0, 1, 2.5f, 3.5f, -0.5f, 7, 100, -8, -100, 120, -128, -200, kNan});
  Expect("QUANTIZE", {x, F32({1})}, {}, {I8({0, 1, 2, 4, 0, 7, 100, -8, -100, 120, -128, -128, 0})});
  Expect("QUANTIZE", {x, F32({1})}, {}, {U8({128, 129, 130, 132, 128, 135, 228, 120, 28, 248, 0, 0, 128})});
  Expect("QUANTIZE", {x, F32({1})}, {}, {I4({0, 1, 2, 4, 0, 7, 7, -8, -8, 7, -8, -8, 0})});
  Expect("QUANTIZE", {x, F32({1})}, {}, {U4({8, 9, 10, 12, 8, 15, 15, 0, 0, 15, 0, 0, 8})});
  Expect("QUANTIZE", {x, F32({1}), U8({3})}, {}, {U8({3, 4, 5, 7, 3, 10, 103, 0, 0, 123, 0, 0, 3})});
  Expect("QUANTIZE", {x, F32({2}), I4({-3})}, {}, {I4({-3, -3, -2, -1, -3, 1, 7, -7, -8, 7, -8, -8, -3})});
  Expect("QUANTIZE", {F16({1, -1, 3}), F16({0.5f}), U4({1})}, {}, {U4({3, 0, 7})});
  Expect("QUANTIZE", {F32({1, 2, 3}), F16({0.5f})}, {}, {I8({2, 4, 6})});
}

TEST(QuantizeValues, Dequantize) {
  Expect("DEQUANTIZE", {U8({0, 128, 255}), F32({0.5f})}, {}, {F32({-64, 0, 63.5f})});
  Expect("DEQUANTIZE", {I8({-128, 0, 127}), F32({0.5f})}, {}, {F32({-64, 0, 63.5f})});
  Expect("DEQUANTIZE", {U4({0, 8, 15}), F32({0.5f})}, {}, {F32({-4, 0, 3.5f})});
  Expect("DEQUANTIZE", {I4({-8, 0, 7}), F32({0.5f})}, {}, {F32({-4, 0, 3.5f})});
  Expect("DEQUANTIZE", {U4({0, 8, 15}), F16({0.5f}), U4({15})}, {}, {F16({-7.5f, -3.5f, 0})});
  Expect("DEQUANTIZE", {I4({-8, 0, 7}), F32({2}), I4({-8})}, {}, {F32({0, 16, 30})});
  Expect("DEQUANTIZE", {U8({0, 255}), F32({1, 10}), U8({0, 5})}, {}, {F32({0, 2500})});
  Expect("DEQUANTIZE", {I8({-128, 127}), F16({0.099975586f}), I8({127})}, {}, {F16({-25.5f, 0})});
}

// Each parameter applies to a block, here of 2 x 2.
TEST(QuantizeValues, Blocks) {
  const std::vector<uint32_t> whole = {4, 4}, blocks = {2, 2};
  const Values scale = Shaped(F32({1, 2, 4, 8}), blocks);
  const Values quantized = Shaped(U8({1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}), whole);
  const Values zero_point = Shaped(U8({0, 1, 2, 3}), blocks);
  const Values numbers = Shaped(F32({1, 2, 4, 6, 5, 6, 12, 14, -4, 0, 0, 8, 12, 16, 32, 40}), whole);
  Expect("DEQUANTIZE", {quantized, scale, zero_point}, {}, {numbers});
  Expect("QUANTIZE", {numbers, scale, zero_point}, {}, {quantized});
  // One block per row, 4-bit elements, one zero point for all, scales transposed in memory.
  Expect("DEQUANTIZE",
         {Shaped(U4({1, 2, 3, 4, 5, 6}), {2, 3}), Shaped(F32({1, 10}), {2, 1}), Shaped(U4({1}), {1, 1})}, {},
         {Shaped(F32({0, 1, 2, 30, 40, 50}), {2, 3})});
  Expect("DEQUANTIZE",
         {Shaped(I8({1, 1, 1, 1, 1, 1, 1, 1}), {2, 4}), Shaped(F32({1, 2, 3, 4}), {2, 2}, {1, 2})}, {},
         {Shaped(F32({1, 1, 2, 2, 3, 3, 4, 4}), {2, 4})});
  // Scale and zero point with different sizes: fewer, more, and one per dimension.
  const Values row = Shaped(U8({1, 2, 3, 4, 5, 6, 7, 8}), {1, 8});
  const Values two = Shaped(F32({1, 10}), {1, 2}), four = Shaped(U8({1, 2, 3, 4}), {1, 4});
  Expect("DEQUANTIZE", {row, two, four}, {}, {Shaped(F32({0, 1, 1, 2, 20, 30, 30, 40}), {1, 8})});
  Expect("DEQUANTIZE", {row, Shaped(F32({1, 10, 100, 1000}), {1, 4}), Shaped(U8({1, 3}), {1, 2})}, {},
         {Shaped(F32({0, 1, 20, 30, 200, 300, 4000, 5000}), {1, 8})});
  Expect("DEQUANTIZE", {row, Shaped(F32({2}), {1, 1}), row}, {},
         {Shaped(F32({0, 0, 0, 0, 0, 0, 0, 0}), {1, 8})});
  Expect("DEQUANTIZE", {row, two, row}, {}, {Shaped(F32({0, 0, 0, 0, 0, 0, 0, 0}), {1, 8})});
}

// Strides count 4-bit elements. Rows of odd length have a gap of one element; stride 0 broadcasts.
TEST(QuantizeValues, StridedFourBits) {
  const Values rows = Shaped(U4({1, 2, 3, 4, 5, 6}), {2, 3}, {4, 1});
  EXPECT_EQ(rows.bytes, (Bytes{0x21, (kGap & 0xF0) | 3, 0x54, (kGap & 0xF0) | 6}));
  const Values one = Shaped(F32({1}), {1, 1}), none = Shaped(U4({0}), {1, 1});
  const Values numbers = Shaped(F32({1, 2, 3, 4, 5, 6}), {2, 3});
  Expect("DEQUANTIZE", {rows, one, none}, {}, {numbers});
  Expect("QUANTIZE", {numbers, one, none}, {}, {rows});
  Expect("QUANTIZE", {numbers, one, none}, {}, {Shaped(U4({1, 2, 3, 4, 5, 6}), {2, 3})});
  Expect("QUANTIZE", {numbers, one, none}, {}, {Shaped(U4({1, 2, 3, 4, 5, 6}), {2, 3}, {1, 2})});
  Expect("QUANTIZE", {numbers, one, none}, {}, {Shaped(U4({1, 2, 3, 4, 5, 6}), {2, 3}, {9, 3})});
  Expect("DEQUANTIZE", {Shaped(I4({-3, -3, -3, -3, -3, -3}), {2, 3}, {0, 0}), one}, {},
         {Shaped(F32({-3, -3, -3, -3, -3, -3}), {2, 3})});
  Expect("DEQUANTIZE",
         {rows, Shaped(F32({1, 1, 1, 2, 2, 2}), {2, 3}), Shaped(U4({1, 2, 3, 1, 2, 3}), {2, 3}, {0, 1})}, {},
         {Shaped(F32({0, 0, 0, 6, 6, 6}), {2, 3})});
}

TEST(QuantizeValues, QuantizedLinearAdd) {
  const char* const name = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD";
  const Values a = U8({10, 200, 0}), b = I8({-4, 100, 1}), absent;
  // 4 - 1, 99 + 25, -1 + 0.25; in FLOAT16, after 10.
  Expect(name, {a, F32({0.5f}), U8({2}), b, F32({0.25f}), absent, F32({0.5f}), U8({10})}, {},
         {U8({16, 255, 8})});
  Expect(name, {a, F32({0.5f}), absent, b, F32({0.25f}), absent, F32({0.5f}), absent}, {}, {I8({8, 127, 0})});
  Expect(name, {a, F32({0.5f}), absent, b, F32({0.25f}), I8({-4}), F32({1}), I8({-100})}, {},
         {I8({-95, 26, -99})});
  Expect(name, {a, F32({0.5f}), absent, a, F32({0.5f}), U8({255}), F32({1})}, {}, {U8({0, 72, 0})});
}

// Every FLOAT16 number with scales of all kinds: tiny, large, negative, zero, infinite.
TEST(QuantizeValues, AllHalves) {
  constexpr uint32_t kElements = 65536 + 5;
  std::vector<uint16_t> bits(kElements);
  for (uint32_t i = 0; i < kElements; ++i) bits[i] = static_cast<uint16_t>(i);
  const TensorDesc x = Packed(DataType::kFloat16, {kElements});
  const TensorDesc scales = Strided(DataType::kFloat16, {kElements}, {0});
  for (const float scale : {0.1f, -0.37f, 0.0625f, 3.0f, 0x1p-24f, 0x1.ffcp-3f, 65504.f, 0.f, -kInf, kNan}) {
    for (const DataType to : {DataType::kInt8, DataType::kUInt8}) {
      const TensorDesc zero_points = Strided(to, {kElements}, {0});
      Bytes one(scales.total_bytes), zero_point(zero_points.total_bytes);
      const uint16_t scale_bits = ToHalf(scale).bits;
      std::memcpy(one.data(), &scale_bits, sizeof(scale_bits));
      zero_point[0] = 100;
      ExpectAllAgree(MakeDesc("ELEMENT_WISE_QUANTIZE_LINEAR", {{"InputTensor", x},
                                                               {"ScaleTensor", scales},
                                                               {"ZeroPointTensor", zero_points},
                                                               {"OutputTensor", Packed(to, {kElements})}}),
                     {Scattered(x, bits), one, zero_point});
    }
  }
}

// Two elements share a byte, which only one thread may write.
TEST(QuantizeValues, FourBitsThatThreadsShare) {
  struct Sizes {
    std::vector<uint32_t> input, scale;
  };
  const Sizes kSizes[] = {
      {{70001}, {1}}, {{300, 301}, {300, 1}}, {{301, 300}, {301, 1}}, {{3, 5, 5003}, {3, 1, 1}}};
  std::mt19937_64 random(1);
  for (const Sizes& sizes : kSizes) {
    const Values x{Packed(DataType::kFloat32, sizes.input), {}},
        scale{Packed(DataType::kFloat32, sizes.scale), {}};
    const std::vector<Bytes> bytes = {RandomBytes(x.tensor, random), RandomBytes(scale.tensor, random)};
    for (const DataType type : {DataType::kUInt4, DataType::kInt4}) {
      ExpectAllAgree(Describe("QUANTIZE", {x, scale}, {}, {{Packed(type, sizes.input), {}}}), bytes);
    }
  }
}

}  // namespace
}  // namespace anydml::testing
