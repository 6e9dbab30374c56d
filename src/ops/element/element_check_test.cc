// Invalid element-wise operators, and the outputs that valid ones derive.
#include <gtest/gtest.h>

#include "ops/element/expect_values.h"
#include "schema/validate.h"

namespace anydml::testing {
namespace {

Values Of(DataType type, const std::vector<uint32_t>& sizes) { return {Packed(type, sizes), {}}; }

// The error, from the schema or, for what the schema allows, from the operator.
std::string RefusalOf(const OperatorDesc& desc, FeatureLevel level = kLatestFeatureLevel) {
  Status status = ValidateOperatorDesc(desc, level);
  if (status.ok()) status = ImplementationOf(desc).check(desc, level);
  EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  return status.message();
}

constexpr DataType kF32 = DataType::kFloat32, kF16 = DataType::kFloat16, kI8 = DataType::kInt8,
                   kU8 = DataType::kUInt8, kI32 = DataType::kInt32, kU32 = DataType::kUInt32,
                   kU4 = DataType::kUInt4, kI4 = DataType::kInt4;

TEST(ElementCheck, SizesTypesAndRanksAgree) {
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_ADD", {Of(kF32, {2, 3}), Of(kF32, {2, 1})}, {}, {Of(kF32, {2, 3})})),
      "ELEMENT_WISE_ADD: BTensor.Sizes is {2,1} but ATensor.Sizes is {2,3}; they must be the same");
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_ABS", {Of(kF32, {2, 3})}, {}, {Of(kF32, {6})})),
      "ELEMENT_WISE_ABS: OutputTensor.DimensionCount is 1 but InputTensor.DimensionCount is 2; they must be "
      "the same");
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_MAX", {Of(kF32, {3}), Of(kF16, {3})}, {}, {Of(kF32, {3})})),
      "ELEMENT_WISE_MAX: BTensor.DataType is FLOAT16 but ATensor.DataType is FLOAT32; they must be the same");
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_LOGICAL_LESS_THAN", {Of(kI8, {3}), Of(kU8, {3})}, {}, {Of(kU8, {3})})),
      "ELEMENT_WISE_LOGICAL_LESS_THAN: BTensor.DataType is UINT8 but ATensor.DataType is INT8; they must be "
      "the same");
  EXPECT_EQ(
      RefusalOf(
          Describe("ELEMENT_WISE_IF", {Of(kU8, {3}), Of(kF32, {3}), Of(kF16, {3})}, {}, {Of(kF32, {3})})),
      "ELEMENT_WISE_IF: BTensor.DataType is FLOAT16 but ATensor.DataType is FLOAT32; they must be the same");
  EXPECT_EQ(RefusalOf(Describe("ACTIVATION_PARAMETERIZED_RELU", {Of(kF32, {2, 3}), Of(kF32, {1, 3})}, {},
                               {Of(kF32, {2, 3})})),
            "ACTIVATION_PARAMETERIZED_RELU: SlopeTensor.Sizes is {1,3} but InputTensor.Sizes is {2,3}; they "
            "must be "
            "the same");
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_DEQUANTIZE_LINEAR", {Of(kU8, {3}), Of(kF32, {3}), Of(kI8, {3})}, {},
                         {Of(kF32, {3})})),
      "ELEMENT_WISE_DEQUANTIZE_LINEAR: ZeroPointTensor.DataType is INT8 but InputTensor.DataType is UINT8; "
      "they must be the same");
  const OperatorDesc clip =
      Describe("ELEMENT_WISE_CLIP1", {Of(kI32, {3})}, {{"MinMaxDataType", 1u}}, {Of(kI32, {3})});
  EXPECT_EQ(RefusalOf(clip),
            "ELEMENT_WISE_CLIP1: MinMaxDataType is FLOAT32 but InputTensor.DataType is INT32; they must be "
            "the same");
}

TEST(ElementCheck, TypesAndLevels) {
  EXPECT_EQ(RefusalOf(Describe("ELEMENT_WISE_IF", {Of(kU32, {3}), Of(kF32, {3}), Of(kF32, {3})}, {},
                               {Of(kF32, {3})})),
            "ELEMENT_WISE_IF: ConditionTensor.DataType is UINT32, allowed at feature level 6.4: UINT8");
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_ADD", {Of(kI8, {3}), Of(kI8, {3})}, {}, {Of(kI8, {3})}), 0x5000),
      "ELEMENT_WISE_ADD: ATensor.DataType is INT8, allowed at feature level 5.0: FLOAT32, FLOAT16, UINT32, "
      "INT32, UINT64, INT64; DML_FEATURE_LEVEL_5_1 allows it");
  EXPECT_EQ(
      RefusalOf(Describe("ACTIVATION_SWISH", {Of(kF32, {3})}, {}, {Of(kF32, {3})}), 0x6100),
      "ACTIVATION_SWISH: the operator does not exist at feature level 6.1; DML_FEATURE_LEVEL_6_2 allows it");
  const OperatorDesc quantize =
      Describe("ELEMENT_WISE_QUANTIZE_LINEAR", {Of(kF32, {3}), Of(kF32, {3})}, {}, {Of(kU8, {3})});
  EXPECT_EQ(RefusalOf(quantize, 0x6100),
            "ELEMENT_WISE_QUANTIZE_LINEAR: ZeroPointTensor is null; it is required at feature level 6.1; "
            "DML_FEATURE_LEVEL_6_2 allows it");
  EXPECT_EQ(RefusalOf(quantize, 0x6200), "");
  EXPECT_EQ(
      RefusalOf(Describe("ELEMENT_WISE_ROUND", {Of(kF32, {3})}, {{"RoundingMode", 3u}}, {Of(kF32, {3})})),
      "ELEMENT_WISE_ROUND: RoundingMode is 3, allowed at feature level 6.4: "
      "DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN (0), DML_ROUNDING_MODE_TOWARD_ZERO (1), "
      "DML_ROUNDING_MODE_TOWARD_INFINITY (2)");
}

// The error for a fused activation that the operator does not allow lists those that it allows.
TEST(ElementCheck, FusedActivations) {
  const auto add1 = [](const FieldValue& fused) {
    return Describe("ELEMENT_WISE_ADD1", {Of(kF32, {3}), Of(kF32, {3})}, {{"FusedActivation", fused}},
                    {Of(kF32, {3})});
  };
  const std::string allowed =
      ", allowed at feature level 6.4: ACTIVATION_ELU, ACTIVATION_HARD_SIGMOID, ACTIVATION_IDENTITY, "
      "ACTIVATION_LEAKY_RELU, ACTIVATION_LINEAR, ACTIVATION_PARAMETRIC_SOFTPLUS, ACTIVATION_RELU, "
      "ACTIVATION_SCALED_ELU, ACTIVATION_SCALED_TANH, ACTIVATION_SIGMOID, ACTIVATION_SOFTPLUS, "
      "ACTIVATION_SOFTSIGN, ACTIVATION_TANH, ACTIVATION_THRESHOLDED_RELU, ACTIVATION_SHRINK, "
      "ACTIVATION_CELU, "
      "ACTIVATION_GELU";
  for (const char* name :
       {"ACTIVATION_SWISH", "ACTIVATION_HARD_SWISH", "ACTIVATION_PARAMETERIZED_RELU", "ACTIVATION_SOFTMAX",
        "ACTIVATION_HARDMAX", "ELEMENT_WISE_CLIP", "ELEMENT_WISE_ABS"}) {
    EXPECT_EQ(RefusalOf(add1(Fused(name))),
              StrCat("ELEMENT_WISE_ADD1: FusedActivation.Type is ", name, allowed));
  }
  EXPECT_EQ(
      RefusalOf(add1(Fused("ACTIVATION_RELU", {{"InputTensor", Packed(kF32, {3})}}))),
      "ELEMENT_WISE_ADD1: FusedActivation: ACTIVATION_RELU: InputTensor must be null in a fused activation");
  // A zeroed description means a steepness of 1.
  EXPECT_EQ(RefusalOf(add1(Fused("ACTIVATION_SOFTPLUS", {{"Steepness", 0.0f}})), 0x6200), "");
}

TEST(ElementCheck, Softplus) {
  const auto softplus = [](float steepness) {
    return Describe("ACTIVATION_SOFTPLUS", {Of(kF32, {3})}, {{"Steepness", steepness}}, {Of(kF32, {3})});
  };
  EXPECT_EQ(RefusalOf(softplus(0.5f), 0x6200),
            "ACTIVATION_SOFTPLUS: Steepness is 0.5 but must be at least 1 at feature level 6.2 (any number "
            "from 6.4 "
            "on)");
  EXPECT_EQ(RefusalOf(softplus(1), 0x6200), "");
  EXPECT_EQ(RefusalOf(softplus(0.5f), 0x6400), "");
}

TEST(ElementCheck, QuantizeLinear) {
  const auto quantize = [](DataType input, DataType scale) {
    return Describe("ELEMENT_WISE_QUANTIZE_LINEAR", {Of(input, {3}), Of(scale, {3})}, {}, {Of(kU8, {3})});
  };
  EXPECT_EQ(RefusalOf(quantize(kF32, kF16)),
            "ELEMENT_WISE_QUANTIZE_LINEAR: ScaleTensor.DataType is FLOAT16 but must be FLOAT32, that of "
            "InputTensor");
  EXPECT_EQ(RefusalOf(quantize(kF16, kF32)),
            "ELEMENT_WISE_QUANTIZE_LINEAR: ScaleTensor.DataType is FLOAT32 but must be FLOAT16, that of "
            "InputTensor");
  EXPECT_EQ(RefusalOf(quantize(kI32, kF16)),
            "ELEMENT_WISE_QUANTIZE_LINEAR: ScaleTensor.DataType is FLOAT16 but must be FLOAT32 where "
            "InputTensor.DataType is INT32");
  EXPECT_EQ(RefusalOf(quantize(kI32, kF32)), "");
}

TEST(ElementCheck, QuantizationTypeAndCount) {
  const auto quantize = [](uint32_t type, const std::vector<Values>& parameters) {
    std::vector<Values> inputs = {Of(kF32, {4})};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    return Describe("QUANTIZE", inputs, {{"QuantizationType", type}}, {Of(kU8, {4})});
  };
  const Values scale = Of(kF32, {1}), zero_point = Of(kU8, {1});
  EXPECT_EQ(
      RefusalOf(quantize(0, {scale})),
      "QUANTIZE: QuantizationType is DML_QUANTIZATION_TYPE_NONE (0) but must be DML_QUANTIZATION_TYPE_SCALE "
      "(1) or DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT (2)");
  EXPECT_EQ(RefusalOf(quantize(1, {})),
            "QUANTIZE: QuantizationTensorCount is 0 but must be 1 for DML_QUANTIZATION_TYPE_SCALE");
  EXPECT_EQ(RefusalOf(quantize(1, {scale, zero_point})),
            "QUANTIZE: QuantizationTensorCount is 2 but must be 1 for DML_QUANTIZATION_TYPE_SCALE");
  EXPECT_EQ(
      RefusalOf(quantize(2, {scale})),
      "QUANTIZE: QuantizationTensorCount is 1 but must be 2 for DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT");
  EXPECT_EQ(
      RefusalOf(quantize(2, {scale, zero_point, zero_point})),
      "QUANTIZE: QuantizationTensorCount is 3 but must be 2 for DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT");
  EXPECT_EQ(RefusalOf(quantize(3, {scale})),
            "QUANTIZE: QuantizationType is 3, allowed at feature level 6.4: DML_QUANTIZATION_TYPE_NONE (0), "
            "DML_QUANTIZATION_TYPE_SCALE (1), DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT (2)");
  EXPECT_EQ(RefusalOf(quantize(2, {scale, zero_point})), "");
}

TEST(ElementCheck, BlocksOfManyDimensions) {
  const std::vector<uint32_t> whole(8, 8), fewer(8, 2), more(8, 4);
  EXPECT_EQ(
      RefusalOf(
          Describe("QUANTIZE", {Of(kF32, whole), Of(kF32, fewer), Of(kU8, more)}, {}, {Of(kU8, whole)})),
      "QUANTIZE: scale and zero point have blocks of different sizes in so many dimensions that there are "
      "24 loops over them, but there may be 16");
}

TEST(ElementCheck, QuantizationTensors) {
  const auto quantize = [](const Values& scale, const Values& zero_point, DataType output = kU8) {
    return RefusalOf(Describe("QUANTIZE", {Of(kF32, {2, 6}), scale, zero_point}, {}, {Of(output, {2, 6})}));
  };
  const auto dequantize = [](DataType input, const Values& scale, const Values& zero_point) {
    return RefusalOf(Describe("DEQUANTIZE", {Of(input, {2, 6}), scale, zero_point}, {}, {Of(kF32, {2, 6})}));
  };
  EXPECT_EQ(quantize(Of(kU8, {1, 1}), Of(kU8, {1, 1})),
            "QUANTIZE: QuantizationTensors[0] (the scale).DataType is UINT8 but must be FLOAT32 or FLOAT16");
  EXPECT_EQ(quantize(Of(kF32, {1, 1}), Of(kI8, {1, 1})),
            "QUANTIZE: QuantizationTensors[1] (the zero point).DataType is INT8 but must be UINT8, that of "
            "OutputTensor");
  EXPECT_EQ(dequantize(kI4, Of(kF32, {1, 1}), Of(kU4, {1, 1})),
            "DEQUANTIZE: QuantizationTensors[1] (the zero point).DataType is UINT4 but must be INT4, that of "
            "InputTensor");
  EXPECT_EQ(
      dequantize(kI4, Of(kF16, {1, 1}), Of(kI4, {1, 1})),
      "DEQUANTIZE: OutputTensor.DataType is FLOAT32 but must be FLOAT16, that of QuantizationTensors[0] (the "
      "scale)");
  EXPECT_EQ(
      quantize(Of(kF32, {1, 4}), Of(kU8, {1, 4})),
      "QUANTIZE: QuantizationTensors[0].Sizes[1] is 4 but must divide InputTensor.Sizes[1], which is 6");
  EXPECT_EQ(
      quantize(Of(kF32, {4, 6}), Of(kU8, {1, 1})),
      "QUANTIZE: QuantizationTensors[0].Sizes[0] is 4 but must divide InputTensor.Sizes[0], which is 2");
  EXPECT_EQ(
      dequantize(kU4, Of(kF32, {1, 12}), Of(kU4, {1, 1})),
      "DEQUANTIZE: QuantizationTensors[0].Sizes[1] is 12 but must divide InputTensor.Sizes[1], which is 6");
  EXPECT_EQ(quantize(Of(kF32, {2, 3}), Of(kU8, {2, 2})),
            "QUANTIZE: QuantizationTensors[1].Sizes[1] is 2 and QuantizationTensors[0].Sizes[1] is 3 but one "
            "must divide the other");
  EXPECT_EQ(
      quantize(Of(kF32, {1, 1}), Of(kU8, {1, 4})),
      "QUANTIZE: QuantizationTensors[1].Sizes[1] is 4 but must divide InputTensor.Sizes[1], which is 6");
  EXPECT_EQ(quantize(Of(kF32, {1, 3}), Of(kU8, {2, 6})), "");
  EXPECT_EQ(quantize(Of(kF32, {2, 6}), Of(kU8, {1, 3})), "");
  EXPECT_EQ(quantize(Of(kF32, {3}), Of(kU8, {2, 3})),
            "QUANTIZE: QuantizationTensors[0].DimensionCount is 1 but InputTensor.DimensionCount is 2; they "
            "must be "
            "the same");
  EXPECT_EQ(quantize(Of(kF32, {2, 3}), Of(kI4, {2, 1}), kI4), "");
  EXPECT_EQ(RefusalOf(Describe("QUANTIZE", {Of(kF32, {4}), Of(kF32, {1})}, {}, {Of(kU8, {8})})),
            "QUANTIZE: InputTensor.Sizes is {4} but must be {8}: all tensors have the same sizes");
  EXPECT_EQ(RefusalOf(Describe("DEQUANTIZE", {Of(kU8, {4}), Of(kF32, {1})}, {}, {Of(kF32, {2})})),
            "DEQUANTIZE: InputTensor.Sizes is {4} but must be {2}: all tensors have the same sizes");
}

TEST(ElementCheck, QuantizedLinearAdd) {
  const char* const name = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD";
  const Values data = Of(kU8, {3}), scale = Of(kF32, {1}), zero_point = Of(kU8, {1});
  const std::vector<Values> good = {data, scale, zero_point, data, scale, zero_point, scale, zero_point};
  EXPECT_EQ(RefusalOf(Describe(name, good, {}, {data})), "");
  constexpr std::pair<size_t, const char*> kParameters[] = {
      {1, "AScaleTensor"},     {2, "AZeroPointTensor"},  {4, "BScaleTensor"},
      {5, "BZeroPointTensor"}, {6, "OutputScaleTensor"}, {7, "OutputZeroPointTensor"}};
  for (const auto& [at, field] : kParameters) {
    std::vector<Values> bad = good;
    bad[at] = Of(bad[at].tensor.type, {3});
    EXPECT_EQ(
        RefusalOf(Describe(name, bad, {}, {data})),
        StrCat(name, ": ", field, ".Sizes is {3} but must be all 1: one number holds for all elements"));
  }
  std::vector<Values> bad = good;
  bad[3] = Of(kU8, {2});
  EXPECT_EQ(
      RefusalOf(Describe(name, bad, {}, {data})),
      "ELEMENT_WISE_QUANTIZED_LINEAR_ADD: BTensor.Sizes is {2} but must be {3}: it is added to ATensor");
  EXPECT_EQ(
      RefusalOf(Describe(name, good, {}, {Of(kU8, {6})})),
      "ELEMENT_WISE_QUANTIZED_LINEAR_ADD: OutputTensor.Sizes is {6} but must be {3}: it has the sizes of "
      "ATensor");
  bad = good;
  bad[5] = Of(kI8, {1});
  EXPECT_EQ(
      RefusalOf(Describe(name, bad, {}, {data})),
      "ELEMENT_WISE_QUANTIZED_LINEAR_ADD: BZeroPointTensor.DataType is INT8 but BTensor.DataType is UINT8; "
      "they must be the same");
}

TEST(ElementCheck, Adam) {
  const Values data = Of(kF32, {2, 3}), step = Of(kU32, {1, 1});
  const auto adam = [&](const Values& given_step, const Values& gradient) {
    return RefusalOf(
        Describe("ADAM_OPTIMIZER", {data, data, data, gradient, given_step}, {}, {data, data, data}));
  };
  EXPECT_EQ(adam(step, data), "");
  EXPECT_EQ(adam(Of(kU32, {1}), data), "");  // any rank
  EXPECT_EQ(adam(Of(kU32, {2, 3}), data),
            "ADAM_OPTIMIZER: TrainingStepTensor.Sizes is {2,3} but must be all 1: one number holds for all "
            "elements");
  EXPECT_EQ(adam(Of(kF32, {1, 1}), data),
            "ADAM_OPTIMIZER: TrainingStepTensor.DataType is FLOAT32, allowed at feature level 6.4: UINT32");
  EXPECT_EQ(adam(step, Of(kF32, {2, 1})),
            "ADAM_OPTIMIZER: GradientTensor.Sizes is {2,1} but InputParametersTensor.Sizes is {2,3}; they "
            "must be the "
            "same");
}

// The operator checks everything that kernels rely on, even what the schema guarantees.
TEST(ElementCheck, WithoutTheSchema) {
  const OperatorDesc ranks =
      Describe("ELEMENT_WISE_ADD", {Of(kF32, {2}), Of(kF32, {1, 2})}, {}, {Of(kF32, {2})});
  EXPECT_EQ(ImplementationOf(ranks).check(ranks, kLatestFeatureLevel).message(),
            "ELEMENT_WISE_ADD: BTensor.DimensionCount is 2 but must be 1, that of the output");
  const OperatorDesc sizes =
      Describe("ELEMENT_WISE_ADD", {Of(kF32, {2}), Of(kF32, {1})}, {}, {Of(kF32, {2})});
  EXPECT_EQ(ImplementationOf(sizes).check(sizes, kLatestFeatureLevel).message(),
            "ELEMENT_WISE_ADD: BTensor.Sizes is {1} but must be {2}: all tensors have the same sizes");
}

// The outputs' types and sizes, and that they are packed.
void ExpectInferred(OperatorDesc desc, const std::vector<Values>& outputs) {
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  const auto given = desc.outputs();
  ASSERT_EQ(given.size(), outputs.size());
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_TRUE(SameLayout(*given[i], outputs[i].tensor))
        << desc.schema->name << ": " << Name(given[i]->type) << SizesToString(*given[i]);
    EXPECT_EQ(given[i]->total_bytes, outputs[i].tensor.total_bytes);
  }
  EXPECT_EQ(RefusalOf(desc), "");
}

TEST(ElementInfer, SameTypeAndSizes) {
  const Values data = Of(DataType::kInt64, {2, 3});
  ExpectInferred(Describe("ELEMENT_WISE_ADD", {data, data}, {}, {}), {data});
  const Values repeated = {Strided(kF32, {4, 3}, {0, 1}), {}};
  ExpectInferred(Describe("ELEMENT_WISE_EXP", {repeated}, {}, {}), {Of(kF32, {4, 3})});
  ExpectInferred(Describe("ELEMENT_WISE_CLIP1", {data}, {}, {}), {data});
  ExpectInferred(Describe("ACTIVATION_RELU_GRAD", {Of(kF16, {5}), Of(kF16, {5})}, {}, {}), {Of(kF16, {5})});
  // The exponent and the condition do not determine them.
  ExpectInferred(Describe("ELEMENT_WISE_POW", {Of(kF16, {5}), Of(kI32, {5})}, {}, {}), {Of(kF16, {5})});
  ExpectInferred(Describe("ELEMENT_WISE_IF", {Of(kU8, {5}), Of(kF32, {5}), Of(kF32, {5})}, {}, {}),
                 {Of(kF32, {5})});
  const Values halves = Of(kF16, {2, 3});
  ExpectInferred(Describe("ADAM_OPTIMIZER", {halves, halves, halves, halves, Of(kU32, {1, 1})}, {}, {}),
                 {halves, halves, halves});
}

TEST(ElementInfer, TypesThatDiffer) {
  // The function asks for the type of a tensor without sizes.
  const auto with_type = [](OperatorDesc desc, DataType type) {
    desc.fields[static_cast<size_t>(FindField(*desc.schema, "OutputTensor"))] = TensorDesc{.type = type};
    return desc;
  };
  const Values data = Of(kF32, {2, 3});
  const OperatorDesc equals = Describe("ELEMENT_WISE_LOGICAL_EQUALS", {data, data}, {}, {});
  ExpectInferred(equals, {Of(kU8, {2, 3})});
  ExpectInferred(with_type(equals, kU32), {Of(kU32, {2, 3})});
  ExpectInferred(Describe("ELEMENT_WISE_IS_NAN", {data}, {}, {}), {Of(kU8, {2, 3})});
  ExpectInferred(Describe("ELEMENT_WISE_IS_INFINITY", {data}, {}, {}), {Of(kU8, {2, 3})});
  ExpectInferred(Describe("ELEMENT_WISE_BIT_COUNT", {data}, {}, {}), {Of(kU8, {2, 3})});
  ExpectInferred(with_type(Describe("CAST", {data}, {}, {}), DataType::kInt16),
                 {Of(DataType::kInt16, {2, 3})});
  ExpectInferred(Describe("CAST", {Of(kI8, {2})}, {}, {}), {Of(kF32, {2})});
}

TEST(ElementInfer, Quantisation) {
  const Values data = Of(kF32, {2, 6}), scale = Of(kF16, {2, 1});
  ExpectInferred(Describe("QUANTIZE", {data, scale, Of(kI4, {2, 1})}, {}, {}), {Of(kI4, {2, 6})});
  ExpectInferred(Describe("QUANTIZE", {data, scale}, {}, {}), {Of(kU8, {2, 6})});
  ExpectInferred(Describe("DEQUANTIZE", {Of(kU4, {2, 6}), scale, Of(kU4, {2, 1})}, {}, {}),
                 {Of(kF16, {2, 6})});
  ExpectInferred(Describe("DEQUANTIZE", {Of(kI8, {2, 6}), Of(kF32, {1, 1})}, {}, {}), {Of(kF32, {2, 6})});
  ExpectInferred(Describe("ELEMENT_WISE_QUANTIZE_LINEAR", {data, data, Of(kI8, {2, 6})}, {}, {}),
                 {Of(kI8, {2, 6})});
  ExpectInferred(Describe("ELEMENT_WISE_DEQUANTIZE_LINEAR", {Of(kI32, {2}), Of(kF16, {2})}, {}, {}),
                 {Of(kF16, {2})});
  const Values one = Of(kF32, {1}), bytes = Of(kU8, {3}), byte = Of(kU8, {1});
  ExpectInferred(Describe("ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
                          {bytes, one, byte, bytes, one, byte, one, Of(kI8, {1})}, {}, {}),
                 {Of(kI8, {3})});
}

TEST(ElementInfer, NothingToDeriveFrom) {
  OperatorDesc desc = Describe("ELEMENT_WISE_ABS", {}, {}, {});
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).message(),
            "ELEMENT_WISE_ABS: InputTensor has no sizes; the output's sizes cannot be derived without them");
}

}  // namespace
}  // namespace anydml::testing
