// DYNAMIC_QUANTIZE_LINEAR against results computed by hand and ONNX's example.
#include <gtest/gtest.h>

#include <cmath>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

OperatorDesc DynamicQuantize(const TensorDesc& input, const TensorDesc& output, const TensorDesc& scale,
                             const TensorDesc& zero_point) {
  return MakeDesc("DYNAMIC_QUANTIZE_LINEAR", {{"InputTensor", input},
                                              {"OutputTensor", output},
                                              {"OutputScaleTensor", scale},
                                              {"OutputZeroPointTensor", zero_point}});
}

template <typename T>
struct Quantized {
  std::vector<T> values;
  float scale;
  T zero_point;
};

template <typename T>
Quantized<T> Quantize(const std::vector<float>& numbers, DataType type) {
  const TensorDesc input = Packed(DataType::kFloat32, {static_cast<uint32_t>(numbers.size())});
  const TensorDesc output = Packed(type, {static_cast<uint32_t>(numbers.size())});
  const TensorDesc scale = Packed(DataType::kFloat32, {1}), zero_point = Packed(type, {1});
  const RunResult result =
      ExpectAllAgree(DynamicQuantize(input, output, scale, zero_point), {Scattered(input, numbers)});
  return {Gathered<T>(output, result.outputs[0]), Gathered<float>(scale, result.outputs[1])[0],
          Gathered<T>(zero_point, result.outputs[2])[0]};
}

TEST(DynamicQuantize, OnnxExample) {
  const auto q = Quantize<uint8_t>({0, 2, -3, -2.5f, 1.34f, 0.5f}, DataType::kUInt8);
  EXPECT_EQ(q.scale, 5.0f / 255);
  EXPECT_EQ(q.zero_point, 153);
  EXPECT_EQ(q.values, (std::vector<uint8_t>{153, 255, 0, 26, 221, 179}));
}

TEST(DynamicQuantize, TheRangeHasZero) {
  const auto above = Quantize<uint8_t>({1, 2.1f, 1.3f, 2.5f, 3.34f, 4}, DataType::kUInt8);
  EXPECT_EQ(above.scale, 4.0f / 255);
  EXPECT_EQ(above.zero_point, 0);
  EXPECT_EQ(above.values, (std::vector<uint8_t>{64, 134, 83, 159, 213, 255}));
  const auto below = Quantize<uint8_t>({-1, -2.1f, -1.3f, -2.5f, -3.34f, -4}, DataType::kUInt8);
  EXPECT_EQ(below.zero_point, 255);
  EXPECT_EQ(below.values, (std::vector<uint8_t>{191, 121, 172, 96, 42, 0}));
}

TEST(DynamicQuantize, Signed) {
  const auto q = Quantize<int8_t>({0, 255, 100}, DataType::kInt8);
  EXPECT_EQ(q.scale, 1);
  EXPECT_EQ(q.zero_point, -128);
  EXPECT_EQ(q.values, (std::vector<int8_t>{-128, 127, -28}));
}

TEST(DynamicQuantize, ZerosAndNumbersThatAreNone) {
  const auto zeros = Quantize<uint8_t>({0, -0.0f, 0}, DataType::kUInt8);
  EXPECT_EQ(zeros.scale, 1);
  EXPECT_EQ(zeros.zero_point, 0);
  EXPECT_EQ(zeros.values, (std::vector<uint8_t>{0, 0, 0}));
  const auto nan = Quantize<uint8_t>({NAN, -1, 254}, DataType::kUInt8);
  EXPECT_EQ(nan.scale, 1);
  EXPECT_EQ(nan.values, (std::vector<uint8_t>{1, 0, 255}));
  const auto infinite = Quantize<uint8_t>({INFINITY, 1}, DataType::kUInt8);
  EXPECT_EQ(infinite.scale, INFINITY);
  EXPECT_EQ(infinite.values, (std::vector<uint8_t>{0, 0}));
}

TEST(DynamicQuantizeCheck, Refusals) {
  const TensorDesc input = Packed(DataType::kFloat32, {2, 3}), output = Packed(DataType::kUInt8, {2, 3});
  const TensorDesc one = Packed(DataType::kFloat32, {1, 1}), zero_point = Packed(DataType::kUInt8, {1, 1});
  const auto message = [](const OperatorDesc& desc) {
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  EXPECT_EQ(message(DynamicQuantize(input, output, one, zero_point)), "");
  EXPECT_EQ(
      message(DynamicQuantize(input, output, Packed(DataType::kFloat32, {1, 3}), zero_point)),
      "DYNAMIC_QUANTIZE_LINEAR: OutputScaleTensor.Sizes is {1,3} but must be all 1: one number holds for "
      "all elements");
  EXPECT_EQ(message(DynamicQuantize(input, Packed(DataType::kUInt8, {2, 2}), one, zero_point)),
            "DYNAMIC_QUANTIZE_LINEAR: OutputTensor.Sizes is {2,2} but must be {2,3}: it is InputTensor, "
            "quantised");
}

}  // namespace
}  // namespace anydml::testing
