// The rules between tensors: every relation of every operator, broken at every member.
#include <bit>

#include "check.h"

namespace anydml::testing {
namespace {

// Breaks `relation` at one member; false if the member has no other legal value, so that the tensor's own
// rules would report first.
bool Break(DescBuilder& builder, const Relation& relation, FeatureLevel level, uint32_t variant,
           size_t member) {
  const FieldSchema& field = builder.schema().fields[member];
  const TensorSupport* support =
      FindTensorSupport(SupportAt(builder.schema(), level, variant), static_cast<int>(member));
  if (field.kind == FieldKind::kAttribute) {  // a DML_TENSOR_DATA_TYPE
    builder.SetWord(field.name, builder.field(member).words[0] == 1 ? 2 : 1);
    return true;
  }
  TensorSpec& tensor = builder.field(member).tensors.back();
  if (relation.kind == RelationKind::kSameDataType) {
    const uint32_t others = support->types & DataTypesAt(level) & ~(1u << tensor.data_type);
    if (others == 0) return false;
    tensor.SetDataType(static_cast<uint32_t>(std::countr_zero(others)));
  } else if (relation.kind == RelationKind::kSameDimensionCount) {
    if (support->min_dimensions == tensor.dimension_count) return false;
    tensor.SetSizes(std::vector<uint32_t>(support->min_dimensions, 2));
  } else {
    tensor.sizes->back() = 3;
    tensor.SetSizes(*tensor.sizes);
  }
  return true;
}

const char* Member(RelationKind kind) {
  return kind == RelationKind::kSameDataType ? ".DataType is "
         : kind == RelationKind::kSameSizes  ? ".Sizes is "
                                             : ".DimensionCount is ";
}

TEST(Relations, EveryRelationHolds) {
  int stated = 0, broken = 0;
  for (const OperatorSchema& schema : AllOperators()) {
    for (const Relation& relation : schema.relations) {
      ++stated;
      bool seen = false;
      for (FeatureLevel level : InterestingLevels(schema)) {
        if (relation.below != 0 && level >= relation.below) continue;
        for (size_t member : relation.fields) {
          // The first variant for which the relation holds.
          const auto variant = static_cast<uint32_t>(std::countr_one(relation.except_variants));
          DescBuilder builder(schema, level, variant);
          if (!Break(builder, relation, level, variant, member)) continue;
          const std::string name = schema.fields[member].name;
          SCOPED_TRACE(std::string(schema.name) + " at " + FeatureLevelName(level) + ": " + name);
          const Status status = Check(builder, level);
          EXPECT_TRUE(IsInvalid(status, std::string(schema.name) + ": "));
          EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
          EXPECT_NE(status.message().find("they must be the same"), std::string::npos) << status.message();
          if (schema.fields[member].kind != FieldKind::kAttribute &&
              relation.kind != RelationKind::kSameSizes) {
            EXPECT_NE(status.message().find(Member(relation.kind)), std::string::npos) << status.message();
          }
          seen = true;
        }
      }
      broken += seen;
      // Relations that cannot be broken: where the tables allow only one type or count at every level.
      EXPECT_TRUE(seen || relation.kind != RelationKind::kSameSizes) << schema.name;
    }
  }
  EXPECT_EQ(stated, 457);
  EXPECT_EQ(broken, 456);  // MAX_UNPOOLING's tensors have 4 dimensions anyway
}

TEST(Relations, MessagesInFull) {
  const OperatorSchema& scatter_nd = *FindOperator("SCATTER_ND");
  DescBuilder builder(scatter_nd, 0x6400);
  for (const char* name : {"InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor"}) {
    builder.tensor(name).SetSizes({2, 2});
  }
  ASSERT_TRUE(IsOk(Check(builder, 0x6400)));
  builder.tensor("OutputTensor").SetSizes({2, 3});
  EXPECT_EQ(Check(builder, 0x6400).message(),
            "SCATTER_ND: OutputTensor.Sizes is {2,3} but InputTensor.Sizes is {2,2}; they must be the same");
  builder.tensor("UpdatesTensor").SetDataType(6);
  EXPECT_EQ(Check(builder, 0x6400).message(),
            "SCATTER_ND: UpdatesTensor.DataType is INT32 but InputTensor.DataType is FLOAT32; they must be "
            "the same");
  builder.tensor("IndicesTensor").SetSizes({2, 2, 2});
  EXPECT_EQ(Check(builder, 0x6400).message(),
            "SCATTER_ND: IndicesTensor.DimensionCount is 3 but InputTensor.DimensionCount is 2; they must be "
            "the same");
}

TEST(Relations, OfTheImplementedOperators) {
  const auto accepts = [](const char* op,
                          const std::vector<std::pair<const char*, std::vector<uint32_t>>>& sizes) {
    DescBuilder builder(*FindOperator(op), 0x6400);
    for (const auto& [name, value] : sizes) builder.tensor(name).SetSizes(value);
    return Check(builder, 0x6400).ok();
  };
  const auto top_k = [&](const char* op, std::vector<uint32_t> values, std::vector<uint32_t> indices) {
    return accepts(op,
                   {{"InputTensor", {3, 5}}, {"OutputValueTensor", values}, {"OutputIndexTensor", indices}});
  };
  for (const char* op : {"TOP_K", "TOP_K1"}) {
    EXPECT_TRUE(top_k(op, {3, 2}, {3, 2}));
    EXPECT_FALSE(top_k(op, {1, 3, 2}, {3, 2}));
    EXPECT_FALSE(top_k(op, {3, 2}, {6}));
  }
  const auto scatter = [&](std::vector<uint32_t> indices, std::vector<uint32_t> updates,
                           std::vector<uint32_t> output) {
    return accepts("SCATTER_ELEMENTS", {{"InputTensor", {3, 5}},
                                        {"IndicesTensor", indices},
                                        {"UpdatesTensor", updates},
                                        {"OutputTensor", output}});
  };
  EXPECT_TRUE(scatter({3, 2}, {3, 2}, {3, 5}));
  EXPECT_TRUE(scatter({3, 9}, {3, 9}, {3, 5}));
  EXPECT_FALSE(scatter({3, 2}, {3, 3}, {3, 5}));
  EXPECT_FALSE(scatter({3, 2}, {3, 2}, {3, 2}));
  const auto scatter_nd = [&](std::vector<uint32_t> indices, std::vector<uint32_t> updates,
                              std::vector<uint32_t> output) {
    return accepts("SCATTER_ND", {{"InputTensor", {1, 8}},
                                  {"IndicesTensor", indices},
                                  {"UpdatesTensor", updates},
                                  {"OutputTensor", output}});
  };
  EXPECT_TRUE(scatter_nd({4, 1}, {1, 4}, {1, 8}));  // the page's last example, in its legal form
  EXPECT_FALSE(scatter_nd({4, 1}, {4}, {1, 8}));
  EXPECT_FALSE(scatter_nd({4, 1}, {1, 4}, {1, 9}));
}

TEST(Relations, ThatEndAtALevel) {
  // ELEMENT_WISE_POW: the exponent has the input's type below 3.0.
  const auto mixed = [](FeatureLevel level) {
    DescBuilder builder(*FindOperator("ELEMENT_WISE_POW"), level);
    builder.tensor("ExponentTensor").SetDataType(2);
    return Check(builder, level);
  };
  const Status status = mixed(0x2100);
  EXPECT_EQ(status.message(),
            "ELEMENT_WISE_POW: ExponentTensor.DataType is FLOAT16 but InputTensor.DataType is FLOAT32; they "
            "must be "
            "the same; DML_FEATURE_LEVEL_3_0 allows it");
  EXPECT_TRUE(IsOk(mixed(0x3000)));
}

TEST(Relations, DataTypeAttributes) {
  DescBuilder builder(*FindOperator("FILL_VALUE_CONSTANT"), 0x6400);
  builder.SetWord("ValueDataType", 6);
  EXPECT_EQ(Check(builder, 0x6400).message(),
            "FILL_VALUE_CONSTANT: ValueDataType is INT32 but OutputTensor.DataType is FLOAT32; they must be "
            "the same");
}

TEST(Relations, EveryElementOfAnArrayCounts) {
  DescBuilder join(*FindOperator("JOIN"), 0x6400);
  join.tensor("InputTensors", 1).SetDataType(2);
  EXPECT_EQ(Check(join, 0x6400).message(),
            "JOIN: InputTensors[1].DataType is FLOAT16 but InputTensors[0].DataType is FLOAT32; they must be "
            "the same");
  DescBuilder split(*FindOperator("SPLIT"), 0x6400);
  split.tensor("OutputTensors", 1).SetSizes({2, 2});
  EXPECT_TRUE(IsInvalid(Check(split, 0x6400), "SPLIT: OutputTensors[1].DimensionCount is 2 but InputTensor"));
}

}  // namespace
}  // namespace anydml::testing
