// REDUCE, ARGMIN and ARGMAX against results computed by hand, the examples of DirectML's pages, and closed
// forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "schema/descriptions.generated.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

OperatorDesc Reduce(ReduceFunction function, const TensorDesc& input, const TensorDesc& output,
                    const std::vector<uint32_t>& axes) {
  return MakeDesc("REDUCE", {{"Function", static_cast<uint32_t>(function)},
                             {"InputTensor", input},
                             {"OutputTensor", output},
                             {"AxisCount", static_cast<uint32_t>(axes.size())},
                             {"Axes", axes}});
}

OperatorDesc Arg(const char* name, const TensorDesc& input, const TensorDesc& output,
                 const std::vector<uint32_t>& axes, AxisDirection direction = AxisDirection::kIncreasing) {
  return MakeDesc(name, {{"InputTensor", input},
                         {"OutputTensor", output},
                         {"AxisCount", static_cast<uint32_t>(axes.size())},
                         {"Axes", axes},
                         {"AxisDirection", static_cast<uint32_t>(direction)}});
}

template <typename T>
std::vector<T> Outcome(const OperatorDesc& desc, const Bytes& input) {
  return Gathered<T>(*desc.outputs()[0], ExpectAllAgree(desc, {input}).outputs[0]);
}

std::vector<float> ReduceAll(ReduceFunction function, const std::vector<float>& numbers) {
  const TensorDesc input = Packed(DataType::kFloat32, {static_cast<uint32_t>(numbers.size())});
  return Outcome<float>(Reduce(function, input, Packed(DataType::kFloat32, {1}), {0}),
                        Scattered(input, numbers));
}

// The page's input for REDUCE and, except for duplicates, for ARGMAX.
const std::vector<float> kPage = {1, 2, 3, 3, 0, 4, 2, 5, 2};

TEST(Reduce, PageExample) {
  const TensorDesc input = Packed(DataType::kFloat32, {1, 1, 3, 3});
  const Bytes bytes = Scattered(input, kPage);
  const auto sum = [&](const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& axes) {
    return Outcome<float>(Reduce(ReduceFunction::kSum, input, Packed(DataType::kFloat32, sizes), axes),
                          bytes);
  };
  EXPECT_EQ(sum({1, 1, 1, 3}, {2}), (std::vector<float>{6, 7, 9}));
  EXPECT_EQ(sum({1, 1, 3, 1}, {3}), (std::vector<float>{6, 7, 9}));
  EXPECT_EQ(sum({1, 1, 1, 1}, {3, 2}), (std::vector<float>{22}));
  EXPECT_EQ(sum({1, 1, 3, 3}, {}), kPage);
}

TEST(Reduce, EveryFunction) {
  const std::vector<float> x = {3, -4, 12};
  EXPECT_EQ(ReduceAll(ReduceFunction::kSum, x)[0], 11);
  EXPECT_EQ(ReduceAll(ReduceFunction::kAverage, x)[0], 11.0f / 3);
  EXPECT_EQ(ReduceAll(ReduceFunction::kL1, x)[0], 19);
  EXPECT_EQ(ReduceAll(ReduceFunction::kL2, x)[0], 13);
  EXPECT_EQ(ReduceAll(ReduceFunction::kSumSquare, x)[0], 169);
  EXPECT_EQ(ReduceAll(ReduceFunction::kMax, x)[0], 12);
  EXPECT_EQ(ReduceAll(ReduceFunction::kMin, x)[0], -4);
  EXPECT_EQ(ReduceAll(ReduceFunction::kMultiply, x)[0], -144);
  EXPECT_FLOAT_EQ(ReduceAll(ReduceFunction::kLogSum, x)[0], std::log(11.0f));
  EXPECT_FLOAT_EQ(ReduceAll(ReduceFunction::kLogSumExp, {1, 1, 1, 1})[0], 1 + std::log(4.0f));
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  EXPECT_FLOAT_EQ(ReduceAll(ReduceFunction::kLogSumExp, {1000, 1000})[0], 1000 + std::log(2.0f));
  EXPECT_FLOAT_EQ(ReduceAll(ReduceFunction::kLogSumExp, {-1000, -1000})[0], -1000 + std::log(2.0f));
  EXPECT_EQ(ReduceAll(ReduceFunction::kLogSumExp, {-INFINITY, -INFINITY})[0], -INFINITY);
  EXPECT_EQ(ReduceAll(ReduceFunction::kLogSumExp, {-INFINITY, 2})[0], 2);
  EXPECT_EQ(ReduceAll(ReduceFunction::kLogSumExp, {INFINITY, -INFINITY, 3, INFINITY})[0], INFINITY);
  EXPECT_TRUE(std::isnan(ReduceAll(ReduceFunction::kLogSumExp, {NAN, INFINITY})[0]));
  EXPECT_TRUE(std::isnan(ReduceAll(ReduceFunction::kLogSum, {1, -2})[0]));
}

// Enough numbers for vectors; the decisive number is tried at every position.
TEST(Reduce, NansAndZerosOfExtremes) {
  for (uint32_t at = 0; at < 40; ++at) {
    std::vector<float> zeros(40, -0.0f);
    zeros[at] = 0;
    EXPECT_FALSE(std::signbit(ReduceAll(ReduceFunction::kMax, zeros)[0])) << at;
    for (float& x : zeros) x = -x;
    EXPECT_TRUE(std::signbit(ReduceAll(ReduceFunction::kMin, zeros)[0])) << at;
    for (const float nan : {NAN, -NAN}) {
      std::vector<float> numbers(40, INFINITY);
      numbers[at] = nan;
      EXPECT_EQ(std::bit_cast<uint32_t>(ReduceAll(ReduceFunction::kMax, numbers)[0]), 0x7FC00000u) << at;
      EXPECT_EQ(std::bit_cast<uint32_t>(ReduceAll(ReduceFunction::kMin, numbers)[0]), 0x7FC00000u) << at;
    }
  }
}

TEST(Reduce, NoAxes) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {2, 2});
  const Bytes bytes = Scattered<float>(tensor, {-2, 3, 0.5f, 1});
  const auto each = [&](ReduceFunction function) {
    return Outcome<float>(Reduce(function, tensor, tensor, {}), bytes);
  };
  EXPECT_EQ(each(ReduceFunction::kL1), (std::vector<float>{2, 3, 0.5f, 1}));
  EXPECT_EQ(each(ReduceFunction::kL2), (std::vector<float>{2, 3, 0.5f, 1}));
  EXPECT_EQ(each(ReduceFunction::kSumSquare), (std::vector<float>{4, 9, 0.25f, 1}));
  EXPECT_EQ(each(ReduceFunction::kLogSumExp), (std::vector<float>{-2, 3, 0.5f, 1}));
  EXPECT_EQ(Outcome<uint32_t>(Reduce(ReduceFunction::kArgmax, tensor, Packed(DataType::kUInt32, {2, 2}), {}),
                              bytes),
            (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST(Reduce, IntegersWrap) {
  const TensorDesc input = Packed(DataType::kInt32, {3}), output = Packed(DataType::kInt32, {1});
  const Bytes bytes = Scattered<int32_t>(input, {INT32_MAX, INT32_MIN, 3});
  const auto result = [&](ReduceFunction function) {
    return Outcome<int32_t>(Reduce(function, input, output, {0}), bytes)[0];
  };
  EXPECT_EQ(result(ReduceFunction::kSum), 2);
  EXPECT_EQ(result(ReduceFunction::kL1), 2);  // 2^31 - 1 + 2^31 + 3
  EXPECT_EQ(result(ReduceFunction::kSumSquare), 1 + 0 + 9);
  EXPECT_EQ(result(ReduceFunction::kMultiply), INT32_MIN);
  EXPECT_EQ(result(ReduceFunction::kMax), INT32_MAX);
  EXPECT_EQ(result(ReduceFunction::kMin), INT32_MIN);
}

// FLOAT16 cannot hold 300 squared, nor the sum of 64 times 2048 before it is divided.
TEST(Reduce, HalvesAddInFloat32) {
  const TensorDesc input = Packed(DataType::kFloat16, {64}), output = Packed(DataType::kFloat16, {1});
  const auto result = [&](ReduceFunction function, float x) {
    const Bytes bytes = Scattered(input, std::vector<Half>(64, ToHalf(x)));
    return ToFloat(Outcome<Half>(Reduce(function, input, output, {0}), bytes)[0]);
  };
  EXPECT_EQ(result(ReduceFunction::kL2, 300), 2400);
  EXPECT_EQ(result(ReduceFunction::kAverage, 2048), 2048);
  EXPECT_EQ(result(ReduceFunction::kSum, 2048), INFINITY);
}

// n (n + 1) / 2, over more elements than a segment, block or tile has.
TEST(Reduce, SumsOfManyNumbers) {
  constexpr uint32_t kRows = 700, kColumns = 600;
  const TensorDesc input = Packed(DataType::kUInt32, {kRows, kColumns});
  std::vector<uint32_t> numbers(kRows * kColumns);
  std::iota(numbers.begin(), numbers.end(), 1);
  const Bytes bytes = Scattered(input, numbers);
  const uint64_t n = numbers.size();
  EXPECT_EQ(Outcome<uint32_t>(Reduce(ReduceFunction::kSum, input, Packed(DataType::kUInt32, {1, 1}), {0, 1}),
                              bytes)[0],
            static_cast<uint32_t>(n * (n + 1) / 2));
  const TensorDesc floats = Packed(DataType::kFloat32, {kRows, kColumns});
  std::vector<float> columns(n);
  for (uint64_t i = 0; i < n; ++i) columns[i] = static_cast<float>(i % kColumns);
  const auto sums =
      Outcome<float>(Reduce(ReduceFunction::kSum, floats, Packed(DataType::kFloat32, {1, kColumns}), {0}),
                     Scattered(floats, columns));
  for (uint32_t c = 0; c < kColumns; ++c) EXPECT_EQ(sums[c], static_cast<float>(kRows * c));
}

// Columns in one segment and in several, with and without positions.
TEST(Reduce, LongColumns) {
  for (const uint32_t rows : {200u, 1500u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      const TensorDesc input = Packed(type, {rows, 264}), output = Packed(type, {1, 264});
      std::vector<float> numbers(size_t{rows} * 264);
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 7 % 11) - 5;
      std::vector<Half> halves(numbers.size());
      std::transform(numbers.begin(), numbers.end(), halves.begin(), [](float x) { return ToHalf(x); });
      const Bytes bytes = type == DataType::kFloat16 ? Scattered(input, halves) : Scattered(input, numbers);
      for (const ReduceFunction function :
           {ReduceFunction::kSum, ReduceFunction::kMax, ReduceFunction::kLogSumExp}) {
        ExpectAllAgree(Reduce(function, input, output, {0}), {bytes});
      }
      ExpectAllAgree(Arg("ARGMAX", input, Packed(DataType::kUInt32, {1, 264}), {0}), {bytes});
    }
  }
}

TEST(Arg, PageExamples) {
  const TensorDesc input = Packed(DataType::kFloat32, {1, 1, 3, 3});
  const Bytes bytes = Scattered(input, kPage);
  const auto arg = [&](const char* name, const std::vector<uint32_t>& sizes,
                       const std::vector<uint32_t>& axes) {
    return Outcome<uint32_t>(Arg(name, input, Packed(DataType::kUInt32, sizes), axes), bytes);
  };
  EXPECT_EQ(arg("ARGMAX", {1, 1, 1, 3}, {2}), (std::vector<uint32_t>{1, 2, 1}));
  EXPECT_EQ(arg("ARGMAX", {1, 1, 3, 1}, {3}), (std::vector<uint32_t>{2, 2, 1}));
  EXPECT_EQ(arg("ARGMAX", {1, 1, 1, 1}, {2, 3}), (std::vector<uint32_t>{7}));
  EXPECT_EQ(arg("ARGMAX", {1, 1, 1, 1}, {3, 2}), (std::vector<uint32_t>{7}));
  EXPECT_EQ(arg("ARGMIN", {1, 1, 1, 3}, {2}), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(arg("ARGMIN", {1, 1, 1, 1}, {2, 3}), (std::vector<uint32_t>{4}));
}

TEST(Arg, TiesAndNans) {
  const TensorDesc input = Packed(DataType::kFloat32, {8}), output = Packed(DataType::kInt64, {1});
  const auto arg = [&](const char* name, AxisDirection direction, const std::vector<float>& numbers) {
    return Outcome<int64_t>(Arg(name, input, output, {0}, direction), Scattered(input, numbers))[0];
  };
  const auto first = AxisDirection::kIncreasing, last = AxisDirection::kDecreasing;
  const std::vector<float> zeros = {-1, -0.0f, 0, -0.0f, -1, -1, -1, -1};
  EXPECT_EQ(arg("ARGMAX", first, zeros), 1);
  EXPECT_EQ(arg("ARGMAX", last, zeros), 3);
  EXPECT_EQ(arg("ARGMIN", first, zeros), 0);
  EXPECT_EQ(arg("ARGMIN", last, zeros), 7);
  const std::vector<float> nans = {INFINITY, -INFINITY, NAN, 0, -NAN, INFINITY, -INFINITY, 1};
  for (const char* name : {"ARGMAX", "ARGMIN"}) {
    EXPECT_EQ(arg(name, first, nans), 2) << name;
    EXPECT_EQ(arg(name, last, nans), 4) << name;
  }
  const std::vector<float> lowest(8, -INFINITY);
  EXPECT_EQ(arg("ARGMAX", first, lowest), 0);
  EXPECT_EQ(arg("ARGMAX", last, lowest), 7);
}

// The reduced dimensions are reversed in memory; positions count in the logical tensor.
TEST(Arg, PositionsAreLogical) {
  const TensorDesc input = Strided(DataType::kInt8, {2, 3}, {1, 2});
  const Bytes bytes = Scattered<int8_t>(input, {0, 5, 1, 2, 5, 3});
  const TensorDesc output = Packed(DataType::kUInt64, {1, 1});
  EXPECT_EQ(Outcome<uint64_t>(Arg("ARGMAX", input, output, {0, 1}), bytes)[0], 1u);
  EXPECT_EQ(Outcome<uint64_t>(Arg("ARGMAX", input, output, {1, 0}, AxisDirection::kDecreasing), bytes)[0],
            4u);
}

TEST(ReduceCheck, Refusals) {
  const TensorDesc input = Packed(DataType::kFloat32, {2, 3}), output = Packed(DataType::kFloat32, {2, 1});
  const auto message = [](const OperatorDesc& desc) {
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  EXPECT_EQ(message(Reduce(ReduceFunction::kSum, input, output, {1})), "");
  EXPECT_EQ(message(Reduce(ReduceFunction::kSum, input, output, {0})),
            "REDUCE: OutputTensor.Sizes is {2,1} but must be {1,3}: InputTensor's, with 1 along Axes");
  EXPECT_EQ(message(Reduce(ReduceFunction::kSum, input, output, {1, 2})),
            "REDUCE: Axes[1] is 2 but InputTensor.DimensionCount is 2; axes must be in [0, 1]");
  EXPECT_EQ(message(Arg("ARGMIN", input, Packed(DataType::kUInt32, {2, 1}), {1, 1})),
            "ARGMIN: Axes[1] is 1 once more; each axis may be given once");
}

}  // namespace
}  // namespace anydml::testing
