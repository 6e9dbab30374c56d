// Running totals and non-zero coordinates against the examples of DirectML's pages, closed forms and results
// computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ops/common/stream_copy.h"
#include "ops/scan/cpu/columns.h"
#include "ops/scan/problem.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;
using Words = std::vector<uint32_t>;
using Sizes = std::vector<uint32_t>;

OperatorDesc Scan(bool multiplies, const TensorDesc& tensor, uint32_t axis, bool decreasing, bool exclusive) {
  return MakeDesc(multiplies ? "CUMULATIVE_PRODUCT" : "CUMULATIVE_SUMMATION",
                  {{"InputTensor", tensor},
                   {"OutputTensor", tensor},
                   {"Axis", axis},
                   {"AxisDirection", decreasing ? 1u : 0u},
                   {multiplies ? "HasExclusiveProduct" : "HasExclusiveSum", exclusive ? 1u : 0u}});
}

template <typename T>
std::vector<T> Values(const OperatorDesc& desc, const std::vector<T>& input) {
  const TensorDesc& tensor = *desc.tensor("InputTensor");
  const Bytes bytes = Scattered(tensor, input);
  const RunResult result = ExpectAllAgree(desc, {bytes}), in_place = ExpectAllAgree(desc, {bytes}, true);
  EXPECT_EQ(result.outputs, in_place.outputs);
  return Gathered<T>(tensor, result.outputs[0]);
}

Floats OfPage(bool multiplies, uint32_t axis, bool decreasing, bool exclusive) {
  return Values<float>(
      Scan(multiplies, Packed(DataType::kFloat32, {1, 1, 3, 4}), axis, decreasing, exclusive),
      {2, 1, 3, 5, 3, 8, 7, 3, 9, 6, 2, 4});
}

TEST(CumulativeSummation, PageExamples) {
  EXPECT_EQ(OfPage(false, 3, false, false), (Floats{2, 3, 6, 11, 3, 11, 18, 21, 9, 15, 17, 21}));
  EXPECT_EQ(OfPage(false, 3, false, true), (Floats{0, 2, 3, 6, 0, 3, 11, 18, 0, 9, 15, 17}));
  EXPECT_EQ(OfPage(false, 3, true, false), (Floats{11, 9, 8, 5, 21, 18, 10, 3, 21, 12, 6, 4}));
  EXPECT_EQ(OfPage(false, 2, false, false), (Floats{2, 1, 3, 5, 5, 9, 10, 8, 14, 15, 12, 12}));
}

TEST(CumulativeProduct, PageExamples) {
  EXPECT_EQ(OfPage(true, 3, false, false), (Floats{2, 2, 6, 30, 3, 24, 168, 504, 9, 54, 108, 432}));
  EXPECT_EQ(OfPage(true, 3, false, true), (Floats{1, 2, 2, 6, 1, 3, 24, 168, 1, 9, 54, 108}));
  EXPECT_EQ(OfPage(true, 3, true, false), (Floats{30, 15, 15, 5, 504, 168, 21, 3, 432, 48, 8, 4}));
  EXPECT_EQ(OfPage(true, 2, false, false), (Floats{2, 1, 3, 5, 6, 8, 21, 15, 54, 48, 42, 60}));
}

TEST(CumulativeSummation, IntegersWrap) {
  const OperatorDesc desc = Scan(false, Packed(DataType::kInt32, {3}), 0, false, false);
  EXPECT_EQ(Values<int32_t>(desc, {INT32_MAX, 1, 1}),
            (std::vector<int32_t>{INT32_MAX, INT32_MIN, INT32_MIN + 1}));
}

// A sum of 2049 ones kept in FLOAT16 would stay at 2048.
TEST(CumulativeSummation, HalvesAreAddedAsFloats) {
  const TensorDesc tensor = Packed(DataType::kFloat16, {4096});
  const auto sums =
      Values<uint16_t>(Scan(false, tensor, 0, false, false), std::vector<uint16_t>(4096, ToHalf(1).bits));
  EXPECT_EQ(ToFloat(Half{sums[4095]}), 4096);
  EXPECT_EQ(ToFloat(Half{sums[3001]}), 3002);
}

TEST(CumulativeSummation, NanAndInfinity) {
  const OperatorDesc desc = Scan(false, Packed(DataType::kFloat32, {5}), 0, false, false);
  const Floats sums = Values<float>(desc, {1, INFINITY, 2, -INFINITY, 3});
  EXPECT_EQ(sums[0], 1);
  EXPECT_EQ(sums[1], INFINITY);
  EXPECT_EQ(sums[2], INFINITY);
  EXPECT_TRUE(std::isnan(sums[3]));
  EXPECT_TRUE(std::isnan(sums[4]));
}

// Lengths near the kernels' block sizes, along and across, in both directions: the sum of 0, 1, ... i is i (i
// + 1) / 2, modulo 2^32.
TEST(CumulativeSummation, LongSequences) {
  for (const uint32_t length : {1025u, 5000u, 70001u, 140000u}) {
    for (const bool across : {false, true}) {
      const Sizes sizes = across ? Sizes{length, 3} : Sizes{3, length};
      const TensorDesc tensor = Packed(DataType::kUInt32, sizes);
      Words input(size_t{3} * length);
      const auto place = [&](uint32_t sequence, uint32_t i) {
        return across ? size_t{i} * 3 + sequence : size_t{sequence} * length + i;
      };
      for (uint32_t s = 0; s < 3; ++s) {
        for (uint32_t i = 0; i < length; ++i) input[place(s, i)] = i * (s + 1);
      }
      const uint32_t axis = across ? 0 : 1;
      const Words up = Values(Scan(false, tensor, axis, false, false), input);
      const Words down = Values(Scan(false, tensor, axis, true, true), input);
      const uint64_t all = uint64_t{length} * (length - 1) / 2;
      for (uint32_t s = 0; s < 3; ++s) {
        for (uint32_t i = 0; i < length; i += 97) {
          const uint64_t sum = uint64_t{i} * (i + 1) / 2;
          ASSERT_EQ(up[place(s, i)], static_cast<uint32_t>(sum * (s + 1))) << length << " " << i;
          ASSERT_EQ(down[place(s, i)], static_cast<uint32_t>((all - sum) * (s + 1))) << length << " " << i;
        }
      }
    }
  }
}

// Rows that every kernel reads in whole units.
TEST(CumulativeSummation, RowsOfFloatsAndHalves) {
  for (const uint32_t length : {128u, 4096u, 8200u}) {
    const TensorDesc floats = Packed(DataType::kFloat32, {9, length});
    const TensorDesc halves = Packed(DataType::kFloat16, {9, length});
    for (const bool decreasing : {false, true}) {
      for (const bool exclusive : {false, true}) {
        const Floats sums =
            Values(Scan(false, floats, 1, decreasing, exclusive), Floats(size_t{9} * length, 1));
        const auto half_sums = Values(Scan(false, halves, 1, decreasing, exclusive),
                                      std::vector<uint16_t>(size_t{9} * length, ToHalf(0.25f).bits));
        for (uint32_t i = 0; i < length; ++i) {
          const uint32_t before = decreasing ? length - 1 - i : i;
          const auto expected = static_cast<float>(before + (exclusive ? 0 : 1));
          ASSERT_EQ(sums[size_t{7} * length + i], expected) << length << " " << i;
          ASSERT_EQ(half_sums[size_t{7} * length + i], ToHalf(expected / 4).bits) << length << " " << i;
        }
      }
    }
  }
}

TEST(ScanCheck, Refusals) {
  const OperatorDesc desc = Scan(false, Packed(DataType::kFloat32, {2, 3}), 2, false, false);
  EXPECT_EQ(ImplementationOf(desc).check(desc, kLatestFeatureLevel).message(),
            "CUMULATIVE_SUMMATION: Axis is 2 but InputTensor.DimensionCount is 2; Axis must be in [0, 1]");
}

template <typename T>
void ExpectSteps(std::mt19937_64& random, const ScanStep& step) {
  const auto number = [&] {
    if constexpr (std::is_same_v<T, float>) {
      const std::vector<float> special = {NAN, INFINITY, -INFINITY, -0.0f, -NAN};
      const uint64_t which = random() % 40;
      return which < special.size() ? special[which] : static_cast<float>(random() % 1000) / 7 - 60;
    } else {
      return static_cast<T>(random());
    }
  };
  std::vector<T> from(300), totals(300), to(300, T{1});
  for (T& x : from) x = number();
  for (T& x : totals) x = number();
  std::vector<T> expected = to, sums = totals;
  const uint64_t begin = random() % 20, source = random() % 20, count = random() % 200, first = random() % 20;
  for (uint64_t c = 0; c < count; ++c) {
    const T before = sums[first + c], x = from[source + c], total = step.multiplies ? before * x : before + x;
    T result = step.exclusive ? before : total;
    if constexpr (std::is_same_v<T, float>) {
      if (std::isnan(result)) result = NAN;
    }
    expected[begin + c] = result;
    sums[first + c] = total;
  }
  RunScanStep(step, from.data() + source, to.data() + begin, count, totals.data() + first);
  EndStream();
  ASSERT_EQ(std::memcmp(to.data(), expected.data(), to.size() * sizeof(T)), 0);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == sums[i]) {
      ASSERT_EQ(totals[i], sums[i]);
    }
  }
}

// Any number of sequences, with any source and target alignment, with and without non-temporal stores.
TEST(CumulativeSummation, StepsOfNeighbours) {
  std::mt19937_64 random(TestSeed());
  for (int run = 0; run < 2000; ++run) {
    const ScanStep step = {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0};
    ExpectSteps<float>(random, step);
    ExpectSteps<uint32_t>(random, step);
    ExpectSteps<uint64_t>(random, step);
  }
}

OperatorDesc Nonzero(const TensorDesc& input, const TensorDesc& count, const TensorDesc& coordinates) {
  return MakeDesc(
      "NONZERO_COORDINATES",
      {{"InputTensor", input}, {"OutputCountTensor", count}, {"OutputCoordinatesTensor", coordinates}});
}

TEST(NonzeroCoordinates, PageExample) {
  const TensorDesc input = Packed(DataType::kFloat32, {1, 1, 2, 4});
  const TensorDesc count = Packed(DataType::kUInt32, {1, 1, 1, 1});
  const TensorDesc coordinates = Packed(DataType::kUInt32, {1, 1, 8, 3});
  const RunResult result = ExpectAllAgree(Nonzero(input, count, coordinates),
                                          {Scattered<float>(input, {1, 0, 0, 2, -0.0f, 3.5f, 0, -5.2f})});
  EXPECT_EQ(Gathered<uint32_t>(count, result.outputs[0]), Words{4});
  Words rows = Gathered<uint32_t>(coordinates, result.outputs[1]);
  const Words untouched(12, 0x01010101u * kGap);
  EXPECT_EQ(Words(rows.begin() + 12, rows.end()), untouched);
  rows.resize(12);
  EXPECT_EQ(rows, (Words{0, 0, 0, 0, 0, 3, 0, 1, 1, 0, 1, 3}));
}

// ONNX Runtime's transposed INT64 result for ONNX: the low halves of its words.
TEST(NonzeroCoordinates, StridesOfWideTransposedWords) {
  const TensorDesc input = Packed(DataType::kUInt8, {2, 3}), count = Packed(DataType::kUInt32, {1, 1});
  const TensorDesc coordinates = Strided(DataType::kUInt32, {6, 2}, {2, 12});
  const RunResult result =
      ExpectAllAgree(Nonzero(input, count, coordinates), {Scattered<uint8_t>(input, {0, 7, 0, 255, 0, 1})});
  EXPECT_EQ(Gathered<uint32_t>(count, result.outputs[0]), Words{3});
  const Words rows = Gathered<uint32_t>(coordinates, result.outputs[1]);
  EXPECT_EQ(Words(rows.begin(), rows.begin() + 6), (Words{0, 1, 1, 0, 1, 2}));
}

TEST(NonzeroCoordinates, NanIsNotZeroAndAllOrNone) {
  const TensorDesc input = Packed(DataType::kFloat16, {70000}), count = Packed(DataType::kUInt32, {1});
  const TensorDesc coordinates = Packed(DataType::kUInt32, {70000, 1});
  for (const uint16_t bits : {uint16_t{0x7E00}, uint16_t{0x8000}}) {
    const RunResult result = ExpectAllAgree(Nonzero(input, count, coordinates),
                                            {Scattered(input, std::vector<uint16_t>(70000, bits))});
    EXPECT_EQ(Gathered<uint32_t>(count, result.outputs[0]), Words{bits == 0x7E00 ? 70000u : 0u});
    if (bits != 0x7E00) continue;
    const Words rows = Gathered<uint32_t>(coordinates, result.outputs[1]);
    for (uint32_t i = 0; i < 70000; ++i) ASSERT_EQ(rows[i], i);
  }
}

TEST(NonzeroCoordinatesCheck, Refusals) {
  const auto message = [](const Sizes& input, const Sizes& count, const Sizes& coordinates) {
    const OperatorDesc desc = Nonzero(Packed(DataType::kFloat32, input), Packed(DataType::kUInt32, count),
                                      Packed(DataType::kUInt32, coordinates));
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  EXPECT_EQ(message({1, 2, 3}, {1, 1, 1}, {1, 6, 2}), "");
  EXPECT_EQ(message({1, 2, 3}, {1, 1, 1}, {1, 6, 1}),
            "NONZERO_COORDINATES: OutputCoordinatesTensor.Sizes[2] is 1 but InputTensor.Sizes is {1,2,3}; it "
            "must be in [2, 3]");
  EXPECT_EQ(message({1, 2, 3}, {1, 1, 2}, {1, 6, 2}),
            "NONZERO_COORDINATES: OutputCountTensor.Sizes is {1,1,2} but must be all 1: one number holds for "
            "all elements");
  EXPECT_EQ(message({1, 2, 3}, {1, 1, 1}, {1, 5, 2}),
            "NONZERO_COORDINATES: OutputCoordinatesTensor.Sizes is {1,5,2} but must be {1,6,2}: a row for "
            "every element of InputTensor");
}

}  // namespace
}  // namespace anydml::testing
