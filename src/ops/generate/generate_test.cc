// The generators against the examples of DirectML's pages, published numbers and results computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;
using Words = std::vector<uint32_t>;
using Sizes = std::vector<uint32_t>;

template <typename T>
Scalar ScalarOf(T value) {
  Scalar scalar{};
  std::memcpy(scalar.bytes.data(), &value, sizeof(T));
  return scalar;
}

template <typename T>
std::vector<T> Values(const OperatorDesc& desc, const std::vector<Bytes>& inputs = {}) {
  return Gathered<T>(*desc.tensor("OutputTensor"), ExpectAllAgree(desc, inputs).outputs[0]);
}

OperatorDesc Constant(const TensorDesc& output, const Scalar& value) {
  return MakeDesc(
      "FILL_VALUE_CONSTANT",
      {{"OutputTensor", output}, {"ValueDataType", static_cast<uint32_t>(output.type)}, {"Value", value}});
}

template <typename T>
std::vector<T> Sequence(DataType type, const Sizes& sizes, T start, T delta) {
  return Values<T>(MakeDesc("FILL_VALUE_SEQUENCE", {{"OutputTensor", Packed(type, sizes)},
                                                    {"ValueDataType", static_cast<uint32_t>(type)},
                                                    {"ValueStart", ScalarOf(start)},
                                                    {"ValueDelta", ScalarOf(delta)}}));
}

TEST(FillValueConstant, EveryElement) {
  EXPECT_EQ(Values<float>(Constant(Packed(DataType::kFloat32, {2, 3}), ScalarOf(2.5f))), Floats(6, 2.5f));
  EXPECT_EQ(Values<int64_t>(Constant(Packed(DataType::kInt64, {5}), ScalarOf(int64_t{-7}))),
            std::vector<int64_t>(5, -7));
  EXPECT_EQ(Values<uint8_t>(Constant(Packed(DataType::kUInt8, {70}), ScalarOf(uint8_t{9}))),
            std::vector<uint8_t>(70, 9));
}

TEST(FillValueSequence, PageExamples) {
  EXPECT_EQ(Sequence<float>(DataType::kFloat32, {1, 1, 1, 3}, 3, 2), (Floats{3, 5, 7}));
  EXPECT_EQ(Sequence<uint8_t>(DataType::kUInt8, {1, 1, 2, 2}, 10, static_cast<uint8_t>(-2)),
            (std::vector<uint8_t>{10, 8, 6, 4}));
}

TEST(FillValueSequence, WrapsAndRounds) {
  EXPECT_EQ(Sequence<uint8_t>(DataType::kUInt8, {4}, 250, 4), (std::vector<uint8_t>{250, 254, 2, 6}));
  EXPECT_EQ(Sequence<int64_t>(DataType::kInt64, {3}, INT64_MAX, 1),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MIN + 1}));
  // Not accumulated: 0.1f * 3 is rounded once.
  EXPECT_EQ(Sequence<float>(DataType::kFloat32, {4}, 0, 0.1f)[3], 0.1f * 3);
  // 1/1024 is the spacing of FLOAT16 from 1 to 2; every second step of half of it is a tie and rounds to
  // even.
  const auto half = [](float x) { return ToHalf(x).bits; };
  EXPECT_EQ(Sequence<uint16_t>(DataType::kFloat16, {4}, half(1), half(0x1p-11f)),
            (std::vector<uint16_t>{half(1), half(1), half(1 + 0x1p-10f), half(1 + 0x1p-9f)}));
  // Infinity times 0 is NaN.
  EXPECT_TRUE(std::isnan(Sequence<float>(DataType::kFloat32, {2}, 0, INFINITY)[0]));
}

Floats Diagonal(const Sizes& sizes, int32_t offset, float value) {
  return Values<float>(
      MakeDesc("DIAGONAL_MATRIX",
               {{"OutputTensor", Packed(DataType::kFloat32, sizes)}, {"Offset", offset}, {"Value", value}}));
}

TEST(DiagonalMatrix, PageExamples) {
  EXPECT_EQ(Diagonal({1, 1, 3, 3}, 0, 1), (Floats{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(Diagonal({1, 1, 3, 3}, 1, 1), (Floats{0, 1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(Diagonal({1, 1, 3, 2}, -1, 1), (Floats{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(Diagonal({1, 1, 3, 2}, -3, 1), (Floats(6, 0)));
  EXPECT_EQ(Diagonal({2, 2}, INT32_MAX, 1), (Floats(4, 0)));
}

TEST(DiagonalMatrix, IntegersAreTruncatedAndSaturated) {
  const auto diagonal = [](DataType type, float value) {
    return MakeDesc("DIAGONAL_MATRIX",
                    {{"OutputTensor", Packed(type, {1, 1})}, {"Offset", 0}, {"Value", value}});
  };
  EXPECT_EQ(Values<int32_t>(diagonal(DataType::kInt32, 10.6f))[0], 10);
  EXPECT_EQ(Values<int8_t>(diagonal(DataType::kInt8, -10.6f))[0], -10);
  EXPECT_EQ(Values<uint8_t>(diagonal(DataType::kUInt8, 300))[0], 255);
  EXPECT_EQ(Values<double>(diagonal(DataType::kFloat64, 0.5f))[0], 0.5);
}

// 1 to 9 in a square; 0 where it is filled.
Floats Band(int32_t begin, int32_t end) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {3, 3});
  return Values<float>(MakeDesc("DIAGONAL_MATRIX1", {{"InputTensor", tensor},
                                                     {"OutputTensor", tensor},
                                                     {"ValueDataType", 1u},
                                                     {"Value", ScalarOf(0.0f)},
                                                     {"DiagonalFillBegin", begin},
                                                     {"DiagonalFillEnd", end}}),
                       {Scattered<float>(tensor, {1, 2, 3, 4, 5, 6, 7, 8, 9})});
}

TEST(DiagonalMatrix1, Bands) {
  EXPECT_EQ(Band(0, 1), (Floats{0, 2, 3, 4, 0, 6, 7, 8, 0}));
  EXPECT_EQ(Band(INT32_MIN, 0), (Floats{1, 2, 3, 0, 5, 6, 0, 0, 9}));  // the upper triangle stays
  EXPECT_EQ(Band(1, INT32_MAX), (Floats{1, 0, 0, 4, 5, 0, 7, 8, 9}));  // the lower one
  EXPECT_EQ(Band(0, 0), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 9}));          // nothing is filled
  EXPECT_EQ(Band(1, 0), (Floats{1, 0, 0, 0, 5, 0, 0, 0, 9}));          // all but [0, 1)
  EXPECT_EQ(Band(INT32_MIN, INT32_MAX), Floats(9, 0));
}

struct Random {
  Words words;
  Words state;
};

Random Generate(const Words& state_words, const Sizes& sizes) {
  const TensorDesc state = Packed(DataType::kUInt32, {1, 1, 1, 6}), output = Packed(DataType::kUInt32, sizes);
  const RunResult result = ExpectAllAgree(MakeDesc("RANDOM_GENERATOR", {{"InputStateTensor", state},
                                                                        {"OutputTensor", output},
                                                                        {"OutputStateTensor", state},
                                                                        {"Type", 0u}}),
                                          {Scattered(state, state_words)});
  return {Gathered<uint32_t>(output, result.outputs[0]), Gathered<uint32_t>(state, result.outputs[1])};
}

// The test vectors published with the algorithm.
TEST(RandomGenerator, KnownAnswers) {
  EXPECT_EQ(Generate({0, 0, 0, 0, 0, 0}, {4}).words, (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(Generate({kOnes, kOnes, kOnes, kOnes, kOnes, kOnes}, {4}).words,
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Generate({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0}, {4}).words,
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomGenerator, GoesOnWhereItStopped) {
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  const Words state = {kOnes - 2, kOnes, kOnes, kOnes, 7, 8};
  const Random whole = Generate(state, {1, 5, 4}), first = Generate(state, {7}),
               second = Generate(first.state, {12});
  EXPECT_EQ(first.state, (Words{kOnes, kOnes, kOnes, kOnes, 7, 8}));
  EXPECT_EQ(second.state, (Words{2, 0, 0, 0, 7, 8}));  // modulo 2^128
  EXPECT_EQ(whole.state, second.state);
  EXPECT_EQ(Words(whole.words.begin(), whole.words.begin() + 7), first.words);
  EXPECT_EQ(Words(whole.words.begin() + 8, whole.words.end()), second.words);
}

// The page's counter and number of elements; the page subtracts where it says it adds.
TEST(RandomGenerator, PageExampleOfTheState) {
  const Random random = Generate({0x74746c65, 0x6d536561, 0x6f46726f, 0x48656c6c, 1, 2}, {3, 3, 20, 7219});
  EXPECT_EQ(random.state, (Words{0x7479615c, 0x6d536561, 0x6f46726f, 0x48656c6c, 1, 2}));
}

TEST(GenerateInfer, WhatNothingElseSaysMustBeGiven) {
  OperatorDesc desc = Constant({}, ScalarOf(1.0f));
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).message(),
            "FILL_VALUE_CONSTANT: OutputTensor must be given with its sizes and its data type: nothing else "
            "determines them");
  desc = MakeDesc("RANDOM_GENERATOR", {{"InputStateTensor", Packed(DataType::kUInt32, {1, 6})},
                                       {"OutputTensor", Packed(DataType::kUInt32, {2, 3})},
                                       {"Type", 0u}});
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).message(), "");
  EXPECT_EQ(SizesToString(*desc.tensor("OutputStateTensor")), "{1,6}");
}

TEST(RandomGeneratorCheck, Refusals) {
  const OperatorDesc desc =
      MakeDesc("RANDOM_GENERATOR", {{"InputStateTensor", Packed(DataType::kUInt32, {1, 4})},
                                    {"OutputTensor", Packed(DataType::kUInt32, {1, 4})},
                                    {"Type", 0u}});
  EXPECT_EQ(
      ImplementationOf(desc).check(desc, kLatestFeatureLevel).message(),
      "RANDOM_GENERATOR: InputStateTensor.Sizes is {1,4} but must be {1,6}: a counter of four words and "
      "a key of two");
}

}  // namespace
}  // namespace anydml::testing
