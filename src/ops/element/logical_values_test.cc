// Comparisons, logical operators and bit operators.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"

namespace anydml::testing {
namespace {

// The results of all five comparisons for each pair, as bits: ==, >, <, >=, <=.
void ExpectComparisons(const Values& a, const Values& b, std::initializer_list<uint8_t> answers) {
  constexpr const char* kNames[] = {
      "ELEMENT_WISE_LOGICAL_EQUALS", "ELEMENT_WISE_LOGICAL_GREATER_THAN", "ELEMENT_WISE_LOGICAL_LESS_THAN",
      "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL", "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"};
  const auto count = static_cast<uint32_t>(answers.size());
  for (size_t i = 0; i < std::size(kNames); ++i) {
    std::vector<uint8_t> bytes;
    std::vector<uint32_t> words;
    for (const uint8_t answer : answers) {
      bytes.push_back(answer >> (4 - i) & 1);
      words.push_back(answer >> (4 - i) & 1);
    }
    const TensorDesc narrow = Packed(DataType::kUInt8, {count}), wide = Packed(DataType::kUInt32, {count});
    Expect(kNames[i], {a, b}, {}, {{narrow, Scattered(narrow, bytes)}});
    Expect(kNames[i], {a, b}, {}, {{wide, Scattered(wide, words)}});
  }
}

constexpr uint8_t kEqual = 0b10011, kMore = 0b01010, kLess = 0b00101, kNone = 0;

TEST(LogicalValues, Comparisons) {
  ExpectComparisons(F32({1, 2, -1, 0, kInf, -kInf, kNan, 1, kNan, 1e-45f}),
                    F32({1, 1, 1, -0.0f, kInf, kInf, 1, kNan, kNan, 0}),
                    {kEqual, kMore, kLess, kEqual, kEqual, kLess, kNone, kNone, kNone, kMore});
  ExpectComparisons(F16({1, -0.0f, kNan, 5.9604645e-8f}), F16({2, 0, kNan, 0}),
                    {kLess, kEqual, kNone, kMore});
  ExpectComparisons(I32({16777217, INT32_MIN, -1}), I32({16777216, INT32_MAX, -1}), {kMore, kLess, kEqual});
  ExpectComparisons(U32({0x80000000, UINT32_MAX, 3}), U32({1, UINT32_MAX, 4}), {kMore, kEqual, kLess});
  ExpectComparisons(I8({-128, 5}), I8({127, 5}), {kLess, kEqual});
  ExpectComparisons(U8({128, 5}), U8({127, 5}), {kMore, kEqual});
  ExpectComparisons(I16({-32768}), I16({1}), {kLess});
  ExpectComparisons(U16({32768}), U16({1}), {kMore});
  ExpectComparisons(I64({9007199254740993, INT64_MIN, -1}), I64({9007199254740992, 0, -1}),
                    {kMore, kLess, kEqual});
  ExpectComparisons(U64({UINT64_MAX, 9007199254740993, 7}), U64({1, 9007199254740994, 7}),
                    {kMore, kLess, kEqual});
}

// Nonzero means true; the result is 0 or 1.
TEST(LogicalValues, TruthValues) {
  const Values a = U8({0, 0, 2, 255, 128}), b = U8({0, 3, 0, 1, 64});
  Expect("ELEMENT_WISE_LOGICAL_AND", {a, b}, {}, {U8({0, 0, 0, 1, 1})});
  Expect("ELEMENT_WISE_LOGICAL_OR", {a, b}, {}, {U8({0, 1, 1, 1, 1})});
  Expect("ELEMENT_WISE_LOGICAL_XOR", {a, b}, {}, {U8({0, 1, 1, 0, 0})});
  Expect("ELEMENT_WISE_LOGICAL_NOT", {a}, {}, {U8({1, 1, 0, 0, 0})});
  const Values c = U32({0, 0, 0x80000000, 256}), d = U32({0, 0x10000, 0, 512});
  Expect("ELEMENT_WISE_LOGICAL_AND", {c, d}, {}, {U32({0, 0, 0, 1})});
  Expect("ELEMENT_WISE_LOGICAL_OR", {c, d}, {}, {U32({0, 1, 1, 1})});
  Expect("ELEMENT_WISE_LOGICAL_XOR", {c, d}, {}, {U32({0, 1, 1, 0})});
  Expect("ELEMENT_WISE_LOGICAL_NOT", {c}, {}, {U32({1, 1, 0, 0})});
}

TEST(LogicalValues, NanAndInfinity) {
  const Values x = F32Bits({0x7FC00000, 0xFF800001, 0x7F800000, 0xFF800000, 0, 0x7F7FFFFF});
  Expect("ELEMENT_WISE_IS_NAN", {x}, {}, {U8({1, 1, 0, 0, 0, 0})});
  Expect("ELEMENT_WISE_IS_NAN", {x}, {}, {U32({1, 1, 0, 0, 0, 0})});
  Expect("ELEMENT_WISE_IS_NAN", {F16Bits({0x7C01, 0xFE00, 0x7C00, 0x7BFF})}, {}, {U8({1, 1, 0, 0})});
  Expect("ELEMENT_WISE_IS_INFINITY", {x}, {{"InfinityMode", 0u}}, {U8({0, 0, 1, 1, 0, 0})});
  Expect("ELEMENT_WISE_IS_INFINITY", {x}, {{"InfinityMode", 1u}}, {U8({0, 0, 1, 0, 0, 0})});
  Expect("ELEMENT_WISE_IS_INFINITY", {x}, {{"InfinityMode", 2u}}, {U8({0, 0, 0, 1, 0, 0})});
  const Values halves = F16Bits({0x7C00, 0xFC00, 0x7C01, 0x7BFF});
  Expect("ELEMENT_WISE_IS_INFINITY", {halves}, {{"InfinityMode", 0u}}, {U8({1, 1, 0, 0})});
  Expect("ELEMENT_WISE_IS_INFINITY", {halves}, {{"InfinityMode", 1u}}, {U8({1, 0, 0, 0})});
  Expect("ELEMENT_WISE_IS_INFINITY", {halves}, {{"InfinityMode", 2u}}, {U8({0, 1, 0, 0})});
}

// They act on the stored bits, for any type.
TEST(LogicalValues, Bits) {
  Expect("ELEMENT_WISE_BIT_AND", {U8({0xF0, 0xFF}), U8({0x3C, 0x0F})}, {}, {U8({0x30, 0x0F})});
  Expect("ELEMENT_WISE_BIT_OR", {U16({0xF000, 0x0001}), U16({0x3C00, 0x8000})}, {}, {U16({0xFC00, 0x8001})});
  Expect("ELEMENT_WISE_BIT_XOR", {U32({0xFFFF0000, 5}), U32({0xF0F0F0F0, 5})}, {}, {U32({0x0F0FF0F0, 0})});
  Expect("ELEMENT_WISE_BIT_NOT", {U8({0, 0x5A})}, {}, {U8({0xFF, 0xA5})});
  Expect("ELEMENT_WISE_BIT_NOT", {I16({0, -1, 5})}, {}, {I16({-1, 0, -6})});
  Expect("ELEMENT_WISE_BIT_NOT", {U64({0, 0x00FF00FF00FF00FF})}, {}, {U64({UINT64_MAX, 0xFF00FF00FF00FF00})});
  Expect("ELEMENT_WISE_BIT_XOR", {I64({-1, INT64_MIN}), I64({1, -1})}, {}, {I64({-2, INT64_MAX})});
  Expect("ELEMENT_WISE_BIT_AND", {F32Bits({0xBF800000, 0x7F800001}), F32Bits({0x7FFFFFFF, 0xFFFFFFFF})}, {},
         {F32Bits({0x3F800000, 0x7F800001})});
  Expect("ELEMENT_WISE_BIT_OR", {F16Bits({0x3C00}), F16Bits({0x8001})}, {}, {F16Bits({0xBC01})});
  Expect("ELEMENT_WISE_BIT_XOR", {F64Bits({0x3FF0000000000000}), F64Bits({0x8000000000000001})}, {},
         {F64Bits({0xBFF0000000000001})});
  Expect("ELEMENT_WISE_BIT_NOT", {F32Bits({0x3F800000})}, {}, {F32Bits({0xC07FFFFF})});
  Expect("ELEMENT_WISE_BIT_COUNT", {U8({0, 255, 0x81})}, {}, {U8({0, 8, 2})});
  Expect("ELEMENT_WISE_BIT_COUNT", {I8({-1, -128})}, {}, {U32({8, 1})});
  Expect("ELEMENT_WISE_BIT_COUNT", {I16({-1, 3})}, {}, {U8({16, 2})});
  Expect("ELEMENT_WISE_BIT_COUNT", {F32Bits({0xBF800000, 0xFFFFFFFF})}, {}, {U32({8, 32})});
  Expect("ELEMENT_WISE_BIT_COUNT", {F16Bits({0xFC00})}, {}, {U8({6})});
  Expect("ELEMENT_WISE_BIT_COUNT", {I64({-1, INT64_MIN, 0})}, {}, {U8({64, 1, 0})});
  Expect("ELEMENT_WISE_BIT_COUNT", {F64Bits({0xBFF0000000000001})}, {}, {U32({12})});
}

// Shift amounts are modulo the width. Right shifts insert zeros.
TEST(LogicalValues, Shifts) {
  Expect("ELEMENT_WISE_BIT_SHIFT_LEFT", {U32({1, 1, 1, 3, 5}), U32({31, 32, 33, 31, 255})}, {},
         {U32({0x80000000, 1, 2, 0x80000000, 0x80000000})});
  Expect("ELEMENT_WISE_BIT_SHIFT_RIGHT", {U32({0x80000000, 0x80000000, 7, 7}), U32({31, 32, 33, 0xFFFFFFE1})},
         {}, {U32({1, 0x80000000, 3, 3})});
  Expect("ELEMENT_WISE_BIT_SHIFT_LEFT", {U8({0x81, 3, 3, 1}), U8({1, 8, 9, 255})}, {}, {U8({2, 3, 6, 0x80})});
  Expect("ELEMENT_WISE_BIT_SHIFT_RIGHT", {U8({0x81, 0xFF, 0xFF}), U8({1, 8, 15})}, {}, {U8({0x40, 0xFF, 1})});
  Expect("ELEMENT_WISE_BIT_SHIFT_LEFT", {U16({0xFFFF, 5}), U16({4, 16})}, {}, {U16({0xFFF0, 5})});
  Expect("ELEMENT_WISE_BIT_SHIFT_RIGHT", {U16({0x8000, 5}), U16({15, 17})}, {}, {U16({1, 2})});
  Expect("ELEMENT_WISE_BIT_SHIFT_LEFT", {U64({1, 1, 3}), U64({63, 64, 32})}, {},
         {U64({0x8000000000000000, 1, 0x300000000})});
  Expect("ELEMENT_WISE_BIT_SHIFT_RIGHT", {U64({0x8000000000000000, 9}), U64({63, 65})}, {}, {U64({1, 4})});
}

}  // namespace
}  // namespace anydml::testing
