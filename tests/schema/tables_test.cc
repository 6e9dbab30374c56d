// Checks through the C++ interface that all tables exist; schema_generate_tables checks that they match the
// JSON files.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "schema/schema.h"

namespace anydml {
namespace {

TEST(Tables, OperatorsPerFeatureLevel) {
  std::map<std::string, int> counts;
  uint32_t type = 0;
  for (const OperatorSchema& schema : AllOperators()) {
    EXPECT_EQ(schema.type, ++type) << schema.name;
    ++counts[FeatureLevelName(schema.level)];
  }
  const std::map<std::string, int> expected = {{"1.0", 78}, {"2.0", 18}, {"2.1", 24}, {"3.0", 20}, {"3.1", 6},
                                               {"4.0", 3},  {"4.1", 3},  {"5.0", 4},  {"5.1", 7},  {"6.1", 1},
                                               {"6.2", 6},  {"6.3", 4},  {"6.4", 3}};
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(type, 177u);
}

TEST(Tables, Counts) {
  std::map<FieldType, int> types;
  std::map<std::string, int> tables;
  size_t rows = 0, enum_members = 0, in_place = 0;
  for (const OperatorSchema& schema : AllOperators()) {
    in_place += schema.in_place;
    for (const FieldSchema& field : schema.fields) ++types[field.type];
    for (const LevelSupport& support : schema.support) {
      ++tables[FeatureLevelName(support.level)];
      rows += support.tensors.size();
    }
  }
  for (const EnumSchema& schema : AllEnums()) enum_members += schema.members.size();
  const std::map<FieldType, int> expected_types = {{FieldType::kTensor, 335 + 201},
                                                   {FieldType::kTensorArray, 3 + 1},
                                                   {FieldType::kUInt, 86},
                                                   {FieldType::kInt, 3},
                                                   {FieldType::kFloat, 67},
                                                   {FieldType::kBool, 20},
                                                   {FieldType::kEnum, 46},
                                                   {FieldType::kUIntArray, 88},
                                                   {FieldType::kIntArray, 2},
                                                   {FieldType::kFloatArray, 17},
                                                   {FieldType::kScaleBias, 26},
                                                   {FieldType::kSize2D, 2},
                                                   {FieldType::kScalarUnion, 9},
                                                   {FieldType::kOperatorDesc, 8},
                                                   {FieldType::kOperatorDescArray, 3}};
  EXPECT_EQ(types, expected_types);
  const std::map<std::string, int> expected_tables = {
      {"1.0", 82}, {"2.0", 43}, {"2.1", 58}, {"3.0", 110}, {"3.1", 17}, {"4.0", 19}, {"4.1", 39}, {"5.0", 29},
      {"5.1", 19}, {"5.2", 2},  {"6.0", 5},  {"6.1", 1},   {"6.2", 11}, {"6.3", 4},  {"6.4", 3}};
  EXPECT_EQ(tables, expected_tables);
  EXPECT_EQ(rows, 1237u);
  EXPECT_EQ(in_place, 78u);
  EXPECT_EQ(AllEnums().size(), 25u);
  EXPECT_EQ(enum_members, 277u);
}

TEST(Tables, EveryTableHasARowForEveryTensorAndNothingElse) {
  for (const OperatorSchema& schema : AllOperators()) {
    ASSERT_FALSE(schema.support.empty()) << schema.name;
    for (const LevelSupport& support : schema.support) {
      std::set<int> expected, given;
      for (size_t i = 0; i < schema.fields.size(); ++i) {
        if (schema.fields[i].kind != FieldKind::kAttribute) expected.insert(static_cast<int>(i));
      }
      for (const TensorSupport& tensor : support.tensors) {
        given.insert(tensor.field);
        EXPECT_GE(tensor.min_dimensions, 1) << schema.name;
        EXPECT_LE(tensor.min_dimensions, tensor.max_dimensions) << schema.name;
        EXPECT_LE(tensor.max_dimensions, 8) << schema.name;
        EXPECT_NE(tensor.types, 0) << schema.name;
        EXPECT_EQ(tensor.types & 1u, 0u) << schema.name;
      }
      EXPECT_EQ(given, expected) << schema.name;
    }
  }
}

TEST(Tables, FieldsFitTheStruct) {
  for (const OperatorSchema& schema : AllOperators()) {
    for (const FieldSchema& field : schema.fields) {
      EXPECT_LE(field.offset + 4u, schema.desc_size) << schema.name << ' ' << field.name;
      EXPECT_EQ(field.type == FieldType::kEnum, field.enumeration != nullptr)
          << schema.name << ' ' << field.name;
      if (field.count_field < 0) continue;
      EXPECT_EQ(schema.fields[static_cast<size_t>(field.count_field)].type, FieldType::kUInt) << schema.name;
    }
  }
}

TEST(Tables, Roles) {
  std::map<FieldRole, int> roles;
  for (const OperatorSchema& schema : AllOperators()) {
    for (const FieldSchema& field : schema.fields) {
      SCOPED_TRACE(std::string(schema.name) + ' ' + field.name);
      const bool attribute = field.kind == FieldKind::kAttribute;
      const std::string_view name = field.name;
      ++roles[field.role];
      EXPECT_EQ(field.subject >= 0, field.role != FieldRole::kNone);
      if (field.subject >= 0) {
        EXPECT_NE(schema.fields[static_cast<size_t>(field.subject)].kind, FieldKind::kAttribute);
      }
      EXPECT_EQ(attribute && (name == "Axis" || name == "Axes"), field.role == FieldRole::kAxis);
      if (name.find("Indices") != name.npos || name == "OutputIndexTensor") {
        EXPECT_EQ(IsIndex(field.role), !attribute);
      }
      const bool array = field.role == FieldRole::kPerDimension ||
                         field.role == FieldRole::kPerSpatialDimension ||
                         (field.role == FieldRole::kAxis && name == "Axes");
      EXPECT_EQ(array, attribute && field.count_field >= 0 && field.type != FieldType::kOperatorDescArray &&
                           std::string_view(schema.name) != "VALUE_SCALE_2D");
    }
  }
  const std::map<FieldRole, int> expected = {
      {FieldRole::kAxis, 20},          {FieldRole::kPerDimension, 30}, {FieldRole::kPerSpatialDimension, 68},
      {FieldRole::kDimensionCount, 7}, {FieldRole::kAxisIndex, 6},     {FieldRole::kBlockIndex, 2},
      {FieldRole::kCoordinates, 4},    {FieldRole::kElementIndex, 3},  {FieldRole::kBatchIndex, 3},
      {FieldRole::kCount, 6}};
  roles.erase(FieldRole::kNone);
  EXPECT_EQ(roles, expected);
}

TEST(Tables, RolesOfSomeFields) {
  const auto field = [](OperatorType type, const char* name) -> const FieldSchema& {
    const OperatorSchema& schema = *FindOperator(type);
    return schema.fields[static_cast<size_t>(FindField(schema, name))];
  };
  const FieldSchema& index = field(OperatorType::kTopK1, "OutputIndexTensor");
  EXPECT_EQ(index.role, FieldRole::kAxisIndex);
  EXPECT_EQ(index.subject, 0);
  const FieldSchema& window = field(OperatorType::kFold, "WindowSizes");
  EXPECT_EQ(window.role, FieldRole::kPerSpatialDimension);
  EXPECT_EQ(window.subject, 1);  // the image, which is what FOLD writes
  EXPECT_EQ(field(OperatorType::kSlice, "Offsets").neutral, 0);
  EXPECT_EQ(field(OperatorType::kSlice, "Sizes").neutral, 1);
  EXPECT_EQ(field(OperatorType::kTile, "Repeats").neutral, 1);
  EXPECT_EQ(field(OperatorType::kGather, "IndexDimensions").subject, 1);
}

TEST(Tables, FindOperator) {
  const OperatorSchema* top_k1 = FindOperator(112);
  ASSERT_NE(top_k1, nullptr);
  EXPECT_STREQ(top_k1->name, "TOP_K1");
  EXPECT_EQ(FindOperator(OperatorType::kTopK1), top_k1);
  EXPECT_STREQ(FindOperator(OperatorType::kElementWiseIdentity)->name, "ELEMENT_WISE_IDENTITY");
  EXPECT_STREQ(FindOperator(OperatorType::kUnfold)->name, "UNFOLD");
  EXPECT_EQ(FindOperator("TOP_K1"), top_k1);
  EXPECT_EQ(FindOperator("DML_OPERATOR_TOP_K1"), top_k1);
  EXPECT_EQ(FindOperator("SCATTER"), FindOperator(94));
  EXPECT_EQ(FindOperator("DML_OPERATOR_SCATTER"), FindOperator("SCATTER_ELEMENTS"));
  EXPECT_EQ(FindOperator(0u), nullptr);
  EXPECT_EQ(FindOperator(178), nullptr);
  EXPECT_EQ(FindOperator(0xFFFFFFFFu), nullptr);
  EXPECT_EQ(FindOperator("TOP_K2"), nullptr);
  EXPECT_EQ(FindOperator(""), nullptr);
}

TEST(Tables, FindFieldAndEnum) {
  const OperatorSchema& top_k1 = *FindOperator("TOP_K1");
  EXPECT_EQ(FindField(top_k1, "AxisDirection"), 5);
  EXPECT_EQ(FindField(top_k1, "axis"), -1);
  ASSERT_NE(FindEnum("DML_AXIS_DIRECTION"), nullptr);
  EXPECT_EQ(FindEnum("DML_AXIS_DIRECTION"), top_k1.fields[5].enumeration);
  EXPECT_STREQ(FindEnum("DML_AXIS_DIRECTION")->members[1].name, "DML_AXIS_DIRECTION_DECREASING");
  EXPECT_EQ(FindEnum("DML_AXIS_DIRECTION")->members[1].value, 1u);
  EXPECT_EQ(FindEnum("DML_NOTHING"), nullptr);
}

TEST(Tables, FeatureLevels) {
  EXPECT_EQ(FindEnum("DML_FEATURE_LEVEL")->members.size(), 15u);
  for (const EnumMember& member : FindEnum("DML_FEATURE_LEVEL")->members) {
    EXPECT_EQ(ParseFeatureLevel(member.name), member.value);
    EXPECT_EQ(ParseFeatureLevel(FeatureLevelName(member.value)), member.value);
  }
  EXPECT_EQ(FeatureLevelName(0x2100), "2.1");
  EXPECT_EQ(ParseFeatureLevel("5_2"), 0x5200u);
  for (const char* text : {"", "2", "2.", "2.2", "2-1", "2.1 ", "7.0", "DML_FEATURE_LEVEL_", "0x2100"}) {
    EXPECT_EQ(ParseFeatureLevel(text), 0u) << text;
  }
}

TEST(Tables, SupportAt) {
  const OperatorSchema& top_k1 = *FindOperator("TOP_K1");
  EXPECT_EQ(SupportAt(top_k1, 0x6400).level, 0x5000u);
  EXPECT_EQ(SupportAt(top_k1, 0x5000).level, 0x5000u);
  EXPECT_EQ(SupportAt(top_k1, 0x4100).level, 0x3100u);
  EXPECT_EQ(SupportAt(top_k1, 0x3000).level, 0x2100u);
  for (const OperatorSchema& schema : AllOperators()) {
    EXPECT_EQ(SupportAt(schema, schema.level).level, schema.level) << schema.name;
  }
  const TensorSupport* index = FindTensorSupport(SupportAt(top_k1, 0x4100), 2);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->types, 1u << 3);  // UINT32
  EXPECT_EQ(FindTensorSupport(SupportAt(top_k1, 0x4100), 3), nullptr);
}

TEST(Tables, SupportOfReduceDependsOnItsFunction) {
  const OperatorSchema& reduce = *FindOperator("REDUCE");
  constexpr uint32_t kArgMax = 0, kAverage = 2, kSum = 10;
  constexpr uint32_t kFloats = 1u << 1 | 1u << 2, kInts = 1u << 3 | 1u << 6, kLongs = 1u << 10 | 1u << 11;
  const auto output_types = [&](FeatureLevel level, uint32_t function) {
    return FindTensorSupport(SupportAt(reduce, level, function), 2)->types;
  };
  EXPECT_EQ(output_types(0x6400, kArgMax), kInts | kLongs);
  EXPECT_EQ(output_types(0x2100, kArgMax), 1u << 3);
  EXPECT_EQ(output_types(0x6400, kAverage), kFloats);
  EXPECT_EQ(output_types(0x6400, kSum), kFloats | kInts | kLongs);
  EXPECT_EQ(output_types(0x4100, kSum), kFloats | kInts);
}

TEST(Tables, DataTypesAndDimensionsAtALevel) {
  EXPECT_EQ(DataTypesAt(0x6200), 0x0FFE);
  EXPECT_EQ(DataTypesAt(0x6300), 0x3FFE);
  EXPECT_EQ(MaxDimensionsAt(0x2100), 5u);
  EXPECT_EQ(MaxDimensionsAt(0x3000), 8u);
}

}  // namespace
}  // namespace anydml
