// How the roles of fields change descriptions whose tensors get leading 1s.
#include "client/describe/description.h"

#include <gtest/gtest.h>

namespace anydml::client {
namespace {

// `inputs`: the sizes of the first input tensors.
Description WithInputs(OperatorType type, const std::vector<std::vector<uint32_t>>& inputs,
                       FeatureLevel level) {
  const OperatorSchema& schema = *FindOperator(type);
  Description description(schema);
  size_t field = 0;
  for (const std::vector<uint32_t>& sizes : inputs) {
    while (schema.fields[field].kind != FieldKind::kInput) ++field;
    description.AddInput(field++,
                         PackedTensor(DataType::kFloat32, sizes.data(), static_cast<uint32_t>(sizes.size())));
  }
  EXPECT_TRUE(description.AlignInputs(level).ok());
  return description;
}

size_t Index(const Description& description, const char* field) {
  return static_cast<size_t>(FindField(*description.desc().schema, field));
}

Status Set(Description* description, const char* field, const char* text) {
  return description->SetAttribute(Index(*description, field), text);
}

template <typename T>
std::vector<T> Array(const Description& description, const char* field) {
  return std::get<std::vector<T>>(description.desc().fields[Index(description, field)]);
}

TEST(DescriptionTest, AxesMoveWithLeadingOnes) {
  Description reduce = WithInputs(OperatorType::kReduce, {{2, 3}}, 0x2100);
  ASSERT_TRUE(Set(&reduce, "Axes", "1,0").ok());
  EXPECT_EQ(Array<uint32_t>(reduce, "Axes"), (std::vector<uint32_t>{3, 2}));
  EXPECT_EQ(Set(&reduce, "Axes", "2").message(),
            "REDUCE: Axes is 2 but InputTensor has 2 dimensions; it must be in [0, 1]");
}

TEST(DescriptionTest, ArraysPerDimensionGrowWithLeadingOnes) {
  Description tile = WithInputs(OperatorType::kTile, {{2, 3}}, 0x2100);
  ASSERT_TRUE(Set(&tile, "Repeats", "2,5").ok());
  EXPECT_EQ(Array<uint32_t>(tile, "Repeats"), (std::vector<uint32_t>{1, 1, 2, 5}));
  EXPECT_EQ(Set(&tile, "Repeats", "1,2,3").message(),
            "TILE: Repeats has 3 elements but InputTensor has 2 dimensions; they must be equally many");

  Description slice = WithInputs(OperatorType::kSlice1, {{2, 3, 4}}, 0x2100);
  ASSERT_TRUE(Set(&slice, "DimensionCount", "3").ok());
  ASSERT_TRUE(Set(&slice, "InputWindowOffsets", "7,8,9").ok());
  ASSERT_TRUE(Set(&slice, "InputWindowSizes", "4,5,6").ok());
  ASSERT_TRUE(Set(&slice, "InputWindowStrides", "-1,-2,-3").ok());
  EXPECT_EQ(slice.desc().uint("DimensionCount"), 4u);
  EXPECT_EQ(Array<uint32_t>(slice, "InputWindowOffsets"), (std::vector<uint32_t>{0, 7, 8, 9}));
  EXPECT_EQ(Array<uint32_t>(slice, "InputWindowSizes"), (std::vector<uint32_t>{1, 4, 5, 6}));
  EXPECT_EQ(Array<int32_t>(slice, "InputWindowStrides"), (std::vector<int32_t>{1, -1, -2, -3}));

  Description resample = WithInputs(OperatorType::kResample, {{2, 3, 4}}, 0x2100);
  ASSERT_TRUE(Set(&resample, "Scales", "0.5,2,3").ok());
  EXPECT_EQ(Array<float>(resample, "Scales"), (std::vector<float>{1, 0.5f, 2, 3}));
}

TEST(DescriptionTest, SpatialDimensionsStayWhereTheyAre) {
  Description pooling = WithInputs(OperatorType::kMaxPooling, {{2, 3, 4}}, 0x2100);
  ASSERT_TRUE(Set(&pooling, "Strides", "2").ok());
  EXPECT_EQ(pooling.desc().tensor("InputTensor")->rank, 3u);
  EXPECT_EQ(Array<uint32_t>(pooling, "Strides"), (std::vector<uint32_t>{2}));
}

TEST(DescriptionTest, DimensionCountsAreTheTensorsOwn) {
  Description gather = WithInputs(OperatorType::kGather, {{2, 3, 4}, {5}}, 0x3000);
  ASSERT_TRUE(gather.SetDefault(Index(gather, "IndexDimensions")).ok());
  EXPECT_EQ(gather.desc().uint("IndexDimensions"), 1u);
  EXPECT_EQ(gather.desc().tensor("IndicesTensor")->rank, 3u);
  Description gather_nd = WithInputs(OperatorType::kGatherNd, {{2, 3}, {5, 1}}, 0x2100);
  ASSERT_TRUE(gather_nd.SetDefault(Index(gather_nd, "InputDimensionCount")).ok());
  EXPECT_EQ(gather_nd.desc().uint("InputDimensionCount"), 2u);
}

}  // namespace
}  // namespace anydml::client
