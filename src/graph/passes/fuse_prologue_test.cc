// Element-wise work in blocks for a reduction gives the same results as on the whole tensor.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/half.h"
#include "graph/passes/graph_under_test.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

Bytes SmallNumbers(const TensorDesc& tensor, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(tensor.total_bytes);
  const uint64_t width = BitSize(tensor.type) / 8;
  for (uint64_t i = 0; (i + 1) * width <= bytes.size(); ++i) {
    const float number = static_cast<float>(random() % 2001) / 1000 - 1;
    const uint16_t half = ToHalf(number).bits;
    std::memcpy(&bytes[i * width], width == 2 ? static_cast<const void*>(&half) : &number, width);
  }
  return bytes;
}

struct Prologue {
  GraphUnderTest test;
  uint32_t sum = kNoValue;
};

// a + b, read by `reader`.
Prologue MakePrologue(const TensorDesc& a, const TensorDesc& b, const OperatorDesc& reader,
                      const std::vector<TensorDesc>& others = {}) {
  Prologue result;
  GraphUnderTest& test = result.test;
  const TensorDesc& read = *reader.inputs()[0];
  const uint32_t x = test.Input(SmallNumbers(a, 1)), y = test.Input(SmallNumbers(b, 2));
  result.sum = test.Node(
      MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", a}, {"BTensor", b}, {"OutputTensor", read}}), {x, y})[0];
  std::vector<uint32_t> inputs = {result.sum};
  for (uint32_t i = 0; i < others.size(); ++i) inputs.push_back(test.Input(SmallNumbers(others[i], 3 + i)));
  test.Output(test.Node(reader, inputs)[0]);
  return result;
}

bool IsByBlocks(const Result& result) { return result.made_of.find("cpu.row_blocks") != std::string::npos; }

void ExpectByBlocks(const GraphUnderTest& test) {
  const Result want = RunGraph(test, "all");
  LowerContext context;
  for (const uint32_t threads : {1, 3}) {
    context.threads = threads;
    const Result got = RunGraph(test, "", context);
    EXPECT_TRUE(IsByBlocks(got)) << got.explanation;
    EXPECT_TRUE(got.outputs == want.outputs) << got.explanation;
  }
  const Result without = RunGraph(test, "prologue");
  EXPECT_FALSE(IsByBlocks(without)) << without.explanation;
}

void ExpectWhole(const GraphUnderTest& test) {
  const Result got = RunGraph(test, "");
  EXPECT_FALSE(IsByBlocks(got)) << got.explanation;
  EXPECT_TRUE(got.outputs == RunGraph(test, "all").outputs) << got.explanation;
}

constexpr uint32_t kSum = 10;  // DML_REDUCE_FUNCTION_SUM

OperatorDesc Reduction(uint32_t function, const TensorDesc& from, const TensorDesc& to,
                       const std::vector<uint32_t>& axes) {
  return MakeDesc("REDUCE",
                  {{"Function", function}, {"InputTensor", from}, {"OutputTensor", to}, {"Axes", axes}});
}

// Blocks and the remainder after them: means, lengths, maxima, sums.
TEST(FusePrologue, Reductions) {
  const TensorDesc cube = Packed(DataType::kFloat32, {3, 53, 1000});
  const TensorDesc rows = Packed(DataType::kFloat32, {3, 53, 1});
  for (const uint32_t function : {2u, 4u, 7u, kSum}) {
    ExpectByBlocks(MakePrologue(cube, cube, Reduction(function, cube, rows, {2})).test);
  }
  const TensorDesc planes = Packed(DataType::kFloat32, {3, 1, 1000});
  ExpectByBlocks(MakePrologue(cube, cube, Reduction(kSum, cube, planes, {1})).test);
  // All outer loops are the reader's axis.
  ExpectWhole(
      MakePrologue(cube, cube, Reduction(kSum, cube, Packed(DataType::kFloat32, {1, 53, 1000}), {0})).test);
}

TEST(FusePrologue, BroadcastsTransposesAndGaps) {
  const TensorDesc cube = Packed(DataType::kFloat32, {3, 53, 1000});
  const TensorDesc across = Strided(DataType::kFloat32, {3, 53, 1000}, {53000, 1, 53});
  const TensorDesc apart = Strided(DataType::kFloat32, {3, 53, 1}, {120, 2, 1});
  for (const auto& strides :
       {std::vector<uint32_t>{0, 0, 1}, {1000, 0, 1}, {0, 1, 0}, {0, 0, 0}, {53, 1, 0}}) {
    const TensorDesc repeated = Strided(DataType::kFloat32, {3, 53, 1000}, strides);
    ExpectByBlocks(MakePrologue(across, repeated, Reduction(kSum, cube, apart, {2})).test);
  }
}

TEST(FusePrologue, SoftmaxOfHalves) {
  const TensorDesc halves = Packed(DataType::kFloat16, {2, 3, 100, 500});
  ExpectByBlocks(MakePrologue(halves, halves,
                              MakeDesc("ACTIVATION_SOFTMAX1", {{"InputTensor", halves},
                                                               {"OutputTensor", halves},
                                                               {"Axes", std::vector<uint32_t>{3}}}))
                     .test);
}

TEST(FusePrologue, NormalisationsWithScales) {
  const TensorDesc words = Packed(DataType::kFloat32, {1, 2, 100, 768});
  const TensorDesc row = Strided(DataType::kFloat32, {1, 2, 100, 768}, {0, 0, 0, 1});
  ExpectByBlocks(MakePrologue(words, words,
                              MakeDesc("MEAN_VARIANCE_NORMALIZATION1", {{"InputTensor", words},
                                                                        {"ScaleTensor", row},
                                                                        {"BiasTensor", row},
                                                                        {"OutputTensor", words},
                                                                        {"Axes", std::vector<uint32_t>{3}},
                                                                        {"NormalizeVariance", uint32_t{1}},
                                                                        {"Epsilon", 1e-5f}}),
                              {row, row})
                     .test);
}

TEST(FusePrologue, WhatOthersReadOrIsSmallStays) {
  const TensorDesc cube = Packed(DataType::kFloat32, {3, 53, 1000});
  Prologue shared =
      MakePrologue(cube, cube, Reduction(kSum, cube, Packed(DataType::kFloat32, {3, 53, 1}), {2}));
  shared.test.Output(shared.sum);
  ExpectWhole(shared.test);
  const TensorDesc small = Packed(DataType::kFloat32, {3, 5, 10});
  ExpectWhole(
      MakePrologue(small, small, Reduction(kSum, small, Packed(DataType::kFloat32, {3, 5, 1}), {2})).test);
}

}  // namespace
}  // namespace anydml::testing
