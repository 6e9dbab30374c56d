// The schema of every operator: fields, offsets, types and dimension counts per feature level, relations
// between tensors. The tables are generated from schema/*.json by schema/generate_tables.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/data_type.h"
#include "schema/operator_type.generated.h"

namespace anydml {

using FeatureLevel = uint32_t;  // DML_FEATURE_LEVEL: 0x2100 is 2.1
inline constexpr FeatureLevel kLatestFeatureLevel = 0x6400;

enum class FieldKind : uint8_t { kInput, kOutput, kAttribute };

enum class FieldType : uint8_t {
  kTensor,
  kTensorArray,
  kUInt,
  kInt,
  kFloat,
  kBool,
  kEnum,
  kUIntArray,
  kIntArray,
  kFloatArray,
  kScaleBias,
  kSize2D,
  kScalarUnion,
  kOperatorDesc,
  kOperatorDescArray,
};

// The meaning of a field for another field, its subject, which is a tensor. (An array's count_field says
// which field is its length.)
enum class FieldRole : uint8_t {
  kNone,
  kAxis,                 // one or several dimensions of the subject
  kPerDimension,         // an array with an element per dimension of the subject
  kPerSpatialDimension,  // an array with an element per dimension of the subject except the first two
  kDimensionCount,       // the number of trailing dimensions of the subject that are meant
  kAxisIndex,            // a tensor of indices along the subject's axis
  kBlockIndex,           // a tensor of row-major indices within the subject's axes
  kCoordinates,          // a tensor whose rows are coordinates in the subject
  kElementIndex,         // a tensor of row-major indices in the whole subject
  kBatchIndex,           // a tensor of indices along dimension 0 of the subject
  kCount,                // a tensor of counts: how many time steps or rows of the subject are meant
};

// Whether the field is a tensor whose values are positions in the subject.
constexpr bool IsIndex(FieldRole role) {
  return role >= FieldRole::kAxisIndex && role <= FieldRole::kBatchIndex;
}

struct EnumMember {
  const char* name;  // "DML_AXIS_DIRECTION_INCREASING"
  uint32_t value;
  FeatureLevel level;  // the first level that has it
};

struct EnumSchema {
  const char* name;  // "DML_AXIS_DIRECTION"
  std::span<const EnumMember> members;
};

struct FieldSchema {
  const char* name;
  FieldKind kind;
  FieldType type;
  bool optional;
  uint16_t offset;                // in the C struct
  int8_t count_field;             // index of the field that holds an array's length, or -1
  const EnumSchema* enumeration;  // of kEnum fields
  FieldRole role = FieldRole::kNone;
  int8_t subject = -1;             // index of the field that the role refers to, or -1
  int8_t neutral = 0;              // for kPerDimension: the value for a leading dimension of size 1
  FeatureLevel optional_from = 0;  // below this level an optional tensor is required
  bool unknown_allowed = false;    // for data types: UNKNOWN is allowed and means the tensors' own

  bool OptionalAt(FeatureLevel level) const { return optional && level >= optional_from; }
};

struct TensorSupport {
  uint8_t field;  // index into fields
  uint8_t min_dimensions;
  uint8_t max_dimensions;
  uint16_t types;  // bit i: DataType(i)
};

struct LevelSupport {
  FeatureLevel level;  // the table holds from this level to the next entry's
  std::span<const TensorSupport> tensors;
  // Bit i: the table is for descriptions whose variant field (see OperatorSchema) is i. 0: for all. Only
  // REDUCE has variants, by its Function.
  uint32_t variants;
};

enum class RelationKind : uint8_t { kSameDimensionCount, kSameDataType, kSameSizes };

// Every present tensor of `fields` agrees with the first present one; every element of an array counts.
// kSameDataType may include a DML_TENSOR_DATA_TYPE attribute (UNKNOWN counts as absent).
struct Relation {
  RelationKind kind;
  std::span<const uint8_t> fields;
  FeatureLevel below;        // holds only below this level; 0: always
  uint32_t except_variants;  // bit i: does not hold if the variant field (see OperatorSchema) is i
};

struct OperatorSchema {
  const char* name;  // "TOP_K1"
  uint32_t type;     // DML_OPERATOR_TYPE
  FeatureLevel level;
  uint16_t desc_size;
  bool in_place;
  std::span<const FieldSchema> fields;
  std::span<const LevelSupport> support;  // highest level first
  std::span<const Relation> relations;
  bool owned_by_dml;     // whether inputs may carry DML_TENSOR_FLAG_OWNED_BY_DML
  int8_t variant_field;  // index of the enum field that chooses the support table, or -1
};

// `activation` may be the FusedActivation, or one of the ActivationDescs, of `host`.
struct FusionRule {
  uint32_t activation;  // DML_OPERATOR_TYPE
  uint32_t host;        // 0: every operator that has such a field
  FeatureLevel level;
};
std::span<const FusionRule> AllFusionRules();

std::span<const OperatorSchema> AllOperators();  // by type, 1..177

// Null if there is none. Takes names with or without "DML_OPERATOR_", and the alias SCATTER.
const OperatorSchema* FindOperator(uint32_t type);
const OperatorSchema* FindOperator(OperatorType type);  // never null
const OperatorSchema* FindOperator(std::string_view name);

int FindField(const OperatorSchema& schema, std::string_view name);  // -1 if there is none

// All enumerations: those of operator attributes and those of the API.
std::span<const EnumSchema> AllEnums();
const EnumSchema* FindEnum(std::string_view name);

// The table that holds at `level`, which must be one that has the operator: that of the highest level not
// above it. `variant` is the value of the variant field, if the operator has one.
const LevelSupport& SupportAt(const OperatorSchema& schema, FeatureLevel level, uint32_t variant = 0);

// The row of `field`, or null if the field is no tensor.
const TensorSupport* FindTensorSupport(const LevelSupport& support, int field);

// Types that exist at `level` at all, as TensorSupport::types.
uint16_t DataTypesAt(FeatureLevel level);

// The largest rank of any tensor at `level`: 5, and 8 from 3.0 on.
uint32_t MaxDimensionsAt(FeatureLevel level);

// "2.1" <-> 0x2100. ParseFeatureLevel takes "2.1", "2_1" and "DML_FEATURE_LEVEL_2_1", and returns 0 for
// anything that is not one of the fifteen levels.
std::string FeatureLevelName(FeatureLevel level);
FeatureLevel ParseFeatureLevel(std::string_view text);

}  // namespace anydml
