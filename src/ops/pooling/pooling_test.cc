// Pooling against the examples of DirectML's pages and results computed by hand.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<uint32_t>;

struct Windows {
  Numbers sizes, strides = Numbers(sizes.size(), 1), start = Numbers(sizes.size(), 0),
                 end = Numbers(sizes.size(), 0), dilations = Numbers(sizes.size(), 1);
};

void Set(OperatorDesc* desc, const char* name, const FieldValue& value) {
  const int field = FindField(*desc->schema, name);
  if (field >= 0) desc->fields[static_cast<size_t>(field)] = value;
}

OperatorDesc Describe(const char* name, const TensorDesc& input, const TensorDesc& output, const Windows& w) {
  OperatorDesc desc = MakeDesc(name, {});
  const std::string_view text = name;
  const bool grad = text.ends_with("_GRAD");
  Set(&desc, grad && text.starts_with("AVERAGE") ? "InputGradientTensor" : "InputTensor", input);
  Set(&desc, grad ? "OutputGradientTensor" : "OutputTensor", output);
  Set(&desc, "DimensionCount", static_cast<uint32_t>(w.sizes.size()));
  Set(&desc, "WindowSize", w.sizes);
  Set(&desc, "Strides", w.strides);
  Set(&desc, "StartPadding", w.start);
  Set(&desc, "EndPadding", w.end);
  Set(&desc, "Dilations", w.dilations);
  return desc;
}

template <typename T>
std::vector<T> ResultOf(const OperatorDesc& desc, const std::vector<T>& elements) {
  const RunResult result = ExpectAllAgree(desc, {Scattered(*desc.inputs()[0], elements)});
  return Gathered<T>(*desc.outputs()[0], result.outputs[0]);
}

TensorDesc Plane(uint32_t height, uint32_t width) {
  return Packed(DataType::kFloat32, {1, 1, height, width});
}

Floats Pool(const char* name, const TensorDesc& input, const TensorDesc& output, const Windows& w,
            const Floats& numbers, bool include_padding = false) {
  OperatorDesc desc = Describe(name, input, output, w);
  Set(&desc, "IncludePadding", uint32_t{include_padding});
  return ResultOf(desc, numbers);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Nearly all taps are in the padding: visiting each would take minutes.
TEST(Pooling, HugeWindows) {
  constexpr uint32_t kHuge = std::numeric_limits<uint32_t>::max();
  const TensorDesc input = Plane(2, 2);
  const Windows w = {.sizes = {1, kHuge}, .start = {0, kHuge - 1}};
  const Floats numbers = {1, 2, 3, 4};
  EXPECT_EQ(Pool("AVERAGE_POOLING", input, Plane(2, 2), w, numbers), (Floats{1, 1.5f, 3, 3.5f}));
  EXPECT_EQ(Pool("AVERAGE_POOLING", input, Plane(2, 2), w, numbers, true),
            (Floats{0x1p-32f, 3 * 0x1p-32f, 3 * 0x1p-32f, 7 * 0x1p-32f}));
  EXPECT_EQ(Pool("MAX_POOLING", input, Plane(2, 2), w, numbers), (Floats{1, 2, 3, 4}));
}

TEST(MaxPooling, ThePagesExampleWithIndices) {
  const TensorDesc input = Plane(3, 3), output = Plane(2, 2),
                   indices = Packed(DataType::kUInt32, {1, 1, 2, 2});
  OperatorDesc desc = Describe("MAX_POOLING2", input, output, {{2, 2}});
  Set(&desc, "OutputIndicesTensor", indices);
  const RunResult result = ExpectAllAgree(desc, {Scattered<float>(input, {1, 2, 3, 2, 4, 2, 5, 6, 7})});
  EXPECT_EQ(Gathered<float>(output, result.outputs[0]), (Floats{4, 4, 6, 7}));
  EXPECT_EQ(Gathered<uint32_t>(indices, result.outputs[1]), (Numbers{4, 4, 7, 8}));
}

TEST(MaxPooling, IndicesCountBatchesAndChannelsWhateverTheLayout) {
  const Numbers sizes = {2, 2, 1, 2};
  const TensorDesc indices = Packed(DataType::kUInt64, {2, 2, 1, 1});
  for (const TensorDesc& input :
       {Packed(DataType::kInt32, sizes), Strided(DataType::kInt32, sizes, {4, 1, 4, 2})}) {
    OperatorDesc desc = Describe("MAX_POOLING1", input, Packed(DataType::kInt32, {2, 2, 1, 1}), {{1, 2}});
    Set(&desc, "OutputIndicesTensor", indices);
    const RunResult result = ExpectAllAgree(desc, {Scattered<int32_t>(input, {1, 2, 4, 3, 5, 5, -7, -6})});
    EXPECT_EQ(Gathered<uint64_t>(indices, result.outputs[1]), (std::vector<uint64_t>{1, 2, 4, 7}));
  }
}

TEST(MaxPooling, NanWinsAndPlusZeroBeatsMinusZero) {
  const float nan = std::bit_cast<float>(0xFFC12345u), other = std::bit_cast<float>(0x7FC54321u);
  const TensorDesc input = Plane(1, 6), output = Plane(1, 3);
  const Floats result =
      Pool("MAX_POOLING", input, output, {{1, 2}, {1, 2}}, {kInfinity, nan, -0.0f, 0, other, nan});
  EXPECT_EQ(std::bit_cast<uint32_t>(result[0]), 0xFFC12345u);
  EXPECT_EQ(std::bit_cast<uint32_t>(result[1]), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(result[2]), 0x7FC54321u);
}

TEST(MaxPooling, PaddingNeverWinsAndWindowsWithoutTapsAreLowest) {
  const TensorDesc input = Plane(1, 2), output = Plane(1, 4);
  const Windows w = {{1, 2}, {1, 2}, {0, 3}, {0, 3}};
  EXPECT_EQ(Pool("MAX_POOLING", input, output, w, {-5, -7}), (Floats{-kInfinity, -5, -7, -kInfinity}));
  const OperatorDesc bytes = Describe("MAX_POOLING", Packed(DataType::kInt8, {1, 1, 1, 2}),
                                      Packed(DataType::kInt8, {1, 1, 1, 4}), w);
  EXPECT_EQ(ResultOf<int8_t>(bytes, {-5, -7}), (std::vector<int8_t>{-128, -5, -7, -128}));
}

TEST(MaxPooling, DilationsAndThreeDimensions) {
  EXPECT_EQ(Pool("MAX_POOLING2", Plane(1, 6), Plane(1, 2), {{1, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 2}},
                 {1, 9, 2, 8, 3, 7}),
            (Floats{3, 9}));
  Floats cube(27);
  std::iota(cube.begin(), cube.end(), 0.0f);
  EXPECT_EQ(Pool("MAX_POOLING", Packed(DataType::kFloat32, {1, 1, 3, 3, 3}),
                 Packed(DataType::kFloat32, {1, 1, 2, 1, 2}), {{2, 3, 2}}, cube),
            (Floats{16, 17, 25, 26}));
}

// ONNX's maxpool_2d_ceil: the last windows overhang.
TEST(MaxPooling, WindowsThatOverhang) {
  Floats numbers(16);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  EXPECT_EQ(Pool("MAX_POOLING", Plane(4, 4), Plane(2, 2), {{3, 3}, {2, 2}}, numbers),
            (Floats{11, 12, 15, 16}));
  EXPECT_EQ(Pool("AVERAGE_POOLING", Plane(4, 4), Plane(2, 2), {{3, 3}, {2, 2}}, numbers, true),
            (Floats{6, 7.5f, 12, 13.5f}));
}

TEST(AveragePooling, ThePagesExampleAndPadding) {
  const Floats numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(Pool("AVERAGE_POOLING", Plane(3, 3), Plane(2, 2), {{2, 2}}, numbers), (Floats{3, 4, 6, 7}));
  const Windows padded = {{3, 3}, {2, 2}, {1, 1}, {1, 1}};
  EXPECT_EQ(Pool("AVERAGE_POOLING", Plane(3, 3), Plane(2, 2), padded, numbers), (Floats{3, 4, 6, 7}));
  EXPECT_EQ(Pool("AVERAGE_POOLING1", Plane(3, 3), Plane(2, 2), padded, numbers, true),
            (Floats{12.0f / 9, 16.0f / 9, 24.0f / 9, 28.0f / 9}));
  EXPECT_EQ(Pool("AVERAGE_POOLING", Plane(1, 1), Plane(1, 3), {{1, 1}, {1, 1}, {0, 1}, {0, 1}}, {7}),
            (Floats{0, 7, 0}));
}

// The stride of a dimension of size 1 does not matter.
TEST(AveragePooling, AColumnWithAnyStrideAcross) {
  const TensorDesc input = Strided(DataType::kFloat32, {1, 1, 3, 1}, {3, 3, 1, 4096});
  EXPECT_EQ(Pool("AVERAGE_POOLING", input, Plane(1, 1), {{3, 1}}, {1, 2, 6}), (Floats{3}));
}

// Integers, so that the sums do not depend on the order of additions.
TEST(AveragePooling, WholePlanes) {
  for (const uint32_t width : {1u, 7u, 16u, 17u, 40u, 100u}) {
    const TensorDesc input = Packed(DataType::kFloat32, {2, 3, 5, width});
    Floats numbers(size_t{6} * 5 * width), want;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 101);
    for (size_t plane = 0; plane < 6; ++plane) {
      const auto begin = numbers.begin() + static_cast<ptrdiff_t>(plane * 5 * width);
      want.push_back(std::accumulate(begin, begin + 5 * width, 0.0f) / static_cast<float>(5 * width));
    }
    EXPECT_EQ(Pool("AVERAGE_POOLING", input, Packed(DataType::kFloat32, {2, 3, 1, 1}), {{5, width}}, numbers),
              want);
  }
}

// Planes of more than 4096 elements, which are processed in rows of other lengths.
TEST(MaxPooling, WholePlanes) {
  for (const uint32_t width : {64u, 112u, 67u}) {
    const TensorDesc input = Packed(DataType::kFloat32, {1, 3, 112, width});
    Floats numbers(size_t{3} * 112 * width, -2.0f);
    numbers[112 * width - 1] = 5;                                           // the last of the first plane
    numbers[112 * width + 77] = std::numeric_limits<float>::quiet_NaN();    // in the second
    numbers[2 * 112 * width] = -0.0f, numbers[3 * 112 * width - 9] = 0.0f;  // in the third
    const Floats found =
        Pool("MAX_POOLING", input, Packed(DataType::kFloat32, {1, 3, 1, 1}), {{112, width}}, numbers);
    EXPECT_EQ(found[0], 5);
    EXPECT_TRUE(std::isnan(found[1]));
    EXPECT_EQ(std::bit_cast<uint32_t>(found[2]), 0u);
  }
}

TEST(LpPooling, Norms) {
  OperatorDesc desc = Describe("LP_POOLING", Plane(1, 4), Plane(1, 2), {{1, 2}, {1, 2}});
  const Floats numbers = {3, -4, -2, 0};
  Set(&desc, "P", uint32_t{1});
  EXPECT_EQ(ResultOf(desc, numbers), (Floats{7, 2}));
  Set(&desc, "P", uint32_t{2});
  EXPECT_EQ(ResultOf(desc, numbers), (Floats{5, 2}));
  Set(&desc, "P", uint32_t{3});
  const Floats cubes = ResultOf(desc, numbers);
  EXPECT_FLOAT_EQ(cubes[0], std::cbrt(91.0f));
  EXPECT_FLOAT_EQ(cubes[1], 2);
}

// Two channels, each with its own scale, and zero points shared by all.
TEST(QuantizedAveragePooling, MeansOfDequantizedNumbers) {
  const TensorDesc input = Packed(DataType::kUInt8, {1, 2, 1, 2}),
                   output = Packed(DataType::kInt8, {1, 2, 1, 2});
  const TensorDesc scale = Packed(DataType::kFloat32, {1, 2, 1, 1}), one = Packed(DataType::kFloat32, {1});
  const TensorDesc zero = Packed(DataType::kUInt8, {1, 1, 1, 1}), out_zero = Packed(DataType::kInt8, {1});
  OperatorDesc desc =
      Describe("QUANTIZED_LINEAR_AVERAGE_POOLING", input, output, {{1, 2}, {1, 1}, {0, 0}, {0, 1}});
  Set(&desc, "InputScaleTensor", scale);
  Set(&desc, "InputZeroPointTensor", zero);
  Set(&desc, "OutputScaleTensor", one);
  Set(&desc, "OutputZeroPointTensor", out_zero);
  const std::vector<Bytes> inputs = {Scattered<uint8_t>(input, {12, 18, 0, 255}),
                                     Scattered<float>(scale, {0.5f, 1}), Scattered<uint8_t>(zero, {10}),
                                     Scattered<float>(one, {0.25f}), Scattered<int8_t>(out_zero, {-1})};
  Set(&desc, "IncludePadding", uint32_t{0});
  // (1 + 4) / 2 / 0.25 - 1, 4 / 0.25 - 1; (-10 + 245) / 2 / 0.25 - 1 and 980 - 1 saturate.
  EXPECT_EQ(Gathered<int8_t>(output, ExpectAllAgree(desc, inputs).outputs[0]),
            (std::vector<int8_t>{9, 15, 127, 127}));
  Set(&desc, "IncludePadding", uint32_t{1});
  EXPECT_EQ(Gathered<int8_t>(output, ExpectAllAgree(desc, inputs).outputs[0]),
            (std::vector<int8_t>{9, 7, 127, 127}));
}

TEST(PoolingGrad, ThePagesExamples) {
  OperatorDesc average = Describe("AVERAGE_POOLING_GRAD", Plane(2, 2), Plane(3, 3), {{2, 2}});
  Set(&average, "IncludePadding", uint32_t{0});
  EXPECT_EQ(ResultOf<float>(average, {1, 2, 3, 4}),
            (Floats{0.25f, 0.75f, 0.5f, 1, 2.5f, 1.5f, 0.75f, 1.75f, 1}));
  OperatorDesc max = Describe("MAX_POOLING_GRAD", Plane(3, 3), Plane(3, 3), {{2, 2}});
  Set(&max, "InputGradientTensor", Plane(2, 2));
  const RunResult result = ExpectAllAgree(max, {Scattered<float>(Plane(3, 3), {1, 2, 3, 2, 4, 2, 5, 6, 7}),
                                                Scattered<float>(Plane(2, 2), {1, 2, 4, 5})});
  EXPECT_EQ(Gathered<float>(Plane(3, 3), result.outputs[0]), (Floats{0, 0, 0, 0, 3, 0, 0, 4, 5}));
}

// ONNX's maxunpool_export_without_output_shape; then duplicates and indices out of range.
TEST(MaxUnpooling, WritesWhereTheIndicesSay) {
  const TensorDesc input = Plane(2, 2), indices = Packed(DataType::kUInt64, {1, 1, 2, 2});
  for (const TensorDesc& output : {Plane(4, 4), Strided(DataType::kFloat32, {1, 1, 4, 4}, {16, 16, 1, 4})}) {
    const OperatorDesc desc = MakeDesc(
        "MAX_UNPOOLING", {{"InputTensor", input}, {"IndicesTensor", indices}, {"OutputTensor", output}});
    const auto run = [&](const std::vector<uint64_t>& places) {
      const RunResult result =
          ExpectAllAgree(desc, {Scattered<float>(input, {1, 2, 3, 4}), Scattered<uint64_t>(indices, places)});
      return Gathered<float>(output, result.outputs[0]);
    };
    EXPECT_EQ(run({5, 7, 13, 15}), (Floats{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}));
    EXPECT_EQ(run({3, 3, 16, ~uint64_t{0}}), (Floats{0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace anydml::testing
