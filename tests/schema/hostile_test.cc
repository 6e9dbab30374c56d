// Malicious descriptions, and OperatorDescs filled in without C structs.
#include <DirectML.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "check.h"

namespace anydml::testing {
namespace {

TEST(Hostile, NullAndUnknown) {
  OperatorDesc desc;
  EXPECT_TRUE(IsInvalid(ReadOperatorDesc(nullptr, 0x6400, &desc), "DML_OPERATOR_DESC: the pointer is null"));
  for (uint32_t type : {0u, 178u, 0xFFFFFFFFu}) {
    DML_OPERATOR_DESC source = {};
    std::memcpy(&source.Type, &type, sizeof(type));
    source.Desc = &source;
    EXPECT_TRUE(IsInvalid(ReadOperatorDesc(&source, 0x6400, &desc),
                          "DML_OPERATOR_DESC: Type is " + std::to_string(type) + ", which is no operator"));
  }
  for (const OperatorSchema& schema : AllOperators()) {
    const DML_OPERATOR_DESC source = {static_cast<DML_OPERATOR_TYPE>(schema.type), nullptr};
    EXPECT_TRUE(
        IsInvalid(ReadOperatorDesc(&source, 0x6400, &desc), std::string(schema.name) + ": Desc is null"));
  }
}

TEST(Hostile, Arrays) {
  for (const OperatorSchema& schema : AllOperators()) {
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const FieldSchema& field = schema.fields[i];
      if (field.count_field < 0) continue;
      const FieldSchema& count = schema.fields[static_cast<size_t>(field.count_field)];
      SCOPED_TRACE(std::string(schema.name) + ' ' + field.name);
      DescBuilder builder(schema, 0x6400);
      builder.field(i).null = true;
      EXPECT_TRUE(
          IsInvalid(Check(builder, 0x6400), std::string(schema.name) + ": " + field.name + " is null"));
      builder.field(i).null = false;
      const uint32_t limit = field.type == FieldType::kTensorArray ? 1u << 16 : 8;
      for (uint32_t absurd : {limit + 1, 0x40000000u, 0xFFFFFFFFu}) {
        builder.SetWord(count.name, absurd);
        EXPECT_TRUE(IsInvalid(Check(builder, 0x6400), std::string(schema.name) + ": " + count.name + " is " +
                                                          std::to_string(absurd) + "; it must be at most"));
      }
    }
  }
}

TEST(Hostile, EmptyArrays) {
  for (const OperatorSchema& schema : AllOperators()) {
    DescBuilder builder(schema, 0x6400);
    bool only_tensors = false;  // JOIN's inputs and SPLIT's outputs
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const FieldSchema& field = schema.fields[i];
      if (field.count_field < 0) continue;
      builder.field(i).null = true;
      builder.SetWord(schema.fields[static_cast<size_t>(field.count_field)].name, 0);
      only_tensors |=
          field.type == FieldType::kTensorArray && std::string_view(field.name) != "QuantizationTensors";
    }
    const Status status = Check(builder, 0x6400);
    EXPECT_TRUE(only_tensors ? IsInvalid(status, std::string(schema.name) + ": ") : IsOk(status))
        << schema.name;
  }
}

TEST(Hostile, LongTensorArrays) {
  DescBuilder join(*FindOperator("JOIN"), 0x6400);
  join.field("InputTensors").tensors.assign(1u << 16, join.tensor("InputTensors"));
  join.SetWord("InputCount", 1u << 16);
  EXPECT_TRUE(IsOk(Check(join, 0x6400)));
}

// Strides that make it hard to decide whether an output overlaps itself: the effort is bounded for many
// outputs together, and ordinary outputs are accepted however many there are.
TEST(Hostile, OutputsThatMayOverlap) {
  DescBuilder split(*FindOperator("SPLIT"), 0x6400);
  split.tensor("InputTensor").SetSizes({12, 12, 12, 12, 12, 12, 2, 2});
  TensorSpec& output = split.tensor("OutputTensors");
  output.SetSizes({12, 12, 12, 12, 12, 12, 2, 2});
  split.field("OutputTensors").tensors.assign(1u << 16, TensorSpec(output));
  split.SetWord("OutputCount", 1u << 16);
  OperatorDesc desc;
  ASSERT_TRUE(IsOk(ReadOperatorDesc(split.Build(), 0x6400, &desc)));
  Status status = ValidateOperatorDesc(desc, 0x6400);
  EXPECT_EQ(status.message().find(".Strides is "), std::string::npos) << status.message();

  auto& outputs = std::get<std::vector<TensorDesc>>(desc.fields[2]);
  ASSERT_EQ(outputs.size(), 1u << 16);
  std::mt19937 random(3);
  TensorDesc hostile = outputs[0];  // takes some ten thousand steps
  hostile.sizes = {4, 4, 4, 4, 4, 4, 2, 2};
  for (uint32_t& stride : hostile.strides) stride = 0x80000000u | static_cast<uint32_t>(random());
  hostile.total_bytes = MinimumTotalBytes(hostile);
  std::fill(outputs.begin() + 1, outputs.end(), hostile);
  const auto start = std::chrono::steady_clock::now();
  status = ValidateOperatorDesc(desc, 0x6400);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_TRUE(IsInvalid(status, "SPLIT: OutputTensors["));
  EXPECT_NE(status.message().find("whether elements of this output share memory would take too long"),
            std::string::npos)
      << status.message();
}

// Valid memory at odd addresses, as in packed structs of other languages.
TEST(Hostile, Misaligned) {
  for (const OperatorSchema& schema : AllOperators()) {
    DescBuilder builder(schema, 0x6400);
    builder.set_misaligned(true);
    EXPECT_TRUE(IsOk(Check(builder, 0x6400))) << schema.name;
  }
}

TEST(Hostile, DescriptionThatContainsItself) {
  DescBuilder convolution(*FindOperator("CONVOLUTION"), 0x6400);
  const DML_OPERATOR_DESC* desc = convolution.Build();
  DML_CONVOLUTION_OPERATOR_DESC inner = *static_cast<const DML_CONVOLUTION_OPERATOR_DESC*>(desc->Desc);
  DML_OPERATOR_DESC outer = {DML_OPERATOR_CONVOLUTION, &inner};
  inner.FusedActivation = &outer;
  OperatorDesc out;
  EXPECT_TRUE(
      IsInvalid(ReadOperatorDesc(&outer, 0x6400, &out), "CONVOLUTION: FusedActivation.Type is CONVOLUTION"));
}

TEST(Hostile, FusedPointers) {
  DescBuilder convolution(*FindOperator("CONVOLUTION"), 0x6400);
  const DML_OPERATOR_DESC* desc = convolution.Build();
  DML_CONVOLUTION_OPERATOR_DESC inner = *static_cast<const DML_CONVOLUTION_OPERATOR_DESC*>(desc->Desc);
  DML_OPERATOR_DESC outer = {DML_OPERATOR_CONVOLUTION, &inner};
  DML_OPERATOR_DESC fused = {DML_OPERATOR_ACTIVATION_RELU, nullptr};
  inner.FusedActivation = &fused;
  OperatorDesc out;
  EXPECT_TRUE(IsInvalid(ReadOperatorDesc(&outer, 0x6400, &out), "CONVOLUTION: FusedActivation.Desc is null"));
  fused.Type = DML_OPERATOR_INVALID;
  EXPECT_TRUE(IsInvalid(ReadOperatorDesc(&outer, 0x6400, &out), "CONVOLUTION: FusedActivation.Type is 0"));
}

// Random words everywhere except in pointers: any result is acceptable, but the call must return.
TEST(Hostile, RandomValues) {
  std::random_device device;
  for (const uint32_t seed : {1u, static_cast<uint32_t>(device())}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto word = [&]() -> uint32_t { return random() % 4 == 0 ? random() : random() % 10; };
    int invalid = 0;
    for (int round = 0; round < 20000; ++round) {
      const OperatorSchema& schema = AllOperators()[random() % 177];
      DescBuilder builder(schema, kLatestFeatureLevel);
      for (size_t i = 0; i < schema.fields.size(); ++i) {
        FieldSpec& field = builder.field(i);
        if (random() % 4 == 0) field.null = true;
        for (uint32_t& value : field.words) value = random() % 4 == 0 ? word() : value;
        for (TensorSpec& tensor : field.tensors) {
          if (random() % 2 == 0) continue;
          tensor.data_type = word();
          tensor.sizes =
              std::vector<uint32_t>{word(), word(), word(), word(), word(), word(), word(), word()};
          tensor.dimension_count = random() % 16 == 0 ? word() + 9 : random() % 9;
          if (random() % 2) tensor.strides = tensor.sizes;
          tensor.total_bytes = uint64_t{word()} << (random() % 32);
          tensor.alignment = word();
          tensor.flags = random() % 3;
        }
        // Counts must not exceed the actual array sizes: no callee can check that.
        if (schema.fields[i].count_field < 0) continue;
        const char* count = schema.fields[static_cast<size_t>(schema.fields[i].count_field)].name;
        builder.SetWord(count, random() % 8 == 0 ? 0x7FFFFFFF + random() % 2 : random() % 3);
      }
      invalid += !Check(builder, kLatestFeatureLevel).ok();
    }
    EXPECT_GT(invalid, 10000);
  }
}

// The command line and others fill OperatorDesc themselves.
TEST(Handmade, ShapeErrors) {
  OperatorDesc desc;
  EXPECT_TRUE(IsInvalid(ValidateOperatorDesc(desc, 0x6400), "DML_OPERATOR_DESC: "));
  desc.schema = FindOperator("TOP_K1");
  EXPECT_TRUE(IsInvalid(ValidateOperatorDesc(desc, 0x6400), "TOP_K1: the description has 0 fields"));
  DescBuilder builder(*desc.schema, 0x6400);
  ASSERT_TRUE(IsOk(ReadOperatorDesc(builder.Build(), 0x6400, &desc)));
  const OperatorDesc good = desc;
  EXPECT_TRUE(IsOk(ValidateOperatorDesc(good, 0x6400)));
  desc.fields[3] = std::monostate{};
  EXPECT_TRUE(IsInvalid(ValidateOperatorDesc(desc, 0x6400), "TOP_K1: Axis is missing"));
  desc.fields[3] = 1.5f;
  EXPECT_TRUE(IsInvalid(ValidateOperatorDesc(desc, 0x6400), "TOP_K1: Axis holds a value of another type"));
  desc = good;
  desc.fields[0] = uint32_t{1};
  EXPECT_TRUE(
      IsInvalid(ValidateOperatorDesc(desc, 0x6400), "TOP_K1: InputTensor holds a value of another type"));

  DescBuilder slice(*FindOperator("SLICE"), 0x6400);
  ASSERT_TRUE(IsOk(ReadOperatorDesc(slice.Build(), 0x6400, &desc)));
  desc.fields[3] = std::vector<uint32_t>{1, 2, 3};
  EXPECT_TRUE(
      IsInvalid(ValidateOperatorDesc(desc, 0x6400), "SLICE: Offsets has 3 elements but DimensionCount is 2"));
}

TEST(Handmade, FusedActivations) {
  OperatorDesc desc;
  DescBuilder builder(*FindOperator("ELEMENT_WISE_ADD1"), 0x6400);
  ASSERT_TRUE(IsOk(ReadOperatorDesc(builder.Build(), 0x6400, &desc)));
  const auto with = [&](OperatorDesc fused) {
    desc.fields[3] = std::shared_ptr<const OperatorDesc>(std::make_shared<OperatorDesc>(std::move(fused)));
    return ValidateOperatorDesc(desc, 0x6400);
  };
  EXPECT_TRUE(IsOk(with({FindOperator("ACTIVATION_ELU"), {{}, {}, 1.0f}})));
  EXPECT_TRUE(IsInvalid(with({}), "ELEMENT_WISE_ADD1: FusedActivation names no operator"));
  EXPECT_TRUE(IsInvalid(with({FindOperator("GEMM"), {}}), "ELEMENT_WISE_ADD1: FusedActivation.Type is GEMM"));
  EXPECT_TRUE(IsInvalid(with({FindOperator("ACTIVATION_ELU"), {{}, {}, {}}}),
                        "ELEMENT_WISE_ADD1: FusedActivation: ACTIVATION_ELU: Alpha is missing"));
  EXPECT_TRUE(IsInvalid(with({FindOperator("ACTIVATION_ELU"), {TensorDesc{}, {}, 1.0f}}),
                        "ELEMENT_WISE_ADD1: FusedActivation: ACTIVATION_ELU: InputTensor must be null"));
  DescBuilder gemm(*FindOperator("GEMM"), 0x6400);
  ASSERT_TRUE(IsOk(ReadOperatorDesc(gemm.Build(), 0x6400, &desc)));
  const OperatorDesc clip = {FindOperator("ELEMENT_WISE_CLIP"), {{}, {}, ScaleBias{1, 0}, 0.0f, 1.0f}};
  desc.fields.back() = std::shared_ptr<const OperatorDesc>(std::make_shared<OperatorDesc>(clip));
  EXPECT_TRUE(IsInvalid(ValidateOperatorDesc(desc, 0x6400),
                        "GEMM: FusedActivation: ELEMENT_WISE_CLIP: ScaleBias must be null"));
}

TEST(Read, CopiesEverything) {
  DescBuilder builder(*FindOperator("RESAMPLE2"), 0x6400);
  TensorSpec& input = builder.tensor("InputTensor");
  input.SetSizes({2, 3});
  input.SetStrides({4, 1});
  input.flags = 1;
  input.alignment = 32;
  builder.field("Scales").words = {0x3F800000, 0x40000000};
  builder.SetWord("RoundingDirection", 1);
  OperatorDesc desc;
  ASSERT_TRUE(IsOk(ReadOperatorDesc(builder.Build(), 0x6400, &desc)));
  const TensorDesc* tensor = desc.tensor("InputTensor");
  ASSERT_NE(tensor, nullptr);
  EXPECT_TRUE(tensor->owned_by_dml);
  EXPECT_EQ(tensor->rank, 2u);
  EXPECT_EQ(tensor->sizes, (Dimensions{2, 3}));
  EXPECT_EQ(tensor->strides, (Dimensions{4, 1}));
  EXPECT_EQ(tensor->total_bytes, 28u);
  EXPECT_EQ(tensor->alignment, 32u);
  EXPECT_EQ(std::get<std::vector<float>>(desc.fields[5]), (std::vector<float>{1.0f, 2.0f}));
  EXPECT_EQ(desc.uint("RoundingDirection"), 1u);
  EXPECT_EQ(desc.inputs(), std::vector<const TensorDesc*>{tensor});
  EXPECT_EQ(desc.outputs().size(), 1u);
  EXPECT_THROW(desc.uint("NoSuchField"), std::exception);
  EXPECT_THROW(desc.uint("InputTensor"), std::exception);
}

TEST(Read, BindingOrderExpandsArraysAndKeepsAbsentTensors) {
  OperatorDesc desc;
  DescBuilder quantize(*FindOperator("QUANTIZE"), 0x6400);
  ASSERT_TRUE(IsOk(ReadOperatorDesc(quantize.Build(), 0x6400, &desc)));
  EXPECT_EQ(desc.inputs().size(), 3u);
  DescBuilder gemm(*FindOperator("GEMM"), 0x6400);
  gemm.field("CTensor").null = true;
  ASSERT_TRUE(IsOk(ReadOperatorDesc(gemm.Build(), 0x6400, &desc)));
  ASSERT_EQ(desc.inputs().size(), 3u);
  EXPECT_EQ(desc.inputs()[2], nullptr);
  EXPECT_EQ(desc.tensor("CTensor"), nullptr);
}

TEST(Read, ScaleBias) {
  OperatorDesc desc;
  DescBuilder abs(*FindOperator("ELEMENT_WISE_ABS"), 0x6400);
  abs.field("ScaleBias").words = {0x3F800000, 0x40000000};
  ASSERT_TRUE(IsOk(ReadOperatorDesc(abs.Build(), 0x6400, &desc)));
  ASSERT_NE(desc.scale_bias("ScaleBias"), nullptr);
  EXPECT_EQ(desc.scale_bias("ScaleBias")->scale, 1.0f);
  EXPECT_EQ(desc.scale_bias("ScaleBias")->bias, 2.0f);
  abs.field("ScaleBias").null = true;
  ASSERT_TRUE(IsOk(ReadOperatorDesc(abs.Build(), 0x6400, &desc)));
  EXPECT_EQ(desc.scale_bias("ScaleBias"), nullptr);
}

}  // namespace
}  // namespace anydml::testing
