#include <algorithm>
#include <cstdio>
#include <vector>

#include "anydml/commands/commands.h"
#include "client/describe/desc_fields.h"
#include "client/describe/field_values.h"
#include "client/describe/operator_facts.h"
#include "client/exit_status.h"

namespace anydml::client {
namespace {

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += StrCat(text.empty() ? "" : ", ", name);
  return text;
}

// From names of implementations such as "cpu.reference", "cuda.sort".
std::vector<std::string> Backends(const std::vector<std::string>& implementations) {
  std::vector<std::string> backends;
  for (const std::string& name : implementations) {
    const std::string backend = name.substr(0, name.find('.'));
    if (std::find(backends.begin(), backends.end(), backend) == backends.end()) backends.push_back(backend);
  }
  return backends;
}

std::string Row(std::string_view first, std::string_view second, std::string_view third) {
  char text[64];
  std::snprintf(text, sizeof(text), "%-36s %-6s ", std::string(first).c_str(), std::string(second).c_str());
  return StrCat(text, third, "\n");
}

void ListOperators(Output* output) {
  JsonWriter& json = output->document();
  output->Text(output->Paint(Style::kBold, Row("operator", "since", "implementations")));
  json.Key("operators").BeginArray();
  for (const OperatorSchema& schema : AllOperators()) {
    const std::vector<std::string> implementations = ImplementationsOf(schema);
    output->Text(Row(schema.name, FeatureLevelName(schema.level), Join(implementations)));
    json.BeginObject();
    json.Key("name").String(schema.name);
    json.Key("since").String(FeatureLevelName(schema.level));
    json.Key("implementations").Strings(implementations);
    json.End();
  }
  json.End();
}

std::vector<std::string> EnumNames(const EnumSchema& enumeration, uint32_t mask = UINT32_MAX) {
  std::vector<std::string> names;
  for (const EnumMember& member : enumeration.members) {
    const bool wanted = mask == UINT32_MAX || (member.value < 32 && (mask >> member.value & 1) != 0);
    if (wanted) names.emplace_back(ShortName(enumeration, member));
  }
  return names;
}

std::string FieldNote(const FieldSchema& field) {
  std::string note = FieldTypeName(field);
  if (field.kind == FieldKind::kInput) note = "input " + note;
  if (field.kind == FieldKind::kOutput) note = "output " + note;
  if (field.optional) note += ", optional";
  if (field.optional_from != 0) note += StrCat(" from feature level ", FeatureLevelName(field.optional_from));
  return field.enumeration == nullptr ? note : StrCat(note, ": ", Join(EnumNames(*field.enumeration)));
}

std::vector<std::string> TypeNames(uint16_t types) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < kDataTypeCount; ++i) {
    if ((types >> i & 1) != 0) names.emplace_back(Name(static_cast<DataType>(i)));
  }
  return names;
}

std::string DimensionRange(const TensorSupport& support) {
  if (support.min_dimensions == support.max_dimensions) return StrCat(+support.min_dimensions);
  return StrCat(+support.min_dimensions, " to ", +support.max_dimensions);
}

std::string Indented(const char* name, const std::string& note) {
  std::string text = StrCat("  ", name, " ");
  text.resize(std::max<size_t>(text.size(), 31), ' ');
  return StrCat(text, note, "\n");
}

void DescribeField(const FieldSchema& field, Output* output) {
  constexpr const char* kKinds[] = {"input", "output", "attribute"};
  JsonWriter& json = output->document();
  output->Text(Indented(field.name, FieldNote(field)));
  json.BeginObject();
  json.Key("name").String(field.name);
  json.Key("kind").String(kKinds[static_cast<size_t>(field.kind)]);
  json.Key("type").String(FieldTypeName(field));
  json.Key("optional").Bool(field.optional);
  if (field.optional_from != 0) json.Key("optionalFrom").String(FeatureLevelName(field.optional_from));
  if (field.enumeration != nullptr) json.Key("values").Strings(EnumNames(*field.enumeration));
  json.End();
}

void DescribeLevel(const OperatorSchema& schema, const LevelSupport& level, Output* output) {
  JsonWriter& json = output->document();
  std::string heading = StrCat("feature level ", FeatureLevelName(level.level), " and above");
  json.BeginObject();
  json.Key("featureLevel").String(FeatureLevelName(level.level));
  if (level.variants != 0) {  // REDUCE has separate tables for some of its functions
    const FieldSchema& field = schema.fields[static_cast<size_t>(schema.variant_field)];
    const std::vector<std::string> values = EnumNames(*field.enumeration, level.variants);
    heading += StrCat(", ", field.name, " ", Join(values));
    json.Key(field.name).Strings(values);
  }
  output->Text(StrCat("\n", output->Paint(Style::kBold, heading + ":"), "\n"));
  json.Key("tensors").BeginArray();
  for (const TensorSupport& support : level.tensors) {
    const std::vector<std::string> types = TypeNames(support.types);
    output->Text(Indented(schema.fields[support.field].name,
                          StrCat(DimensionRange(support), " dimensions, ", Join(types))));
    json.BeginObject();
    json.Key("field").String(schema.fields[support.field].name);
    json.Key("minDimensions").Number(support.min_dimensions);
    json.Key("maxDimensions").Number(support.max_dimensions);
    json.Key("dataTypes").Strings(types);
    json.End();
  }
  json.End();
  json.End();
}

void DescribeOperator(const OperatorSchema& schema, Output* output) {
  JsonWriter& json = output->document();
  const std::vector<std::string> implementations = ImplementationsOf(schema);
  const std::vector<std::string> backends = Backends(implementations);
  output->Text(StrCat(output->Paint(Style::kBold, schema.name), " (DML_OPERATOR_TYPE ", schema.type,
                      "), since feature level ", FeatureLevelName(schema.level), "\n"));
  output->Text(StrCat("implemented for ", Join(backends), ": ", Join(implementations), " (fastest first)\n"));
  json.Key("operator").BeginObject();
  json.Key("name").String(schema.name);
  json.Key("type").Number(schema.type);
  json.Key("since").String(FeatureLevelName(schema.level));
  json.Key("backends").Strings(backends);
  json.Key("implementations").Strings(implementations);
  output->Text(StrCat("\n", output->Paint(Style::kBold, "fields:"), "\n"));
  json.Key("fields").BeginArray();
  for (const FieldSchema& field : schema.fields) DescribeField(field, output);
  json.End();
  json.Key("support").BeginArray();
  for (const LevelSupport& level : schema.support) DescribeLevel(schema, level, output);
  json.End();
  json.End();
}

Status Run(const Arguments& arguments, Output* output) {
  const std::vector<std::string>& names = arguments.operands();
  if (names.size() > 1) return UsageError("operators takes one name at most");
  if (names.empty()) {
    ListOperators(output);
    return {};
  }
  const OperatorSchema* schema = nullptr;
  ANYDML_RETURN_IF_ERROR(FindSchemaInAnyCase(names[0], &schema));
  DescribeOperator(*schema, output);
  return {};
}

}  // namespace

const Command kOperatorsCommand = {
    .name = "operators",
    .operands = "[NAME]",
    .summary = "list the operators, or describe one",
    .description = R"(Lists all operators of DirectML with the feature level that introduced them and
their implementations, fastest first. With a NAME: its fields, their types, and the
data types and dimension counts of its tensors at each feature level.

  anydml operators SCATTER_ND
  anydml operators --json | jq -r '.operators[] | select(.since == "6.4").name'
)",
    .operand_kind = ValueKind::kOperator,
    .executes = false,
    .options = {},
    .run = Run,
};

}  // namespace anydml::client
