// Helpers of the validation tests.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "schema/validate.h"
#include "support/desc_builder.h"

namespace anydml::testing {

inline Status Check(DescBuilder& builder, FeatureLevel level) {
  OperatorDesc desc;
  ANYDML_RETURN_IF_ERROR(ReadOperatorDesc(builder.Build(), level, &desc));
  return ValidateOperatorDesc(desc, level);
}

inline ::testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.message();
}

// E_INVALIDARG with a message that starts with `start`.
inline ::testing::AssertionResult IsInvalid(const Status& status, const std::string& start) {
  if (status.code() == Code::kInvalidArgument && status.message().starts_with(start)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "code " << std::hex << static_cast<uint32_t>(status.code()) << ", message \"" << status.message()
         << "\"; expected \"" << start << "...\"";
}

// The levels at which an operator's rules may change, and those just below.
inline std::set<FeatureLevel> InterestingLevels(const OperatorSchema& schema) {
  std::set<FeatureLevel> levels = {schema.level, kLatestFeatureLevel};
  FeatureLevel previous = 0;
  for (const EnumMember& member : FindEnum("DML_FEATURE_LEVEL")->members) {
    for (const LevelSupport& support : schema.support) {
      if (support.level != member.value) continue;
      levels.insert(member.value);
      levels.insert(previous);
    }
    for (const FieldSchema& field : schema.fields) {
      if (field.optional_from == member.value) levels.insert({member.value, previous});
    }
    previous = member.value;
  }
  std::erase_if(levels, [&](FeatureLevel level) { return level < schema.level; });
  return levels;
}

// A value of the variant field per table; {0} if there is no such field.
inline std::set<uint32_t> Variants(const OperatorSchema& schema) {
  if (schema.variant_field < 0) return {0};
  std::set<uint32_t> variants;
  for (const EnumMember& member :
       schema.fields[static_cast<size_t>(schema.variant_field)].enumeration->members) {
    variants.insert(member.value);
  }
  return variants;
}

// Calls fn(level, variant) for every operator and every level at which its rules change.
template <typename Function>
void ForEachCase(const Function& fn) {
  for (const OperatorSchema& schema : AllOperators()) {
    for (FeatureLevel level : InterestingLevels(schema)) {
      for (uint32_t variant : Variants(schema)) {
        SCOPED_TRACE(std::string(schema.name) + " at " + FeatureLevelName(level) + ", variant " +
                     std::to_string(variant));
        fn(schema, level, variant);
        if (::testing::Test::HasFailure()) return;  // one failure per operator suffices
      }
    }
  }
}

// The last element stands for its array.
struct TensorField {
  size_t field;
  size_t element;
  std::string name;    // "InputTensors[1]"
  std::string prefix;  // "JOIN: InputTensors[1]"
};

inline std::vector<TensorField> TensorFields(const OperatorSchema& schema) {
  std::vector<TensorField> fields;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const FieldSchema& field = schema.fields[i];
    if (field.kind == FieldKind::kAttribute) continue;
    const bool array = field.type == FieldType::kTensorArray;
    const std::string name = std::string(field.name) + (array ? "[1]" : "");
    fields.push_back({i, array ? 1u : 0u, name, std::string(schema.name) + ": " + name});
  }
  return fields;
}

// "; DML_FEATURE_LEVEL_5_0 allows it"
inline std::string Hint(FeatureLevel level) {
  std::string name = FeatureLevelName(level);
  name[1] = '_';
  return "; DML_FEATURE_LEVEL_" + name + " allows it";
}

}  // namespace anydml::testing
