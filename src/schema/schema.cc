#include "schema/schema.h"

namespace anydml {
namespace {

struct OperatorAlias {
  const char* name;
  uint32_t type;
};

#include "schema/tables.generated.inc"

constexpr std::string_view kOperatorPrefix = "DML_OPERATOR_";
constexpr std::string_view kLevelPrefix = "DML_FEATURE_LEVEL_";

bool HoldsFor(const LevelSupport& support, uint32_t variant) {
  return support.variants == 0 || (variant < 32 && (support.variants >> variant & 1u) != 0);
}

}  // namespace

std::span<const OperatorSchema> AllOperators() { return kOperators; }
std::span<const EnumSchema> AllEnums() { return kEnums; }
std::span<const FusionRule> AllFusionRules() { return kFusionRules; }

const OperatorSchema* FindOperator(uint32_t type) {
  // The types are 1..n without gaps; the generator refuses anything else.
  return type >= 1 && type <= std::size(kOperators) ? &kOperators[type - 1] : nullptr;
}

const OperatorSchema* FindOperator(OperatorType type) { return FindOperator(static_cast<uint32_t>(type)); }

const OperatorSchema* FindOperator(std::string_view name) {
  if (name.starts_with(kOperatorPrefix)) name.remove_prefix(kOperatorPrefix.size());
  for (const OperatorSchema& schema : kOperators) {
    if (name == schema.name) return &schema;
  }
  for (const OperatorAlias& alias : kAliases) {
    if (name == alias.name) return FindOperator(alias.type);
  }
  return nullptr;
}

int FindField(const OperatorSchema& schema, std::string_view name) {
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    if (name == schema.fields[i].name) return static_cast<int>(i);
  }
  return -1;
}

const EnumSchema* FindEnum(std::string_view name) {
  for (const EnumSchema& schema : kEnums) {
    if (name == schema.name) return &schema;
  }
  return nullptr;
}

const LevelSupport& SupportAt(const OperatorSchema& schema, FeatureLevel level, uint32_t variant) {
  for (const LevelSupport& support : schema.support) {
    if (support.level <= level && HoldsFor(support, variant)) return support;
  }
  return schema.support.back();
}

const TensorSupport* FindTensorSupport(const LevelSupport& support, int field) {
  for (const TensorSupport& tensor : support.tensors) {
    if (tensor.field == field) return &tensor;
  }
  return nullptr;
}

uint16_t DataTypesAt(FeatureLevel level) {
  uint16_t types = 0;
  for (const EnumMember& member : kMembers_DML_TENSOR_DATA_TYPE) {
    if (member.value != 0 && member.level <= level) types |= static_cast<uint16_t>(1u << member.value);
  }
  return types;
}

uint32_t MaxDimensionsAt(FeatureLevel level) { return level < 0x3000 ? 5 : 8; }

std::string FeatureLevelName(FeatureLevel level) {
  return std::to_string(level >> 12) + "." + std::to_string(level >> 8 & 0xF);
}

FeatureLevel ParseFeatureLevel(std::string_view text) {
  if (text.starts_with(kLevelPrefix)) text.remove_prefix(kLevelPrefix.size());
  for (const EnumMember& member : kMembers_DML_FEATURE_LEVEL) {
    const std::string name = FeatureLevelName(member.value);
    const bool separated = text.size() == name.size() && (text[1] == '.' || text[1] == '_');
    if (separated && text[0] == name[0] && text[2] == name[2]) return member.value;
  }
  return 0;
}

}  // namespace anydml
