#include "client/describe/desc_fields.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "client/exit_status.h"
#include "client/suggest.h"
#include "client/text.h"

namespace anydml::client {
namespace {

size_t ArrayLength(const FieldValue& value) {
  if (const auto* tensors = std::get_if<std::vector<TensorDesc>>(&value)) return tensors->size();
  if (const auto* numbers = std::get_if<std::vector<uint32_t>>(&value)) return numbers->size();
  if (const auto* numbers = std::get_if<std::vector<int32_t>>(&value)) return numbers->size();
  if (const auto* numbers = std::get_if<std::vector<float>>(&value)) return numbers->size();
  if (const auto* operators = std::get_if<std::vector<OperatorDesc>>(&value)) return operators->size();
  return 0;
}

// The operator whose name ends in this: ADD is ELEMENT_WISE_ADD, RELU is ACTIVATION_RELU.
std::string_view WithEnding(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view shortest;
  for (const std::string_view candidate : candidates) {
    if (name.empty() || candidate.size() <= name.size()) continue;
    const size_t start = candidate.size() - name.size();
    if (candidate[start - 1] != '_' || !EqualIgnoringCase(candidate.substr(start), name)) continue;
    if (shortest.empty() || candidate.size() < shortest.size()) shortest = candidate;
  }
  return shortest;
}

}  // namespace

Status FindSchema(std::string_view name, const OperatorSchema** schema) {
  *schema = FindOperator(name);
  if (*schema != nullptr) return {};
  std::vector<std::string_view> names;
  for (const OperatorSchema& candidate : AllOperators()) names.push_back(candidate.name);
  constexpr std::string_view kPrefix = "DML_OPERATOR_";
  const std::string_view short_name = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
  const std::string_view meant = WithEnding(short_name, names);
  return UsageError("there is no operator ", Printable(name),
                    meant.empty() ? DidYouMean(short_name, names) : StrCat("; did you mean ", meant, "?"));
}

Status FindSchemaInAnyCase(std::string_view name, const OperatorSchema** schema) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return FindSchema(FindOperator(upper) != nullptr ? std::string_view(upper) : name, schema);
}

Status FindSchemaField(const OperatorSchema& schema, std::string_view name, size_t* field) {
  const int index = FindField(schema, name);
  *field = static_cast<size_t>(index);
  if (index >= 0) return {};
  std::vector<std::string_view> names;
  for (const FieldSchema& candidate : schema.fields) names.push_back(candidate.name);
  return UsageError(schema.name, " has no field ", Printable(name), DidYouMean(name, names));
}

bool IsCount(const OperatorSchema& schema, size_t field) {
  return std::any_of(schema.fields.begin(), schema.fields.end(), [field](const FieldSchema& candidate) {
    return candidate.count_field == static_cast<int>(field);
  });
}

Status SetCounts(OperatorDesc* desc) {
  const OperatorSchema& schema = *desc->schema;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const int count_field = schema.fields[i].count_field;
    if (count_field < 0 || std::holds_alternative<std::monostate>(desc->fields[i])) continue;
    const auto length = static_cast<uint32_t>(ArrayLength(desc->fields[i]));
    FieldValue& count = desc->fields[count_field];
    if (std::holds_alternative<std::monostate>(count)) count = length;
    if (std::get<uint32_t>(count) != length) {
      return UsageError(schema.name, ": ", schema.fields[i].name, " has ", length, " elements but ",
                        schema.fields[count_field].name, " is ", std::get<uint32_t>(count));
    }
  }
  return {};
}

DataType ScalarType(const OperatorDesc& desc) {
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const EnumSchema* enumeration = desc.schema->fields[i].enumeration;
    const uint32_t* value = std::get_if<uint32_t>(&desc.fields[i]);
    if (enumeration == nullptr || value == nullptr) continue;
    if (std::string_view(enumeration->name) != "DML_TENSOR_DATA_TYPE" || *value == 0) continue;
    return static_cast<DataType>(*value);
  }
  const std::vector<const TensorDesc*> inputs = desc.inputs();
  return inputs.empty() || inputs[0] == nullptr ? DataType::kUnknown : inputs[0]->type;
}

}  // namespace anydml::client
