#include "schema/validate.h"

#include "schema/validate_internal.h"

namespace anydml {
namespace internal {

std::ostream& operator<<(std::ostream& stream, const FieldName& field) {
  stream << field.name;
  if (field.index >= 0) stream << '[' << field.index << ']';
  return stream;
}

Status CheckAvailability(const OperatorSchema& schema, FeatureLevel level) {
  if (schema.level <= level) return {};
  const Judge judge{&schema, level};
  return InvalidArgument(schema.name, ": the operator does not exist at feature level ",
                         FeatureLevelName(level),
                         LevelHint(judge, [&](FeatureLevel higher) { return higher >= schema.level; }));
}

Status CheckFusion(const Judge& host, const FieldName& field, const OperatorSchema& activation) {
  std::string allowed;
  FeatureLevel needed = 0;
  for (const FusionRule& rule : AllFusionRules()) {
    if (rule.host != 0 && rule.host != host.schema->type) continue;
    if (rule.activation == activation.type && rule.level <= host.level) return {};
    if (rule.activation == activation.type) needed = rule.level;
    if (rule.level > host.level) continue;
    allowed += StrCat(allowed.empty() ? "" : ", ", FindOperator(rule.activation)->name);
  }
  const std::string hint =
      LevelHint(host, [&](FeatureLevel higher) { return needed != 0 && higher >= needed; });
  return InvalidArgument(host.schema->name, ": ", field, ".Type is ", activation.name,
                         ", allowed at feature level ", FeatureLevelName(host.level), ": ", allowed, hint);
}

namespace {

Status ValidateAttributes(const Judge& judge, const OperatorDesc& desc);

// The alternative of FieldValue that a field of this type has.
size_t AlternativeOf(FieldType type) {
  const auto index = [](const FieldValue& value) { return value.index(); };
  switch (type) {
    case FieldType::kTensor:
      return index(TensorDesc{});
    case FieldType::kTensorArray:
      return index(std::vector<TensorDesc>{});
    case FieldType::kUInt:
    case FieldType::kBool:
    case FieldType::kEnum:
      return index(uint32_t{});
    case FieldType::kInt:
      return index(int32_t{});
    case FieldType::kFloat:
      return index(float{});
    case FieldType::kUIntArray:
      return index(std::vector<uint32_t>{});
    case FieldType::kIntArray:
      return index(std::vector<int32_t>{});
    case FieldType::kFloatArray:
      return index(std::vector<float>{});
    case FieldType::kScaleBias:
      return index(ScaleBias{});
    case FieldType::kSize2D:
      return index(Size2D{});
    case FieldType::kScalarUnion:
      return index(Scalar{});
    case FieldType::kOperatorDesc:
      return index(std::shared_ptr<const OperatorDesc>{});
    case FieldType::kOperatorDescArray:
      return index(std::vector<OperatorDesc>{});
  }
  return std::variant_npos;
}

bool Absent(const FieldValue& value) {
  const auto* nested = std::get_if<std::shared_ptr<const OperatorDesc>>(&value);
  return std::holds_alternative<std::monostate>(value) || (nested && !*nested);
}

size_t ArrayLength(const FieldValue& value) {
  if (const auto* tensors = std::get_if<std::vector<TensorDesc>>(&value)) return tensors->size();
  if (const auto* uints = std::get_if<std::vector<uint32_t>>(&value)) return uints->size();
  if (const auto* ints = std::get_if<std::vector<int32_t>>(&value)) return ints->size();
  if (const auto* floats = std::get_if<std::vector<float>>(&value)) return floats->size();
  if (const auto* nested = std::get_if<std::vector<OperatorDesc>>(&value)) return nested->size();
  return 0;
}

// Descriptions that do not come from C structs can be malformed in more ways.
Status CheckShape(const OperatorDesc& desc) {
  const OperatorSchema& schema = *desc.schema;
  if (desc.fields.size() != schema.fields.size()) {
    return InvalidArgument(schema.name, ": the description has ", desc.fields.size(),
                           " fields; it must have ", schema.fields.size());
  }
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = schema.fields[i];
    const FieldValue& value = desc.fields[i];
    if (Absent(value)) continue;
    if (value.index() != AlternativeOf(field.type)) {
      return InvalidArgument(schema.name, ": ", field.name, " holds a value of another type");
    }
    if (field.count_field < 0) continue;
    const auto* count = std::get_if<uint32_t>(&desc.fields[static_cast<size_t>(field.count_field)]);
    if (!count || *count != ArrayLength(value)) {
      return InvalidArgument(schema.name, ": ", field.name, " has ", ArrayLength(value), " elements but ",
                             schema.fields[static_cast<size_t>(field.count_field)].name, " is ",
                             count ? StrCat(*count) : "missing");
    }
  }
  return {};
}

Status CheckEnum(const Judge& judge, const FieldSchema& field, uint32_t value) {
  const std::string_view enumeration = field.enumeration->name;
  const EnumMember* given = nullptr;
  std::string allowed;
  for (const EnumMember& member : field.enumeration->members) {
    // UNKNOWN exists only so that zeroed memory is no valid type, except in fields where it means the
    // tensors' own.
    if (enumeration == "DML_TENSOR_DATA_TYPE" && member.value == 0 && !field.unknown_allowed) continue;
    if (member.value == value) given = &member;
    if (member.level > judge.level) continue;
    if (&member == given) return {};
    allowed += StrCat(allowed.empty() ? "" : ", ", member.name, " (", member.value, ")");
  }
  const std::string hint =
      LevelHint(judge, [&](FeatureLevel higher) { return given && higher >= given->level; });
  return InvalidArgument(judge.schema->name, ": ", field.name, " is ", given ? given->name : StrCat(value),
                         ", allowed at feature level ", FeatureLevelName(judge.level), ": ", allowed, hint);
}

Status ValidateFused(const Judge& host, const FieldName& name, const OperatorDesc& fused) {
  if (!fused.schema) return InvalidArgument(host.schema->name, ": ", name, " names no operator");
  ANYDML_RETURN_IF_ERROR(CheckFusion(host, name, *fused.schema));
  Status status = CheckShape(fused);
  for (size_t i = 0; status.ok() && i < fused.fields.size(); ++i) {
    const FieldSchema& field = fused.schema->fields[i];
    if (!NullInFusion(field) || Absent(fused.fields[i])) continue;
    status = InvalidArgument(fused.schema->name, ": ", field.name, " must be null in a fused activation");
  }
  if (status.ok()) status = ValidateAttributes({fused.schema, host.level}, fused);
  if (status.ok()) return {};
  return Status(status.code(), StrCat(host.schema->name, ": ", name, ": ", status.message()));
}

Status ValidateAttributes(const Judge& judge, const OperatorDesc& desc) {
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = judge.schema->fields[i];
    const FieldValue& value = desc.fields[i];
    if (field.kind != FieldKind::kAttribute) continue;
    if (Absent(value)) {
      if (field.optional) continue;
      return InvalidArgument(judge.schema->name, ": ", field.name, " is missing");
    }
    if (field.type == FieldType::kEnum) {
      ANYDML_RETURN_IF_ERROR(CheckEnum(judge, field, std::get<uint32_t>(value)));
    } else if (field.type == FieldType::kOperatorDesc) {
      const auto& fused = std::get<std::shared_ptr<const OperatorDesc>>(value);
      ANYDML_RETURN_IF_ERROR(ValidateFused(judge, {field.name}, *fused));
    } else if (field.type == FieldType::kOperatorDescArray) {
      const auto& array = std::get<std::vector<OperatorDesc>>(value);
      for (size_t k = 0; k < array.size(); ++k) {
        ANYDML_RETURN_IF_ERROR(ValidateFused(judge, {field.name, static_cast<int>(k)}, array[k]));
      }
    }
  }
  return {};
}

// Whether an empty array leaves the operator without inputs or outputs (JOIN, SPLIT).
bool OnlyOneOfItsKind(const OperatorSchema& schema, const FieldSchema& field) {
  for (const FieldSchema& other : schema.fields) {
    if (&other != &field && other.kind == field.kind) return false;
  }
  return true;
}

// For a tensor that became optional: " at feature level 6.1; DML_FEATURE_LEVEL_6_2 allows it".
std::string RequiredHint(const Judge& judge, const FieldSchema& field) {
  if (!field.optional) return "";
  const auto allows = [&](FeatureLevel higher) { return field.OptionalAt(higher); };
  return StrCat(" at feature level ", FeatureLevelName(judge.level), LevelHint(judge, allows));
}

Status ValidateTensors(const Judge& judge, const OperatorDesc& desc) {
  OverlapBudget budget;
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = judge.schema->fields[i];
    const FieldValue& value = desc.fields[i];
    if (field.kind == FieldKind::kAttribute) continue;
    if (Absent(value)) {
      if (field.OptionalAt(judge.level)) continue;
      return InvalidArgument(judge.schema->name, ": ", field.name, " is null; it is required",
                             RequiredHint(judge, field));
    }
    if (const auto* tensor = std::get_if<TensorDesc>(&value)) {
      ANYDML_RETURN_IF_ERROR(ValidateTensor(judge, static_cast<int>(i), {field.name}, *tensor, &budget));
      continue;
    }
    const auto& array = std::get<std::vector<TensorDesc>>(value);
    if (array.empty() && OnlyOneOfItsKind(*judge.schema, field)) {
      return InvalidArgument(judge.schema->name, ": ",
                             judge.schema->fields[static_cast<size_t>(field.count_field)].name,
                             " is 0; it must be at least 1");
    }
    for (size_t k = 0; k < array.size(); ++k) {
      ANYDML_RETURN_IF_ERROR(
          ValidateTensor(judge, static_cast<int>(i), {field.name, static_cast<int>(k)}, array[k], &budget));
    }
  }
  return {};
}

}  // namespace
}  // namespace internal

Status ValidateOperatorDesc(const OperatorDesc& desc, FeatureLevel level) {
  if (!desc.schema) return InvalidArgument("DML_OPERATOR_DESC: the description names no operator");
  ANYDML_RETURN_IF_ERROR(internal::CheckAvailability(*desc.schema, level));
  ANYDML_RETURN_IF_ERROR(internal::CheckShape(desc));
  internal::Judge judge{desc.schema, level};
  // Attributes first: one of them may choose the table for the tensors.
  ANYDML_RETURN_IF_ERROR(internal::ValidateAttributes(judge, desc));
  if (desc.schema->variant_field >= 0) {
    judge.variant = std::get<uint32_t>(desc.fields[static_cast<size_t>(desc.schema->variant_field)]);
  }
  ANYDML_RETURN_IF_ERROR(internal::ValidateTensors(judge, desc));
  return internal::ValidateRelations(judge, desc);
}

}  // namespace anydml
