// Error messages of invalid pooling operators, and inferred sizes.
#include <gtest/gtest.h>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Numbers = std::vector<uint32_t>;

struct Fields {
  Numbers input = {1, 2, 5, 6}, output = {1, 2, 2, 2};
  Numbers sizes = {3, 3}, strides = {2, 2}, start = {0, 0}, end = {0, 0}, dilations = {1, 1};
};

OperatorDesc Describe(const Fields& f) {
  return MakeDesc("MAX_POOLING2", {{"InputTensor", Packed(DataType::kFloat32, f.input)},
                                   {"OutputTensor", Packed(DataType::kFloat32, f.output)},
                                   {"DimensionCount", static_cast<uint32_t>(f.sizes.size())},
                                   {"WindowSize", f.sizes},
                                   {"Strides", f.strides},
                                   {"StartPadding", f.start},
                                   {"EndPadding", f.end},
                                   {"Dilations", f.dilations}});
}

std::string Message(const OperatorDesc& desc) {
  return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
}
std::string Message(const Fields& fields) { return Message(Describe(fields)); }

TEST(PoolingCheck, Windows) {
  EXPECT_EQ(Message(Fields{}), "");
  EXPECT_EQ(Message(Fields{.sizes = {3, 0}}), "MAX_POOLING2: WindowSize[1] is 0 but must be at least 1");
  EXPECT_EQ(Message(Fields{.strides = {0, 1}}), "MAX_POOLING2: Strides[0] is 0 but must be at least 1");
  EXPECT_EQ(Message(Fields{.dilations = {1, 0}}), "MAX_POOLING2: Dilations[1] is 0 but must be at least 1");
  EXPECT_EQ(Message(Fields{.sizes = {3}, .strides = {1}, .start = {0}, .end = {0}, .dilations = {1}}),
            "MAX_POOLING2: DimensionCount is 1 but InputTensor.DimensionCount is 4; it must be 2, the number "
            "of spatial dimensions");
  EXPECT_EQ(Message(Fields{.sizes = {7, 3}}),
            "MAX_POOLING2: WindowSize[0] is 7, which covers 7 elements, but InputTensor.Sizes[2] with its "
            "padding is 5; it may be at most 5, or less than a stride more");
  EXPECT_EQ(Message(Fields{.sizes = {0xFFFFFFFF, 3}, .dilations = {0xFFFFFFFF, 1}}),
            "MAX_POOLING2: WindowSize[0] is 4294967295, which covers 18446744060824649731 elements, but "
            "InputTensor.Sizes[2] with its padding is 5; it may be at most 5, or less than a stride more");
}

TEST(PoolingCheck, OutputSizes) {
  // Windows may begin anywhere in the padded input: clients that round up need this.
  EXPECT_EQ(Message(Fields{.output = {1, 2, 3, 3}}), "");
  EXPECT_EQ(Message(Fields{.output = {1, 2, 1, 1}}), "");
  EXPECT_EQ(Message(Fields{.output = {1, 2, 4, 3}}),
            "MAX_POOLING2: OutputTensor.Sizes[2] is 4 but must be at most 3: "
            "InputTensor.Sizes[2] with its padding is 5, Strides[0] is 2 and WindowSize[0] covers 3; "
            "windows begin within the padded input, and their number may be rounded up");
  // If strides are larger than windows, the last window may be outside of it.
  EXPECT_EQ(Message(Fields{.input = {1, 2, 4, 6}, .output = {1, 2, 3, 3}, .sizes = {1, 1}}), "");
  EXPECT_EQ(Message(Fields{.input = {1, 2, 4, 6}, .output = {1, 2, 3, 4}, .sizes = {1, 2}}),
            "MAX_POOLING2: OutputTensor.Sizes[3] is 4 but must be at most 3: "
            "InputTensor.Sizes[3] with its padding is 6, Strides[1] is 2 and WindowSize[1] covers 2; "
            "windows begin within the padded input, and their number may be rounded up");
  EXPECT_EQ(Message(Fields{.output = {1, 3, 2, 2}}),
            "MAX_POOLING2: OutputTensor.Sizes[1] is 3 but must be InputTensor.Sizes[1], which is 2: only "
            "spatial dimensions are pooled");
}

TEST(PoolingCheck, PAndQuantizationParameters) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {1, 2, 1, 1});
  const Numbers ones = {1, 1}, zeros = {0, 0};
  EXPECT_EQ(Message(MakeDesc("LP_POOLING", {{"InputTensor", tensor},
                                            {"OutputTensor", tensor},
                                            {"DimensionCount", 2u},
                                            {"WindowSize", ones},
                                            {"Strides", ones},
                                            {"StartPadding", zeros},
                                            {"EndPadding", zeros},
                                            {"P", 0u}})),
            "LP_POOLING: P is 0 but must be at least 1");
  const TensorDesc bytes = Packed(DataType::kInt8, {1, 2, 1, 1});
  EXPECT_EQ(Message(MakeDesc("QUANTIZED_LINEAR_AVERAGE_POOLING",
                             {{"InputTensor", bytes},
                              {"InputScaleTensor", Packed(DataType::kFloat32, {2, 1, 1, 1})},
                              {"OutputScaleTensor", Packed(DataType::kFloat32, {1})},
                              {"OutputTensor", bytes},
                              {"DimensionCount", 2u},
                              {"WindowSize", ones},
                              {"Strides", ones},
                              {"StartPadding", zeros},
                              {"EndPadding", zeros},
                              {"Dilations", ones},
                              {"IncludePadding", 0u}})),
            "QUANTIZED_LINEAR_AVERAGE_POOLING: InputScaleTensor.Sizes is {2,1,1,1} but must be all 1, or 2 "
            "channels in dimension 1 and 1 elsewhere");
}

TEST(PoolingInfer, DilatedWindows) {
  OperatorDesc desc = Describe(Fields{.start = {1, 0}, .end = {1, 0}, .dilations = {2, 1}});
  desc.fields[static_cast<size_t>(FindField(*desc.schema, "OutputTensor"))] = {};
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_EQ(SizesToString(*desc.tensor("OutputTensor")), "{1,2,2,2}");
  EXPECT_EQ(desc.tensor("OutputIndicesTensor"), nullptr);
}

}  // namespace
}  // namespace anydml::testing
