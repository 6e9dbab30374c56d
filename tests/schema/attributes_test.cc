// Availability, enums, fused activations.
#include "check.h"

namespace anydml::testing {
namespace {

TEST(Attributes, OperatorsBeginAtTheirLevel) {
  for (const OperatorSchema& schema : AllOperators()) {
    for (const EnumMember& member : FindEnum("DML_FEATURE_LEVEL")->members) {
      DescBuilder builder(schema, std::max(schema.level, member.value));
      const Status status = Check(builder, member.value);
      if (member.value < schema.level) {
        EXPECT_TRUE(IsInvalid(status, std::string(schema.name) +
                                          ": the operator does not exist at feature level " +
                                          FeatureLevelName(member.value) + Hint(schema.level)));
      } else {
        EXPECT_TRUE(IsOk(status)) << schema.name;
      }
    }
  }
}

TEST(Attributes, Enums) {
  int fields = 0;
  ForEachCase([&](const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      if (schema.fields[i].type != FieldType::kEnum || schema.variant_field == static_cast<int>(i)) continue;
      ++fields;
      const bool data_type = std::string_view(schema.fields[i].enumeration->name) == "DML_TENSOR_DATA_TYPE";
      const std::string prefix = std::string(schema.name) + ": " + schema.fields[i].name + " is ";
      DescBuilder builder(schema, level, variant);
      for (uint32_t wrong : {1000u, 0xFFFFFFFFu}) {
        builder.field(i).words = {wrong};
        EXPECT_TRUE(IsInvalid(Check(builder, level), prefix + std::to_string(wrong) + ", allowed at"));
      }
      for (const EnumMember& member : schema.fields[i].enumeration->members) {
        builder.field(i).words = {member.value};
        const Status status = Check(builder, level);
        if (data_type && member.value == 0 && !schema.fields[i].unknown_allowed) {
          EXPECT_TRUE(IsInvalid(status, prefix + "0, allowed at"));
        } else if (member.level > level) {
          EXPECT_TRUE(IsInvalid(status, prefix + member.name + ", allowed at"));
          EXPECT_TRUE(status.message().ends_with(Hint(member.level))) << status.message();
        } else if (!data_type || member.value == 0) {  // data types are tied to tensors
          EXPECT_TRUE(IsOk(status)) << member.name;
        }
      }
    }
  });
  EXPECT_GT(fields, 80);
}

TEST(Attributes, EnumMessageInFull) {
  DescBuilder padding(*FindOperator("PADDING"), 0x5000);
  padding.SetWord("PaddingMode", 4);
  EXPECT_EQ(
      Check(padding, 0x5000).message(),
      "PADDING: PaddingMode is DML_PADDING_MODE_WRAP, allowed at feature level 5.0: "
      "DML_PADDING_MODE_CONSTANT "
      "(0), DML_PADDING_MODE_EDGE (1), DML_PADDING_MODE_REFLECTION (2), DML_PADDING_MODE_SYMMETRIC (3); "
      "DML_FEATURE_LEVEL_6_4 allows it");
}

TEST(Attributes, UnknownReduceFunction) {
  DescBuilder builder(*FindOperator("REDUCE"), 0x6400);
  builder.SetWord("Function", 12);
  EXPECT_TRUE(IsInvalid(Check(builder, 0x6400), "REDUCE: Function is 12, allowed at"));
}

TEST(Attributes, BooleansMayBeAnything) {
  DescBuilder builder(*FindOperator("CUMULATIVE_SUMMATION"), 0x6400);
  builder.SetWord("HasExclusiveSum", 0xDEADBEEF);
  EXPECT_TRUE(IsOk(Check(builder, 0x6400)));
  OperatorDesc desc;
  ASSERT_TRUE(IsOk(ReadOperatorDesc(builder.Build(), 0x6400, &desc)));
  EXPECT_EQ(desc.uint("HasExclusiveSum"), 1u);
}

// The allowed fusions, written independently of the schema.
bool Fusable(const std::string& host, const std::string& activation, FeatureLevel level) {
  static const std::set<std::string> kEverywhere = {"ACTIVATION_LINEAR",
                                                    "ACTIVATION_SIGMOID",
                                                    "ACTIVATION_HARD_SIGMOID",
                                                    "ACTIVATION_TANH",
                                                    "ACTIVATION_SCALED_TANH",
                                                    "ACTIVATION_RELU",
                                                    "ACTIVATION_LEAKY_RELU",
                                                    "ACTIVATION_THRESHOLDED_RELU",
                                                    "ACTIVATION_ELU",
                                                    "ACTIVATION_CELU",
                                                    "ACTIVATION_SCALED_ELU",
                                                    "ACTIVATION_SOFTPLUS",
                                                    "ACTIVATION_PARAMETRIC_SOFTPLUS",
                                                    "ACTIVATION_SOFTSIGN",
                                                    "ACTIVATION_IDENTITY",
                                                    "ACTIVATION_SHRINK",
                                                    "ACTIVATION_GELU"};
  if (FindOperator(activation)->level > level) return false;
  if (kEverywhere.count(activation) > 0) return true;
  const bool recurrent = host == "RNN" || host == "LSTM" || host == "GRU";
  if (recurrent && (activation == "ACTIVATION_SOFTMAX" || activation == "ACTIVATION_HARDMAX")) return true;
  if (activation == "ELEMENT_WISE_CLIP") return level >= 0x6000 && (host == "CONVOLUTION" || host == "GEMM");
  if (activation == "ACTIVATION_SOFTMAX" || activation == "ACTIVATION_SOFTMAX1") {
    return level >= 0x6100 && host == "GEMM";
  }
  return false;
}

// The operators with FusedActivation or ActivationDescs, and that field.
std::vector<std::pair<const OperatorSchema*, size_t>> Hosts() {
  std::vector<std::pair<const OperatorSchema*, size_t>> hosts;
  for (const OperatorSchema& schema : AllOperators()) {
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const FieldType type = schema.fields[i].type;
      if (type == FieldType::kOperatorDesc || type == FieldType::kOperatorDescArray)
        hosts.push_back({&schema, i});
    }
  }
  return hosts;
}

// Puts `activation` into the field; if it is an array, at the end.
void Fuse(DescBuilder& builder, size_t field, const DescBuilder& activation) {
  FieldSpec& spec = builder.field(field);
  spec.null = false;
  if (spec.fused.empty()) {
    spec.fused = {activation};
  } else {
    spec.fused.back() = activation;
  }
}

std::string FusedName(const OperatorSchema& host, size_t field) {
  const bool array = host.fields[field].type == FieldType::kOperatorDescArray;
  return std::string(host.name) + ": " + host.fields[field].name + (array ? "[1]" : "");
}

TEST(Fusion, ExactlyTheListedOperatorsMayBeFused) {
  ASSERT_EQ(Hosts().size(), 11u);
  for (const auto& [host, field] : Hosts()) {
    for (const EnumMember& member : FindEnum("DML_FEATURE_LEVEL")->members) {
      if (member.value < host->level) continue;
      for (const OperatorSchema& activation : AllOperators()) {
        DescBuilder builder(*host, member.value);
        Fuse(builder, field, DescBuilder::Fused(activation, std::max(activation.level, member.value)));
        const Status status = Check(builder, member.value);
        SCOPED_TRACE(std::string(host->name) + " with " + activation.name + " at " + member.name);
        if (Fusable(host->name, activation.name, member.value)) {
          ASSERT_TRUE(IsOk(status));
          continue;
        }
        ASSERT_TRUE(
            IsInvalid(status, FusedName(*host, field) + ".Type is " + activation.name + ", allowed at"));
        const bool later = Fusable(host->name, activation.name, kLatestFeatureLevel);
        ASSERT_EQ(status.message().ends_with(" allows it"), later) << status.message();
      }
    }
  }
}

TEST(Fusion, TensorsMustBeNull) {
  for (const auto& [host, field] : Hosts()) {
    for (const char* tensor : {"InputTensor", "OutputTensor"}) {
      DescBuilder builder(*host, 0x6400);
      DescBuilder activation = DescBuilder::Fused(*FindOperator("ACTIVATION_ELU"), 0x6400);
      activation.field(tensor).null = false;
      Fuse(builder, field, activation);
      // The reader must refuse it without following the pointer.
      OperatorDesc desc;
      EXPECT_TRUE(IsInvalid(
          ReadOperatorDesc(builder.Build(), 0x6400, &desc),
          FusedName(*host, field) + ": ACTIVATION_ELU: " + tensor + " must be null in a fused activation"));
    }
  }
}

// The page of ELEMENT_WISE_CLIP: a fused one has no ScaleBias.
TEST(Fusion, ClipHasNoScaleBias) {
  for (const char* host : {"CONVOLUTION", "GEMM"}) {
    DescBuilder builder(*FindOperator(host), 0x6000);
    DescBuilder clip = DescBuilder::Fused(*FindOperator("ELEMENT_WISE_CLIP"), 0x6000);
    const auto field = static_cast<size_t>(FindField(builder.schema(), "FusedActivation"));
    Fuse(builder, field, clip);
    EXPECT_TRUE(IsOk(Check(builder, 0x6000)));
    clip.field("ScaleBias").null = false;
    Fuse(builder, field, clip);
    EXPECT_EQ(Check(builder, 0x6000).message(),
              std::string(host) +
                  ": FusedActivation: ELEMENT_WISE_CLIP: ScaleBias must be null in a fused activation");
  }
}

TEST(Fusion, MessageInFull) {
  DescBuilder lstm(*FindOperator("LSTM"), 0x1000);
  const auto field = static_cast<size_t>(FindField(lstm.schema(), "ActivationDescs"));
  Fuse(lstm, field, DescBuilder::Fused(*FindOperator("ACTIVATION_CELU"), 0x3000));
  EXPECT_EQ(Check(lstm, 0x1000).message(),
            "LSTM: ActivationDescs[1].Type is ACTIVATION_CELU, allowed at feature level 1.0: ACTIVATION_ELU, "
            "ACTIVATION_HARD_SIGMOID, ACTIVATION_IDENTITY, ACTIVATION_LEAKY_RELU, ACTIVATION_LINEAR, "
            "ACTIVATION_PARAMETRIC_SOFTPLUS, ACTIVATION_RELU, ACTIVATION_SCALED_ELU, ACTIVATION_SCALED_TANH, "
            "ACTIVATION_SIGMOID, ACTIVATION_SOFTPLUS, ACTIVATION_SOFTSIGN, ACTIVATION_TANH, "
            "ACTIVATION_THRESHOLDED_RELU, ACTIVATION_SOFTMAX, ACTIVATION_HARDMAX; DML_FEATURE_LEVEL_3_0 "
            "allows it");
}

TEST(Fusion, AttributesAreReadAndChecked) {
  DescBuilder gemm(*FindOperator("GEMM"), 0x6400);
  const size_t field = static_cast<size_t>(FindField(gemm.schema(), "FusedActivation"));
  DescBuilder softmax = DescBuilder::Fused(*FindOperator("ACTIVATION_SOFTMAX1"), 0x6400);
  softmax.field("Axes").words = {2, 3};
  Fuse(gemm, field, softmax);
  OperatorDesc desc;
  ASSERT_TRUE(IsOk(ReadOperatorDesc(gemm.Build(), 0x6400, &desc)));
  ASSERT_TRUE(IsOk(ValidateOperatorDesc(desc, 0x6400)));
  const auto& fused = std::get<std::shared_ptr<const OperatorDesc>>(desc.fields[field]);
  EXPECT_STREQ(fused->schema->name, "ACTIVATION_SOFTMAX1");
  EXPECT_EQ(fused->uint("AxisCount"), 2u);
  EXPECT_EQ(std::get<std::vector<uint32_t>>(fused->fields[3]), (std::vector<uint32_t>{2, 3}));

  softmax.field("Axes").null = true;
  Fuse(gemm, field, softmax);
  EXPECT_EQ(Check(gemm, 0x6400).message(),
            "GEMM: FusedActivation: ACTIVATION_SOFTMAX1: Axes is null but AxisCount is 2");
}

}  // namespace
}  // namespace anydml::testing
