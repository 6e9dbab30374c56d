// The generated structs: a member of every type, from a description that was read.
#include "schema/descriptions.generated.h"

#include "check.h"

namespace anydml::testing {
namespace {

class Descriptions : public ::testing::Test {
 protected:
  const OperatorDesc& Read(DescBuilder& builder) {
    EXPECT_TRUE(IsOk(ReadOperatorDesc(builder.Build(), 0x6400, &desc_)));
    return desc_;
  }

  OperatorDesc desc_;
};

TEST_F(Descriptions, TensorsNumbersAndEnums) {
  DescBuilder builder(*FindOperator(OperatorType::kTopK1), 0x6400);
  builder.tensor("InputTensor").SetSizes({3, 5});
  builder.tensor("OutputValueTensor").SetSizes({3, 2});
  builder.SetWord("Axis", 1);
  builder.SetWord("K", 2);
  builder.SetWord("AxisDirection", 1);
  const auto top_k = TopK1Desc::From(Read(builder));
  EXPECT_EQ(&top_k.input, desc_.tensor("InputTensor"));
  EXPECT_EQ(&top_k.output_value, desc_.tensor("OutputValueTensor"));
  EXPECT_EQ(&top_k.output_index, desc_.tensor("OutputIndexTensor"));
  EXPECT_EQ(top_k.axis, 1u);
  EXPECT_EQ(top_k.k, 2u);
  EXPECT_EQ(top_k.axis_direction, AxisDirection::kDecreasing);
}

TEST_F(Descriptions, OptionalFields) {
  DescBuilder builder(*FindOperator(OperatorType::kConvolution), 0x6400);
  builder.field("BiasTensor").null = true;
  builder.field("Strides").words = {2, 3};
  builder.SetWord("GroupCount", 4);
  {
    const auto convolution = ConvolutionDesc::From(Read(builder));
    EXPECT_EQ(convolution.bias, nullptr);
    EXPECT_EQ(convolution.fused_activation, nullptr);
    EXPECT_EQ(convolution.strides.size(), 2u);
    EXPECT_EQ(convolution.strides[1], 3u);
    EXPECT_EQ(convolution.group_count, 4u);
    EXPECT_EQ(convolution.mode, ConvolutionMode::kConvolution);
  }
  builder.field("BiasTensor").null = false;
  DescBuilder elu = DescBuilder::Fused(*FindOperator(OperatorType::kActivationElu), 0x6400);
  elu.field("Alpha").words = {0x40000000};
  builder.field("FusedActivation").null = false;
  builder.field("FusedActivation").fused = {elu};
  const auto convolution = ConvolutionDesc::From(Read(builder));
  EXPECT_EQ(convolution.bias, desc_.tensor("BiasTensor"));
  ASSERT_NE(convolution.fused_activation, nullptr);
  const auto activation = ActivationEluDesc::From(*convolution.fused_activation);
  EXPECT_EQ(activation.alpha, 2.0f);
  EXPECT_EQ(activation.input.rank, 0u);  // fused activations have no tensors
}

TEST_F(Descriptions, ArraysOfTensorsAndOperators) {
  DescBuilder join(*FindOperator(OperatorType::kJoin), 0x6400);
  const auto joined = JoinDesc::From(Read(join));
  EXPECT_EQ(joined.inputs.size(), 2u);
  EXPECT_EQ(&joined.inputs[1], desc_.inputs()[1]);
  DescBuilder gru(*FindOperator(OperatorType::kGru), 0x6400);
  gru.SetWord("LinearBeforeReset", 7);
  const auto recurrent = GruDesc::From(Read(gru));
  ASSERT_EQ(recurrent.activation_descs.size(), 2u);
  EXPECT_STREQ(recurrent.activation_descs[0].schema->name, "ACTIVATION_RELU");
  EXPECT_TRUE(recurrent.linear_before_reset);
}

TEST_F(Descriptions, TheOtherTypes) {
  DescBuilder clip(*FindOperator(OperatorType::kElementWiseClip1), 0x6400);
  clip.SetDataType(0, static_cast<uint32_t>(DataType::kInt64));
  clip.field("ScaleBias").words = {0x3F800000, 0x40000000};
  clip.field("Max").words = {5, 6};
  const auto clipped = ElementWiseClip1Desc::From(Read(clip));
  ASSERT_NE(clipped.scale_bias, nullptr);
  EXPECT_EQ(clipped.scale_bias->bias, 2.0f);
  EXPECT_EQ(clipped.min_max_data_type, DataType::kInt64);
  EXPECT_EQ(clipped.max.bytes, (std::array<uint8_t, 8>{5, 0, 0, 0, 6, 0, 0, 0}));
  DescBuilder upsample(*FindOperator(OperatorType::kUpsample2d), 0x6400);
  upsample.field("ScaleSize").words = {3, 2};
  EXPECT_EQ(Upsample2dDesc::From(Read(upsample)).scale_size.width, 3u);
  DescBuilder slice(*FindOperator(OperatorType::kSlice1), 0x6400);
  slice.field("InputWindowStrides").words = {0xFFFFFFFF, 1};
  EXPECT_EQ(Slice1Desc::From(Read(slice)).input_window_strides[0], -1);
  DescBuilder diagonal(*FindOperator(OperatorType::kDiagonalMatrix), 0x6400);
  diagonal.field("Offset").words = {0xFFFFFFFE};
  EXPECT_EQ(DiagonalMatrixDesc::From(Read(diagonal)).offset, -2);
  DescBuilder resample(*FindOperator(OperatorType::kResample), 0x6400);
  resample.field("Scales").words = {0x3F800000, 0x40000000};
  EXPECT_EQ(ResampleDesc::From(Read(resample)).scales[1], 2.0f);
}

TEST_F(Descriptions, BeforeInference) {
  OperatorDesc desc;
  desc.schema = FindOperator(OperatorType::kTopK);
  desc.fields = {TensorDesc{}, {}, {}, uint32_t{0}, uint32_t{1}};
  EXPECT_EQ(TopKDesc::From(desc).output_value.rank, 0u);
  desc.fields[4] = {};
  EXPECT_THROW(TopKDesc::From(desc), std::exception);
}

TEST_F(Descriptions, OfAnotherOperator) {
  DescBuilder builder(*FindOperator(OperatorType::kTopK), 0x6400);
  EXPECT_THROW(TopK1Desc::From(Read(builder)), std::exception);
}

}  // namespace
}  // namespace anydml::testing
