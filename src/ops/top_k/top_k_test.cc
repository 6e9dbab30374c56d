// Every TOP_K implementation against the reference; the reference against the page's examples, results
// computed by hand and a second, independent algorithm.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kIncreasing = 0;
constexpr uint32_t kDecreasing = 1;
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8};

OperatorDesc TopK1(const TensorDesc& input, const TensorDesc& value, const TensorDesc& index, uint32_t axis,
                   uint32_t direction) {
  return MakeDesc("TOP_K1", {{"InputTensor", input},
                             {"OutputValueTensor", value},
                             {"OutputIndexTensor", index},
                             {"Axis", axis},
                             {"K", value.sizes[axis]},
                             {"AxisDirection", direction}});
}

// Packed FLOAT32; checks the bits of values, and indices, of every implementation.
void ExpectTopK(const std::vector<uint32_t>& sizes, const std::vector<float>& input, uint32_t axis,
                uint32_t k, uint32_t direction, const std::vector<float>& values,
                const std::vector<uint32_t>& indices) {
  std::vector<uint32_t> output_sizes = sizes;
  output_sizes[axis] = k;
  const TensorDesc in = Packed(DataType::kFloat32, sizes);
  const TensorDesc value = Packed(DataType::kFloat32, output_sizes);
  const TensorDesc index = Packed(DataType::kUInt32, output_sizes);
  const RunResult result = ExpectAllAgree(TopK1(in, value, index, axis, direction), {Scattered(in, input)});
  EXPECT_EQ(result.outputs.at(0), Scattered(value, values));
  EXPECT_EQ(Gathered<uint32_t>(index, result.outputs.at(1)), indices);
}

TEST(TopK, PageExample1) {
  ExpectTopK({1, 1, 3, 4}, {0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7}, 3, 2, kDecreasing, {11, 10, 9, 8, 7, 6},
             {3, 2, 2, 3, 3, 2});
}

TEST(TopK, PageExample2OtherAxis) {
  ExpectTopK({1, 1, 3, 4}, {0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7}, 2, 2, kDecreasing,
             {4, 5, 10, 11, 3, 2, 9, 8}, {2, 2, 0, 0, 1, 1, 1, 1});
}

TEST(TopK, PageExample3Ties) {
  ExpectTopK({1, 1, 3, 4}, {1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6, 6}, 3, 3, kDecreasing,
             {3, 2, 2, 5, 5, 4, 6, 6, 6}, {3, 1, 2, 2, 3, 1, 0, 1, 2});
}

TEST(TopK, PageExample4Increasing) {
  ExpectTopK({1, 1, 3, 4}, {1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6, 6}, 3, 3, kIncreasing,
             {1, 2, 2, 3, 4, 5, 6, 6, 6}, {0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST(TopK, TopKIsTopK1Decreasing) {
  const TensorDesc in = Packed(DataType::kFloat32, {1, 1, 1, 4});
  const TensorDesc value = Packed(DataType::kFloat32, {1, 1, 1, 2});
  const TensorDesc index = Packed(DataType::kUInt32, {1, 1, 1, 2});
  const OperatorDesc desc = MakeDesc("TOP_K", {{"InputTensor", in},
                                               {"OutputValueTensor", value},
                                               {"OutputIndexTensor", index},
                                               {"Axis", 3u},
                                               {"K", 2u}});
  const RunResult result = ExpectAllAgree(desc, {Scattered<float>(in, {5, 7, 6, 7})});
  EXPECT_EQ(Gathered<float>(value, result.outputs[0]), (std::vector<float>{7, 7}));
  EXPECT_EQ(Gathered<uint32_t>(index, result.outputs[1]), (std::vector<uint32_t>{1, 3}));
}

TEST(TopK, TiesAtTheBoundaryGoToTheLowestIndices) {
  ExpectTopK({6}, {1, 3, 2, 2, 2, 3}, 0, 3, kDecreasing, {3, 3, 2}, {1, 5, 2});
  ExpectTopK({6}, {3, 2, 2, 1, 2, 2}, 0, 3, kIncreasing, {1, 2, 2}, {3, 1, 2});
}

TEST(TopK, NanIsAboveInfinityAndKeepsItsBits) {
  const float inf = INFINITY;
  const float nan1 = std::bit_cast<float>(0x7FC00000u);
  const float nan2 = std::bit_cast<float>(0xFFC12345u);  // negative, with a payload
  const float nan3 = std::bit_cast<float>(0x7F800001u);  // signalling
  ExpectTopK({6}, {1, nan2, inf, nan1, -inf, nan3}, 0, 4, kDecreasing, {nan2, nan1, nan3, inf}, {1, 3, 5, 2});
  ExpectTopK({6}, {1, nan2, inf, nan1, -inf, nan3}, 0, 5, kIncreasing, {-inf, 1, inf, nan2, nan1},
             {4, 0, 2, 1, 3});
}

TEST(TopK, ZerosOfBothSignsAreEqual) {
  ExpectTopK({4}, {-0.0f, 0.0f, -1, -0.0f}, 0, 3, kDecreasing, {-0.0f, 0.0f, -0.0f}, {0, 1, 3});
  ExpectTopK({4}, {0.0f, -0.0f, 1, -0.0f}, 0, 3, kIncreasing, {0.0f, -0.0f, -0.0f}, {0, 1, 3});
}

TEST(TopK, DenormalsAreOrdered) {
  const float tiny = std::bit_cast<float>(1u);
  ExpectTopK({4}, {0, -tiny, tiny, 2 * tiny}, 0, 4, kDecreasing, {2 * tiny, tiny, 0, -tiny}, {3, 2, 0, 1});
}

TEST(TopK, SequencesOfInfinitiesHaveRealDistinctIndices) {
  ExpectTopK({3}, {INFINITY, INFINITY, INFINITY}, 0, 3, kIncreasing, {INFINITY, INFINITY, INFINITY},
             {0, 1, 2});
  ExpectTopK({3}, {-INFINITY, -INFINITY, -INFINITY}, 0, 2, kDecreasing, {-INFINITY, -INFINITY}, {0, 1});
}

template <typename T>
void ExpectExtremes(DataType type) {
  constexpr T kLow = std::numeric_limits<T>::min();
  constexpr T kHigh = std::numeric_limits<T>::max();
  const TensorDesc in = Packed(type, {5});
  const TensorDesc index = Packed(DataType::kUInt64, {5});
  const Bytes bytes = Scattered<T>(in, {T{1}, kLow, kHigh, T{0}, kHigh});
  RunResult result = ExpectAllAgree(TopK1(in, in, index, 0, kDecreasing), {bytes});
  const bool is_signed = kLow < 0;
  EXPECT_EQ(Gathered<T>(in, result.outputs[0]),
            (std::vector<T>{kHigh, kHigh, 1, is_signed ? T{0} : kLow, kLow}));
  EXPECT_EQ(Gathered<uint64_t>(index, result.outputs[1]),
            (is_signed ? std::vector<uint64_t>{2, 4, 0, 3, 1} : std::vector<uint64_t>{2, 4, 0, 1, 3}));
  result = ExpectAllAgree(TopK1(in, in, index, 0, kIncreasing), {bytes});
  EXPECT_EQ(Gathered<uint64_t>(index, result.outputs[1]), (std::vector<uint64_t>{1, 3, 0, 2, 4}));
}

TEST(TopK, ExtremesOfTheIntegerTypes) {
  ExpectExtremes<int64_t>(DataType::kInt64);
  ExpectExtremes<int32_t>(DataType::kInt32);
  ExpectExtremes<int16_t>(DataType::kInt16);
  ExpectExtremes<int8_t>(DataType::kInt8);
  ExpectExtremes<uint64_t>(DataType::kUInt64);
  ExpectExtremes<uint32_t>(DataType::kUInt32);
  ExpectExtremes<uint16_t>(DataType::kUInt16);
  ExpectExtremes<uint8_t>(DataType::kUInt8);
}

// A number with the same order as the element; exact for every type except 64-bit integers, which get a long
// double (64 bits of mantissa) where it exists.
long double Rank(DataType type, const uint8_t* at) {
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, at, sizeof(T));
    return value;
  };
  float number = 0;
  switch (type) {
    case DataType::kFloat32:
      number = read(float{});
      return std::isnan(number) ? HUGE_VALL : std::isinf(number) ? std::copysign(0x1p200L, number) : number;
    case DataType::kFloat16:
      number = ToFloat(read(Half{}));
      return std::isnan(number) ? HUGE_VALL : std::isinf(number) ? std::copysign(0x1p200L, number) : number;
    case DataType::kInt64:
      return read(int64_t{});
    case DataType::kInt32:
      return read(int32_t{});
    case DataType::kInt16:
      return read(int16_t{});
    case DataType::kInt8:
      return read(int8_t{});
    case DataType::kUInt64:
      return read(uint64_t{});
    case DataType::kUInt32:
      return read(uint32_t{});
    case DataType::kUInt16:
      return read(uint16_t{});
    default:
      return read(uint8_t{});
  }
}

// Without sorting: an element's rank is the number of elements that precede it.
void ExpectPlaces(const OperatorDesc& desc, const Bytes& input_bytes, const RunResult& result) {
  const TensorDesc& in = *desc.tensor("InputTensor");
  const TensorDesc& value = *desc.tensor("OutputValueTensor");
  const TensorDesc& index = *desc.tensor("OutputIndexTensor");
  const uint32_t axis = desc.uint("Axis"), n = in.sizes[axis], k = desc.uint("K");
  const size_t width = BitSize(in.type) / 8;
  const bool decreasing =
      FindField(*desc.schema, "AxisDirection") < 0 || desc.uint("AxisDirection") == kDecreasing;
  uint64_t outer = 1, inner = 1;
  for (uint32_t d = 0; d < axis; ++d) outer *= in.sizes[d];
  for (uint32_t d = axis + 1; d < in.rank; ++d) inner *= in.sizes[d];
  const auto in_offsets = RowMajorOffsets(in), value_offsets = RowMajorOffsets(value);
  const auto index_offsets = RowMajorOffsets(index);
  for (uint64_t s = 0; s < outer * inner; ++s) {
    const auto element = [&](uint32_t i) {
      return input_bytes.data() + in_offsets[(s / inner * n + i) * inner + s % inner] * width;
    };
    for (uint32_t i = 0; i < n; ++i) {
      const long double x = Rank(in.type, element(i));
      uint32_t place = 0;
      for (uint32_t j = 0; j < n; ++j) {
        const long double y = Rank(in.type, element(j));
        const bool first = decreasing ? y > x : y < x;
        if (first || (x == y && j < i)) ++place;
      }
      if (place >= k) continue;
      const uint64_t output = (s / inner * k + place) * inner + s % inner;
      EXPECT_EQ(std::memcmp(result.outputs[0].data() + value_offsets[output] * width, element(i), width), 0);
      uint64_t written = 0;
      const size_t index_width = BitSize(index.type) / 8;
      std::memcpy(&written, result.outputs[1].data() + index_offsets[output] * index_width, index_width);
      EXPECT_EQ(written, i);
    }
  }
}

struct Shape {
  DataType type;
  std::vector<uint32_t> sizes;
  uint32_t axis, k, direction;
  DataType index_type;
  LayoutKind input_layout, value_layout, index_layout;
};

void RunCase(const Shape& c, std::mt19937_64& random, bool places) {
  std::vector<uint32_t> output_sizes = c.sizes;
  output_sizes[c.axis] = c.k;
  const TensorDesc in = MakeTensor(c.type, c.sizes, c.input_layout, random);
  const TensorDesc value = MakeTensor(c.type, output_sizes, c.value_layout, random);
  const TensorDesc index = MakeTensor(c.index_type, output_sizes, c.index_layout, random);
  const OperatorDesc desc = TopK1(in, value, index, c.axis, c.direction);
  const Bytes bytes = RandomBytes(in, random);
  SCOPED_TRACE(StrCat(Name(c.type), " ", SizesToString(in), " axis ", c.axis, " K ", c.k, " direction ",
                      c.direction, " layouts ", int(c.input_layout), int(c.value_layout),
                      int(c.index_layout)));
  const RunResult reference = ExpectAllAgree(desc, {bytes});
  if (places) ExpectPlaces(desc, bytes, reference);
}

bool LongDoubleHolds64Bits() { return std::numeric_limits<long double>::digits >= 64; }

TEST(TopK, EveryTypeRankAxisKDirectionAndLayout) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint32_t> all_sizes = {3, 2, 4, 1, 2, 5, 2, 3};
  Thinning thinning;
  for (DataType type : kTypes) {
    const bool places = BitSize(type) < 64 || LongDoubleHolds64Bits();
    for (uint32_t rank = 1; rank <= 8; ++rank) {
      const std::vector<uint32_t> sizes(all_sizes.end() - rank, all_sizes.end());
      for (uint32_t axis = 0; axis < rank; ++axis) {
        const uint32_t n = sizes[axis];
        for (uint32_t k : {1u, 2u, n - 1, n}) {
          if (k < 1 || k > n) continue;
          // Layouts and index types are combined in rotation instead of all with all.
          for (uint32_t direction : {kIncreasing, kDecreasing}) {
            const auto layout = [&](auto& kinds) { return kinds[Uniform(random, 0, std::size(kinds) - 1)]; };
            const DataType index = Uniform(random, 0, 1) ? DataType::kUInt32 : DataType::kUInt64;
            if (!thinning.Runs()) continue;
            RunCase({type, sizes, axis, k, direction, index, layout(kInputLayouts), layout(kOutputLayouts),
                     layout(kOutputLayouts)},
                    random, places && rank <= 6);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(TopK, EveryCombinationOfLayouts) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (DataType type : kTypes) {
    for (uint32_t axis = 0; axis < 3; ++axis) {
      for (LayoutKind input : kInputLayouts) {
        for (LayoutKind value : kOutputLayouts) {
          for (LayoutKind index : kOutputLayouts) {
            if (!thinning.Runs()) continue;
            RunCase({type, {3, 4, 5}, axis, 2, kDecreasing, DataType::kUInt32, input, value, index}, random,
                    true);
            RunCase({type, {3, 4, 5}, axis, 3, kIncreasing, DataType::kUInt64, input, value, index}, random,
                    true);
          }
        }
      }
      if (HasFailure()) return;
    }
  }
}

TEST(TopK, LongSequences) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (DataType type : kTypes) {
    for (uint32_t k : {1u, 7u, 100u, 999u, 2999u, 3000u}) {
      for (uint32_t direction : {kIncreasing, kDecreasing}) {
        if (!thinning.Runs()) continue;
        RunCase({type,
                 {2, 3000},
                 1,
                 k,
                 direction,
                 DataType::kUInt32,
                 LayoutKind::kPacked,
                 LayoutKind::kPacked,
                 LayoutKind::kPacked},
                random, false);
      }
    }
  }
}

// Lengths and K for which kernels divide rows and bound their best elements in different ways; rows begin at
// multiples of 16 bytes or not.
TEST(TopK, RowsOfEveryLength) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (DataType type : kTypes) {
    for (uint32_t n : {33u, 250u, 1000u, 2050u, 8192u, 20001u, 40000u}) {
      for (uint32_t k : {1u, 20u, 70u, 400u, n / 2, n}) {
        if (k > n || (n > 10000 && k > 1000) || !thinning.Runs()) continue;
        RunCase({type,
                 {2, n},
                 1,
                 k,
                 Uniform(random, 0, 1),
                 DataType::kUInt32,
                 LayoutKind::kPacked,
                 LayoutKind::kPacked,
                 LayoutKind::kPacked},
                random, false);
        if (HasFailure()) return;
      }
    }
  }
}

// Other tests compare the implementations with the reference on the same cases.
TEST(TopK, PlacesOfRandomCases) {
  ForCases(family::top_k::Cases(), 2, [](const Case& problem) {
    const TensorDesc& input = *problem.desc.tensor("InputTensor");
    const bool ranked = BitSize(input.type) < 64 || LongDoubleHolds64Bits();
    if (!ranked || input.sizes[problem.desc.uint("Axis")] > 200) return;  // takes quadratic time
    ExpectPlaces(problem.desc, problem.inputs[0],
                 RunOperator(problem.desc, problem.inputs, {.implementation = "cpu.reference"}));
  });
}

}  // namespace
}  // namespace anydml::testing
