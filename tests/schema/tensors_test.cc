// The rules for one tensor, for every tensor of every operator.
#include "check.h"

namespace anydml::testing {
namespace {

TEST(Tensors, BaselineIsValidAtEveryLevel) {
  int cases = 0;
  ForEachCase([&](const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
    DescBuilder builder(schema, level, variant);
    EXPECT_TRUE(IsOk(Check(builder, level)));
    ++cases;
  });
  EXPECT_GT(cases, 700);
}

TEST(Tensors, BaselineWithoutOptionalTensorsIsValid) {
  ForEachCase([](const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
    DescBuilder builder(schema, level, variant);
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      if (schema.fields[i].OptionalAt(level)) builder.field(i).null = true;
    }
    EXPECT_TRUE(IsOk(Check(builder, level)));
  });
}

TEST(Tensors, ExactlyTheTablesDataTypesAreAllowed) {
  ForEachCase([](const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
    for (const TensorField& tensor : TensorFields(schema)) {
      DescBuilder builder(schema, level, variant);
      const uint32_t table =
          FindTensorSupport(SupportAt(schema, level, variant), static_cast<int>(tensor.field))->types &
          DataTypesAt(level);
      for (uint32_t type = 0; type < 16; ++type) {
        if (type < kDataTypeCount && (builder.AllowedTypes(tensor.field) >> type & 1u) != 0) {
          builder.SetDataType(tensor.field, type);
          EXPECT_TRUE(IsOk(Check(builder, level)));
        }
        if ((table >> type & 1u) != 0) continue;
        DescBuilder wrong(schema, level, variant);
        wrong.field(tensor.field).tensors[tensor.element].SetDataType(type);
        const std::string given =
            type < kDataTypeCount ? Name(static_cast<DataType>(type)) : std::to_string(type);
        EXPECT_TRUE(IsInvalid(Check(wrong, level), tensor.prefix + ".DataType is " + given));
      }
    }
  });
}

bool InRange(const OperatorSchema& schema, FeatureLevel level, uint32_t variant, size_t field,
             uint32_t rank) {
  const TensorSupport* support =
      FindTensorSupport(SupportAt(schema, level, variant), static_cast<int>(field));
  return rank >= support->min_dimensions && rank <= support->max_dimensions &&
         rank <= (level < 0x3000 ? 5u : 8u);
}

TEST(Tensors, ExactlyTheTablesDimensionCountsAreAllowed) {
  ForEachCase([](const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
    for (const TensorField& tensor : TensorFields(schema)) {
      DescBuilder builder(schema, level, variant);
      for (uint32_t rank = 0; rank <= 9; ++rank) {
        if (rank >= builder.MinDimensions(tensor.field) && rank <= builder.MaxDimensions(tensor.field)) {
          builder.SetSizes(tensor.field, std::vector<uint32_t>(rank, 2));
          EXPECT_TRUE(IsOk(Check(builder, level))) << rank;
        }
        if (InRange(schema, level, variant, tensor.field, rank)) continue;
        DescBuilder wrong(schema, level, variant);
        wrong.field(tensor.field).tensors[tensor.element].SetSizes(std::vector<uint32_t>(rank, 2));
        EXPECT_TRUE(
            IsInvalid(Check(wrong, level), tensor.prefix + ".DimensionCount is " + std::to_string(rank)));
      }
    }
  });
}

// Below a level's limit the message names that level; it never names a level that does not exist.
TEST(Tensors, MessagesNameTheLevelThatAllows) {
  int hints = 0;
  ForEachCase([&](const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
    for (const TensorField& tensor : TensorFields(schema)) {
      for (uint32_t type = 1; type < kDataTypeCount; ++type) {
        FeatureLevel first = 0;
        for (const EnumMember& member : FindEnum("DML_FEATURE_LEVEL")->members) {
          const LevelSupport& support = SupportAt(schema, member.value, variant);
          const uint32_t types = FindTensorSupport(support, static_cast<int>(tensor.field))->types;
          if (first == 0 && member.value >= level && (types & DataTypesAt(member.value)) >> type & 1u) {
            first = member.value;
          }
        }
        if (first == level) continue;
        DescBuilder wrong(schema, level, variant);
        wrong.field(tensor.field).tensors[tensor.element].SetDataType(type);
        const std::string message = Check(wrong, level).message();
        if (first == 0) {
          EXPECT_EQ(message.find("allows it"), std::string::npos) << message;
        } else {
          EXPECT_TRUE(message.ends_with(Hint(first))) << message;
          ++hints;
        }
      }
    }
  });
  EXPECT_GT(hints, 1000);
}

TEST(Tensors, DimensionCountMessagesNameTheLevelThatAllows) {
  DescBuilder top_k1(*FindOperator("TOP_K1"), 0x2100);
  top_k1.tensor("InputTensor").SetSizes({2, 2, 2});
  EXPECT_EQ(Check(top_k1, 0x2100).message(),
            "TOP_K1: InputTensor.DimensionCount is 3, allowed at feature level 2.1: 4; DML_FEATURE_LEVEL_3_1 "
            "allows it");
}

TEST(Tensors, MessageInFull) {
  DescBuilder top_k1(*FindOperator("TOP_K1"), 0x3100);
  top_k1.tensor("InputTensor").SetDataType(11);
  EXPECT_EQ(Check(top_k1, 0x3100).message(),
            "TOP_K1: InputTensor.DataType is INT64, allowed at feature level 3.1: FLOAT32, FLOAT16, UINT32, "
            "UINT16, UINT8, INT32, INT16, INT8; DML_FEATURE_LEVEL_5_0 allows it");
}

// Runs `spoil` on every tensor of every operator at its lowest and at the latest level.
template <typename Spoil>
void ForEachTensor(const Spoil& spoil) {
  for (const OperatorSchema& schema : AllOperators()) {
    for (FeatureLevel level : {schema.level, kLatestFeatureLevel}) {
      for (const TensorField& tensor : TensorFields(schema)) {
        SCOPED_TRACE(tensor.prefix + " at " + FeatureLevelName(level));
        DescBuilder builder(schema, level);
        spoil(builder, builder.field(tensor.field).tensors[tensor.element], tensor, level);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Tensors, ZeroSizes) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    for (uint32_t i = 0; i < spec.dimension_count; ++i) {
      spec.sizes->at(i) = 0;
      EXPECT_TRUE(IsInvalid(Check(builder, level), tensor.prefix + ".Sizes[" + std::to_string(i) + "] is 0"));
      spec.sizes->at(i) = 2;
    }
  });
}

TEST(Tensors, MissingTensors) {
  ForEachTensor([](DescBuilder& builder, TensorSpec&, const TensorField& tensor, FeatureLevel level) {
    const FieldSchema& field = builder.schema().fields[tensor.field];
    builder.field(tensor.field).null = true;
    const Status status = Check(builder, level);
    if (field.OptionalAt(level)) {
      EXPECT_TRUE(IsOk(status));
    } else {
      EXPECT_TRUE(IsInvalid(status, std::string(builder.schema().name) + ": " + field.name + " is null"));
    }
  });
}

TEST(Tensors, TotalSize) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    const uint64_t minimum = spec.total_bytes;
    const std::string total = tensor.prefix + ".TotalTensorSizeInBytes is ";
    for (uint64_t wrong : {uint64_t{0}, minimum - 4, minimum - 1, minimum + 1, minimum + 2, ~uint64_t{0}}) {
      spec.total_bytes = wrong;
      EXPECT_TRUE(IsInvalid(Check(builder, level), total + std::to_string(wrong)));
    }
    for (uint64_t right : {minimum, minimum + 4, minimum + 4096, ~uint64_t{3}}) {
      spec.total_bytes = right;
      EXPECT_TRUE(IsOk(Check(builder, level)));
    }
  });
}

TEST(Tensors, Alignment) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    const uint32_t bytes = std::max(8u, BitSize(static_cast<DataType>(spec.data_type))) / 8;
    for (uint32_t wrong : {3u, 12u, 48u, 0xFFFFFFFFu, bytes / 2}) {
      if (wrong == 0) continue;
      spec.alignment = wrong;
      EXPECT_TRUE(IsInvalid(Check(builder, level),
                            tensor.prefix + ".GuaranteedBaseOffsetAlignment is " + std::to_string(wrong)));
    }
    for (uint32_t right : {0u, bytes, 16u, 256u, 0x80000000u}) {
      spec.alignment = right;
      EXPECT_TRUE(IsOk(Check(builder, level)));
    }
  });
}

TEST(Tensors, Flags) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    const std::string op = builder.schema().name;
    const bool input = builder.schema().fields[tensor.field].kind == FieldKind::kInput;
    spec.flags = 1;
    const Status owned = Check(builder, level);
    if (input && op != "RNN" && op != "LSTM" && op != "GRU") {
      EXPECT_TRUE(IsOk(owned));
    } else {
      EXPECT_TRUE(IsInvalid(owned, tensor.prefix + ".Flags has DML_TENSOR_FLAG_OWNED_BY_DML"));
    }
    for (uint32_t wrong : {2u, 3u, 0x80000000u}) {
      spec.flags = wrong;
      EXPECT_TRUE(IsInvalid(Check(builder, level), tensor.prefix + ".Flags is " + std::to_string(wrong)));
    }
  });
}

TEST(Tensors, OutputsMustNotOverlapThemselves) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    const bool output = builder.schema().fields[tensor.field].kind == FieldKind::kOutput;
    TensorDesc packed = spec.ToTensorDesc();
    std::vector<uint32_t> strides(packed.strides.begin(), packed.strides.begin() + packed.rank);
    const auto expect = [&](const std::vector<uint32_t>& wrong) {
      spec.SetStrides(wrong);
      const Status status = Check(builder, level);
      EXPECT_TRUE(output ? IsInvalid(status, tensor.prefix + ".Strides is ") : IsOk(status));
    };
    std::vector<uint32_t> broadcast = strides;
    broadcast[0] = 0;
    expect(broadcast);
    if (packed.rank > 1) {
      std::vector<uint32_t> colliding = strides;
      colliding[0] = colliding[1];
      expect(colliding);
    }
    // With padding: valid on both sides.
    for (uint32_t& stride : strides) stride *= 3;
    spec.SetStrides(strides);
    EXPECT_TRUE(IsOk(Check(builder, level)));
  });
}

TEST(Tensors, StridesOfSizeOneDoNotMatter) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    builder.SetSizes(tensor.field, std::vector<uint32_t>(spec.dimension_count, 1));
    for (uint32_t stride : {0u, 7u, 0xFFFFFFFFu}) {
      spec.SetStrides(std::vector<uint32_t>(spec.dimension_count, stride));
      EXPECT_TRUE(IsOk(Check(builder, level)));
    }
  });
}

TEST(Tensors, Pointers) {
  ForEachTensor([](DescBuilder& builder, TensorSpec& spec, const TensorField& tensor, FeatureLevel level) {
    const TensorSpec good = spec;
    for (uint32_t wrong : {0u, 2u, 0xFFFFFFFFu}) {
      spec.tensor_type = wrong;
      EXPECT_TRUE(IsInvalid(Check(builder, level), tensor.prefix + ".Type is " + std::to_string(wrong)));
    }
    spec = good;
    spec.null_desc = true;
    EXPECT_TRUE(IsInvalid(Check(builder, level), tensor.prefix + ".Desc is null"));
    spec = good;
    spec.sizes.reset();
    EXPECT_TRUE(IsInvalid(Check(builder, level), tensor.prefix + ".Sizes is null"));
  });
}

// Two elements per byte; the total is in whole bytes, rounded up to 4 as everywhere.
TEST(Tensors, FourBitElements) {
  for (const DataType type : {DataType::kUInt4, DataType::kInt4}) {
    DescBuilder builder(*FindOperator("QUANTIZE"), 0x6300);
    TensorSpec& output = builder.tensor("OutputTensor");
    for (const auto& [elements, bytes] : {std::pair{1u, 4u}, {7u, 4u}, {8u, 4u}, {9u, 8u}, {17u, 12u}}) {
      for (const char* name : {"InputTensor", "OutputTensor"}) builder.tensor(name).SetSizes({elements});
      for (TensorSpec& tensor : builder.field("QuantizationTensors").tensors) tensor.SetSizes({1});
      output.SetDataType(static_cast<uint32_t>(type));
      EXPECT_EQ(output.total_bytes, bytes);
      output.alignment = 1;
      EXPECT_TRUE(IsOk(Check(builder, 0x6300)));
      output.total_bytes = bytes - 4;
      EXPECT_TRUE(IsInvalid(Check(builder, 0x6300), "QUANTIZE: OutputTensor.TotalTensorSizeInBytes is "));
    }
    output.SetStrides({0});
    EXPECT_TRUE(IsInvalid(Check(builder, 0x6300), "QUANTIZE: OutputTensor.Strides is {0}"));
    EXPECT_TRUE(IsInvalid(Check(builder, 0x6200), "QUANTIZE: the operator does not exist"));
  }
}

TEST(Tensors, ElementCount) {
  DescBuilder builder(*FindOperator("ELEMENT_WISE_IDENTITY"), kLatestFeatureLevel);
  builder.SetSizes(0, {0x10000, 0xFFFF, 1});
  EXPECT_TRUE(IsOk(Check(builder, kLatestFeatureLevel)));
  builder.SetSizes(0, {0xFFFFFFFF});
  EXPECT_TRUE(IsOk(Check(builder, kLatestFeatureLevel)));
  for (const std::vector<uint32_t>& sizes :
       {std::vector<uint32_t>{0x10000, 0x10000}, std::vector<uint32_t>(8, 0xFFFFFFFF)}) {
    builder.SetSizes(0, sizes);
    EXPECT_TRUE(
        IsInvalid(Check(builder, kLatestFeatureLevel), "ELEMENT_WISE_IDENTITY: InputTensor.Sizes is {"));
  }
  // Few elements, far apart: the extent must not wrap around.
  builder.SetSizes(0, std::vector<uint32_t>(8, 2));
  builder.tensor("InputTensor").SetStrides(std::vector<uint32_t>(8, 0xFFFFFFFF));
  EXPECT_TRUE(IsOk(Check(builder, kLatestFeatureLevel)));
  builder.tensor("InputTensor").total_bytes = 1024;
  EXPECT_TRUE(IsInvalid(Check(builder, kLatestFeatureLevel),
                        "ELEMENT_WISE_IDENTITY: InputTensor.TotalTensorSizeInBytes is 1024"));
}

}  // namespace
}  // namespace anydml::testing
