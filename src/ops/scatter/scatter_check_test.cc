// Error messages of the scatter operators, and the outputs that they derive.
#include <gtest/gtest.h>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

OperatorDesc ScatterNd(const Sizes& input, const Sizes& indices, const Sizes& updates,
                       uint32_t input_dimensions, uint32_t indices_dimensions) {
  return MakeDesc("SCATTER_ND", {{"InputTensor", Packed(DataType::kFloat32, input)},
                                 {"IndicesTensor", Packed(DataType::kInt32, indices)},
                                 {"UpdatesTensor", Packed(DataType::kFloat32, updates)},
                                 {"OutputTensor", Packed(DataType::kFloat32, input)},
                                 {"InputDimensionCount", input_dimensions},
                                 {"IndicesDimensionCount", indices_dimensions}});
}

OperatorDesc ScatterElements(const Sizes& input, const Sizes& indices, uint32_t axis) {
  return MakeDesc("SCATTER_ELEMENTS", {{"InputTensor", Packed(DataType::kFloat32, input)},
                                       {"IndicesTensor", Packed(DataType::kInt32, indices)},
                                       {"UpdatesTensor", Packed(DataType::kFloat32, indices)},
                                       {"OutputTensor", Packed(DataType::kFloat32, input)},
                                       {"Axis", axis}});
}

std::string Refusal(const OperatorDesc& desc) {
  const Status status = ImplementationOf(desc).check(desc, kLatestFeatureLevel);
  EXPECT_EQ(status.code(), status.ok() ? Code::kOk : Code::kInvalidArgument);
  return status.message();
}

TEST(ScatterNdCheck, AcceptsThePagesShapes) {
  EXPECT_EQ(Refusal(ScatterNd({1, 8}, {4, 1}, {1, 4}, 1, 2)), "");
  EXPECT_EQ(Refusal(ScatterNd({3, 4, 5, 6, 7}, {1, 1, 1, 2, 3}, {1, 1, 2, 6, 7}, 5, 3)), "");
}

TEST(ScatterNdCheck, DimensionCountsAreInclusive) {
  EXPECT_EQ(Refusal(ScatterNd({8}, {1}, {1}, 1, 1)), "");
  EXPECT_EQ(
      Refusal(ScatterNd({1, 8}, {4, 1}, {1, 4}, 3, 2)),
      "SCATTER_ND: InputDimensionCount is 3 but InputTensor.DimensionCount is 2; InputDimensionCount must "
      "be in [1, 2]");
  EXPECT_EQ(
      Refusal(ScatterNd({1, 8}, {4, 1}, {1, 4}, 0, 2)),
      "SCATTER_ND: InputDimensionCount is 0 but InputTensor.DimensionCount is 2; InputDimensionCount must "
      "be in [1, 2]");
  EXPECT_EQ(Refusal(ScatterNd({1, 8}, {4, 1}, {1, 4}, 1, 0xFFFFFFFF)),
            "SCATTER_ND: IndicesDimensionCount is 4294967295 but IndicesTensor.DimensionCount is 2; "
            "IndicesDimensionCount must be in [1, 2]");
}

TEST(ScatterNdCheck, LeadingDimensionsAreOne) {
  EXPECT_EQ(
      Refusal(ScatterNd({2, 1, 8}, {1, 4, 1}, {1, 1, 4}, 2, 2)),
      "SCATTER_ND: InputTensor.Sizes[0] is 2 but InputDimensionCount is 2 of 3; the dimensions left of the "
      "last 2 must be 1");
  EXPECT_EQ(
      Refusal(ScatterNd({1, 1, 8}, {3, 4, 1}, {1, 1, 4}, 1, 2)),
      "SCATTER_ND: IndicesTensor.Sizes[0] is 3 but IndicesDimensionCount is 2 of 3; the dimensions left of "
      "the last 2 must be 1");
}

TEST(ScatterNdCheck, TupleFitsTheInput) {
  EXPECT_EQ(
      Refusal(ScatterNd({1, 8}, {4, 2}, {1, 4}, 1, 2)),
      "SCATTER_ND: IndicesTensor.Sizes[1], the size of an index tuple, is 2 but InputDimensionCount is 1; it "
      "must be in [1, 1]");
}

TEST(ScatterNdCheck, UpdatesFitTheDimensionCount) {
  EXPECT_EQ(Refusal(ScatterNd({3, 4, 5}, {2, 2, 1}, {2, 2, 4}, 3, 3)),
            "SCATTER_ND: UpdatesTensor would need IndicesDimensionCount - 1 + InputDimensionCount - 1 = 4 "
            "dimensions "
            "but DimensionCount is 3; it must be at least 4");
}

TEST(ScatterNdCheck, UpdatesSizesAreExact) {
  const std::string message = Refusal(ScatterNd({3, 4, 5, 6, 7}, {1, 1, 1, 2, 3}, {1, 2, 5, 6, 7}, 5, 3));
  EXPECT_EQ(message.find("SCATTER_ND: UpdatesTensor.Sizes is {1,2,5,6,7} but must be {1,1,2,6,7}: "), 0u)
      << message;
  EXPECT_NE(Refusal(ScatterNd({1, 8}, {4, 1}, {4, 1}, 1, 2)), "");
  EXPECT_NE(Refusal(ScatterNd({1, 8}, {4, 1}, {2, 4}, 1, 2)), "");  // a leading dimension that is not 1
}

TEST(ScatterElementsCheck, IndicesHaveTheInputsSizesOffTheAxis) {
  EXPECT_EQ(Refusal(ScatterElements({3, 4}, {3, 9}, 1)), "");
  EXPECT_EQ(
      Refusal(ScatterElements({3, 4}, {2, 3}, 1)),
      "SCATTER_ELEMENTS: IndicesTensor.Sizes is {2,3} but must be {3,3}: the sizes of InputTensor, with any "
      "size along Axis");
}

TEST(ScatterElementsCheck, AxisIsADimension) {
  EXPECT_EQ(Refusal(ScatterElements({3, 4}, {3, 4}, 2)),
            "SCATTER_ELEMENTS: Axis is 2 but InputTensor.DimensionCount is 2; Axis must be in [0, 1]");
}

TEST(ScatterInfer, OutputIsLikeTheInput) {
  OperatorDesc desc = ScatterElements({3, 4}, {3, 2}, 1);
  desc.fields[0] = Strided(DataType::kFloat32, {3, 4}, {0, 1});
  desc.fields[3] = std::monostate();
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_TRUE(SameLayout(*desc.tensor("OutputTensor"), Packed(DataType::kFloat32, {3, 4})));

  desc.fields[0] = std::monostate();
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace anydml::testing
