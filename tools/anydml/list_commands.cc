// The commands that only tell: operators, adapters.
#include <anydml.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "anydml/commands.h"
#include "anydml/exit_status.h"
#include "anydml/field_values.h"
#include "anydml/suggest.h"
#include "common/adapters.h"
#include "ops/operator.h"

namespace anydml::tools {

const char* const kOperatorsHelp =
    R"(usage: anydml operators [NAME]

Lists all operators of DirectML with the feature level that introduced them and
whether they are implemented. With a NAME: its fields, their types, and the data
types and dimension counts of its tensors at each feature level.
)";

const char* const kAdaptersHelp =
    R"(usage: anydml adapters

Lists the adapters of this machine, best first; the first one is used by default.
Where there is no GPU among them, the last line says why.
)";

namespace {

std::string ImplementationNames(const Operator& op) {
  std::string names;
  for (const char* name : op.implementations) names += StrCat(names.empty() ? "" : ", ", name);
  return names;
}

void ListOperators() {
  std::printf("%-36s %-6s %s\n", "operator", "since", "implemented");
  for (const OperatorSchema& schema : AllOperators()) {
    const Operator* op = FindImplementation(schema.type);
    std::printf("%-36s %-6s %s\n", schema.name, FeatureLevelName(schema.level).c_str(),
                op != nullptr ? ImplementationNames(*op).c_str() : "-");
  }
}

std::string FieldNote(const FieldSchema& field) {
  std::string note = FieldTypeName(field);
  if (field.kind == FieldKind::kInput) note = "input " + note;
  if (field.kind == FieldKind::kOutput) note = "output " + note;
  if (field.optional) note += ", optional";
  if (field.type != FieldType::kEnum) return note;
  std::string members;
  for (const EnumMember& member : field.enumeration->members) {
    members += StrCat(members.empty() ? ": " : ", ", ShortName(*field.enumeration, member));
  }
  return note + members;
}

std::string TypeNames(uint16_t types) {
  std::string names;
  for (uint32_t i = 0; i < kDataTypeCount; ++i) {
    if ((types >> i & 1) != 0) names += StrCat(names.empty() ? "" : ", ", Name(static_cast<DataType>(i)));
  }
  return names;
}

std::string DimensionRange(const TensorSupport& support) {
  if (support.min_dimensions == support.max_dimensions) return StrCat(+support.min_dimensions);
  return StrCat(+support.min_dimensions, " to ", +support.max_dimensions);
}

void DescribeOperator(const OperatorSchema& schema) {
  const Operator* op = FindImplementation(schema.type);
  std::printf("%s (DML_OPERATOR_TYPE %u), since feature level %s\n", schema.name, schema.type,
              FeatureLevelName(schema.level).c_str());
  if (op != nullptr) {
    std::printf("implemented: %s (fastest first)\n", ImplementationNames(*op).c_str());
  } else {
    std::printf("not implemented yet\n");
  }
  std::printf("\nfields:\n");
  for (const FieldSchema& field : schema.fields)
    std::printf("  %-28s %s\n", field.name, FieldNote(field).c_str());
  for (const LevelSupport& level : schema.support) {
    std::printf("\nfeature level %s and above:\n", FeatureLevelName(level.level).c_str());
    for (const TensorSupport& support : level.tensors) {
      std::printf("  %-28s %s dimensions, %s\n", schema.fields[support.field].name,
                  DimensionRange(support).c_str(), TypeNames(support.types).c_str());
    }
  }
}

std::string MemorySize(uint64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB", static_cast<double>(bytes) / kGiB);
  return text;
}

}  // namespace

Status OperatorsCommand(std::span<const std::string> arguments) {
  if (arguments.size() > 1) return UsageError("operators takes one name at most");
  if (arguments.empty()) {
    ListOperators();
    return {};
  }
  if (const OperatorSchema* schema = FindOperator(arguments[0])) {
    DescribeOperator(*schema);
    return {};
  }
  std::vector<std::string_view> names;
  for (const OperatorSchema& schema : AllOperators()) names.push_back(schema.name);
  return UsageError("there is no operator ", arguments[0], DidYouMean(arguments[0], names));
}

Status AdaptersCommand(std::span<const std::string> arguments) {
  if (!arguments.empty()) return UsageError("adapters takes no arguments");
  std::vector<Adapter> adapters;
  ANYDML_RETURN_IF_ERROR(ListAdapters(&adapters));
  for (size_t i = 0; i < adapters.size(); ++i) {
    std::printf("%zu  %-8s %s (%s of its own, %s shared)\n", i, adapters[i].id.c_str(),
                adapters[i].description.c_str(), MemorySize(adapters[i].dedicated_bytes).c_str(),
                MemorySize(adapters[i].shared_bytes).c_str());
  }
  if (const char* why = AnyDmlWhyNoGpu(); *why != '\0') std::printf("no GPU: %s\n", why);
  return {};
}

}  // namespace anydml::tools
