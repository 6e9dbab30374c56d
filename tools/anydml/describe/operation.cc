#include "anydml/describe/operation.h"

#include <algorithm>

#include "anydml/model/model_parts.h"
#include "client/describe/desc_fields.h"
#include "client/describe/explain.h"
#include "client/exit_status.h"

namespace anydml::client {
namespace {

std::vector<std::string> Parts(const FieldSchema& field, const std::string& text) {
  return field.type == FieldType::kTensorArray ? SplitTensors(text) : std::vector<std::string>{text};
}

// Prefixes an error with the operator; files have names of their own.
Status Named(const OperatorSchema& schema, const Status& status) {
  return status.code() == kBadUsage ? UsageError(schema.name, ": ", status.message()) : status;
}

}  // namespace

Status Operation::MatchFields(const std::vector<FieldArgument>& arguments) {
  for (const auto& [name, value] : arguments) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(FindSchemaField(schema_, name, &field));
    if (texts_[field]) return UsageError(schema_.name, ": ", name, " is given twice");
    if (value.empty()) return UsageError(schema_.name, ": ", name, " is given without a value");
    texts_[field] = value;
  }
  for (size_t i = 0; i < texts_.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind == FieldKind::kInput && !field.optional && !texts_[i]) {
      return UsageError(schema_.name, ": ", field.name, " is missing (", field.name, "=file.npy)");
    }
  }
  return {};
}

Status Operation::LoadInputs() {
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (schema_.fields[i].kind != FieldKind::kInput || !texts_[i]) continue;
    for (const std::string& text : Parts(schema_.fields[i], *texts_[i])) {
      InputFile file{i, {}};
      ANYDML_RETURN_IF_ERROR(Named(schema_, ReadTensorSource(schema_.fields[i].name, text, &file.array)));
      inputs_.push_back(std::move(file));
    }
  }
  return {};
}

Status Operation::Describe(FeatureLevel level, DataType index_type) {
  level_ = level;
  index_type_ = index_type;
  ANYDML_RETURN_IF_ERROR(ReadTargets());
  return DescribeAt(level, &description_);
}

Status Operation::ReadTargets() {
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind != FieldKind::kOutput || !texts_[i]) continue;
    for (const std::string& part : Parts(field, *texts_[i])) {
      ANYDML_RETURN_IF_ERROR(
          Named(schema_, ParseOutputTarget(field.name, part, &targets_[i].emplace_back())));
    }
  }
  return {};
}

Status Operation::DescribeAt(FeatureLevel level, Description* description) const {
  for (const InputFile& file : inputs_) description->AddInput(file.field, file.array.tensor);
  ANYDML_RETURN_IF_ERROR(description->AlignInputs(level));
  ANYDML_RETURN_IF_ERROR(SetAttributes(description));
  return SetOutputs(description);
}

Status Operation::SetAttributes(Description* description) const {
  // Scalars last, because their type is another attribute.
  for (const bool scalars : {false, true}) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      const FieldSchema& field = schema_.fields[i];
      if (field.kind != FieldKind::kAttribute || (field.type == FieldType::kScalarUnion) != scalars) continue;
      ANYDML_RETURN_IF_ERROR(texts_[i] ? SetAttribute(i, *texts_[i], description)
                                       : description->SetDefault(i));
    }
  }
  return {};
}

Status Operation::SetAttribute(size_t field, const std::string& text, Description* description) const {
  const FieldType type = schema_.fields[field].type;
  if (type != FieldType::kOperatorDesc && type != FieldType::kOperatorDescArray) {
    return Named(schema_, description->SetAttribute(field, text));
  }
  std::vector<OperatorDesc> operators;
  ANYDML_RETURN_IF_ERROR(Named(schema_, ParseFusedOperators(schema_.fields[field], text, &operators)));
  description->SetOperators(field, std::move(operators));
  return {};
}

Status Operation::SetOutputs(Description* description) const {
  std::vector<OutputRequest> requests(schema_.fields.size());
  bool has_index = false;
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind != FieldKind::kOutput) continue;
    TensorDesc tensor;
    if (IsIndex(field.role)) {
      tensor.type = index_type_;
      has_index = true;
    }
    for (const OutputTarget& target : targets_[i]) {
      TensorDesc& request = requests[i].emplace_back(target.tensor);
      if (request.type == DataType::kUnknown) request.type = tensor.type;
      request.total_bytes = MinimumTotalBytes(request);
    }
    if (!texts_[i] && field.type == FieldType::kTensor && !field.optional) requests[i] = {tensor};
  }
  if (index_type_ != DataType::kUnknown && !has_index) {
    return UsageError(schema_.name, " has no index output; --index-type does not apply to it");
  }
  return description->InferOutputs(requests);
}

std::vector<std::vector<std::byte>> Operation::TakeInputData() {
  std::vector<std::vector<std::byte>> data;
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    if (schema_.fields[i].kind != FieldKind::kInput) continue;
    if (!texts_[i]) data.emplace_back();
    for (InputFile& file : inputs_) {
      if (file.field == i) data.push_back(std::move(file.array.data));
    }
  }
  return data;
}

std::vector<OutputSlot> Operation::Outputs() const {
  std::vector<OutputSlot> slots;
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind != FieldKind::kOutput) continue;
    if (const auto* array = std::get_if<std::vector<TensorDesc>>(&desc().fields[i])) {
      for (size_t j = 0; j < array->size(); ++j)
        slots.push_back({StrCat(field.name, "[", j, "]"), targets_[i][j].path, (*array)[j]});
      continue;
    }
    const auto* tensor = std::get_if<TensorDesc>(&desc().fields[i]);
    slots.push_back({field.name, targets_[i].empty() ? "" : targets_[i][0].path,
                     tensor != nullptr ? *tensor : TensorDesc()});
  }
  return slots;
}

TensorDesc Operation::AsInFile(const TensorDesc& tensor) const {
  TensorDesc result = description_.AsGiven(tensor);
  const bool axes = std::any_of(schema_.fields.begin(), schema_.fields.end(),
                                [](const FieldSchema& field) { return field.role == FieldRole::kAxis; });
  const bool scalars =
      !axes && !inputs_.empty() &&
      std::all_of(inputs_.begin(), inputs_.end(), [](const InputFile& file) { return file.array.scalar; });
  if (scalars && result.rank == 1 && result.sizes[0] == 1) result.rank = 0;
  return result;
}

Status Operation::Explain(const Status& status) const {
  return client::Explain(status, description_, level_, [this](FeatureLevel level, Description* description) {
    return DescribeAt(level, description);
  });
}

}  // namespace anydml::client
