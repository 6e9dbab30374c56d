// ONE_HOT against the examples of DirectML's page, and error messages.
#include <gtest/gtest.h>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<uint32_t>;

OperatorDesc OneHot(const TensorDesc& indices, const TensorDesc& values, const TensorDesc& output,
                    uint32_t axis) {
  return MakeDesc(
      "ONE_HOT",
      {{"IndicesTensor", indices}, {"ValuesTensor", values}, {"OutputTensor", output}, {"Axis", axis}});
}

template <typename Index>
Floats Values(DataType type, const Sizes& sizes, const std::vector<Index>& index_values,
              const Sizes& value_sizes, const Floats& on_and_off, uint32_t axis) {
  const TensorDesc indices = Packed(type, sizes), values = Packed(DataType::kFloat32, value_sizes);
  const TensorDesc output = Packed(DataType::kFloat32, {1, 1, 3, 4});
  const RunResult result = ExpectAllAgree(OneHot(indices, values, output, axis),
                                          {Scattered(indices, index_values), Scattered(values, on_and_off)});
  EXPECT_TRUE(result.data_errors.empty());
  return Gathered<float>(output, result.outputs[0]);
}

TEST(OneHot, PageExamples) {
  EXPECT_EQ(Values<uint32_t>(DataType::kUInt32, {1, 1, 3, 1}, {0, 3, 2}, {1, 1, 1, 2}, {0, 1}, 3),
            (Floats{1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(Values<uint32_t>(DataType::kUInt32, {1, 1, 1, 4}, {0, 2, 1, 0}, {1, 1, 1, 2}, {0, 1}, 2),
            (Floats{1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(Values<uint32_t>(DataType::kUInt32, {1, 1, 3, 1}, {0, 3, 2}, {1, 1, 3, 1}, {4, 2, 9}, 3),
            (Floats{2, 4, 4, 4, 4, 4, 4, 2, 4, 4, 2, 4}));
  EXPECT_EQ(Values<int32_t>(DataType::kInt32, {1, 1, 3, 1}, {-3, 100, 3}, {1, 1, 1, 2}, {0, 1}, 3),
            (Floats{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(OneHot, BelowTheBeginningAllAreOff) {
  EXPECT_EQ(
      Values<int64_t>(DataType::kInt64, {1, 1, 3, 1}, {-4, -5, -(int64_t{1} << 32)}, {1, 1, 1, 2}, {0, 1}, 3),
      (Floats{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(OneHotCheck, Refusals) {
  const auto message = [](const Sizes& indices, const Sizes& values, uint32_t axis) {
    const OperatorDesc desc = OneHot(Packed(DataType::kInt32, indices), Packed(DataType::kFloat32, values),
                                     Packed(DataType::kFloat32, {2, 3}), axis);
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  EXPECT_EQ(message({2, 1}, {1, 2}, 1), "");
  EXPECT_EQ(message({2, 1}, {1, 2}, 2),
            "ONE_HOT: Axis is 2 but OutputTensor.DimensionCount is 2; Axis must be in [0, 1]");
  EXPECT_EQ(message({2, 1}, {1, 1}, 1),
            "ONE_HOT: ValuesTensor.Sizes is {1,1} but must have at least 2 elements, OffValue and OnValue");
  EXPECT_EQ(
      message({2, 1}, {1, 2}, 0),
      "ONE_HOT: IndicesTensor.Sizes is {2,1} but must be {1,3}: the sizes of OutputTensor, with 1 along "
      "Axis");
}

}  // namespace
}  // namespace anydml::testing
