#include "anydml/operation.h"

#include <algorithm>
#include <numeric>

#include "anydml/desc_fields.h"
#include "anydml/exit_status.h"
#include "anydml/field_values.h"
#include "anydml/tensor_source.h"
#include "ops/operator.h"

namespace anydml::tools {
namespace {

std::vector<std::string> Parts(const FieldSchema& field, const std::string& text) {
  return field.type == FieldType::kTensorArray ? SplitTensors(text) : std::vector<std::string>{text};
}

// Where a page says how many of the dimensions of a tensor are meant, it lets
// tensors of fewer dimensions be right-aligned with leading 1s. Elsewhere ranks are
// the caller's business: a shorter tensor would silently mean something else.
bool RightAligns(const OperatorSchema& schema) {
  return std::any_of(schema.fields.begin(), schema.fields.end(), [](const FieldSchema& field) {
    const std::string_view name = field.name;
    return field.type == FieldType::kUInt && field.kind == FieldKind::kAttribute &&
           (name == "InputDimensionCount" || name == "IndicesDimensionCount" || name == "IndexDimensions");
  });
}

void AddLeadingOnes(TensorDesc* tensor, uint32_t rank) {
  const uint32_t added = rank > tensor->rank ? rank - tensor->rank : 0;
  if (added == 0) return;
  // Strides of dimensions of size 1 never matter; these keep a packed tensor packed.
  const auto span = static_cast<uint32_t>(ElementCount(*tensor));
  std::copy_backward(tensor->sizes.begin(), tensor->sizes.begin() + tensor->rank,
                     tensor->sizes.begin() + rank);
  std::copy_backward(tensor->strides.begin(), tensor->strides.begin() + tensor->rank,
                     tensor->strides.begin() + rank);
  std::fill_n(tensor->sizes.begin(), added, 1u);
  std::fill_n(tensor->strides.begin(), added, span);
  tensor->rank = rank;
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
      InputFile file{i, {}, 0};
      ANYDML_RETURN_IF_ERROR(ReadTensorSource(schema_.fields[i].name, text, &file.array));
      file.file_rank = file.array.tensor.rank;
      inputs_.push_back(std::move(file));
    }
  }
  return {};
}

Status Operation::Describe(FeatureLevel level, DataType index_type) {
  desc_.schema = &schema_;
  desc_.fields.assign(schema_.fields.size(), {});
  ANYDML_RETURN_IF_ERROR(AlignRanks(level));
  SetInputTensors();
  ANYDML_RETURN_IF_ERROR(SetAttributes());
  ANYDML_RETURN_IF_ERROR(SetOutputs(index_type));
  return SetCounts(&desc_);
}

// Adds leading 1s up to the smallest dimension count that the feature level
// takes, and up to the largest of tensors that must agree.
Status Operation::AlignRanks(FeatureLevel level) {
  std::vector<uint32_t> ranks(schema_.fields.size());
  for (const InputFile& file : inputs_) ranks[file.field] = std::max(ranks[file.field], file.file_rank);
  for (const Relation& relation : schema_.relations) {
    if (relation.kind == RelationKind::kSameDimensionCount)
      ANYDML_RETURN_IF_ERROR(AlignGroup(relation, &ranks));
  }
  for (const TensorSupport& support : SupportAt(schema_, level).tensors) {
    ranks[support.field] = std::max(ranks[support.field], uint32_t{support.min_dimensions});
  }
  for (const Relation& relation : schema_.relations) {
    if (relation.kind != RelationKind::kSameDimensionCount) continue;
    uint32_t largest = 0;
    for (const uint8_t field : relation.fields) largest = std::max(largest, ranks[field]);
    for (const uint8_t field : relation.fields) ranks[field] = largest;
  }
  for (InputFile& file : inputs_) AddLeadingOnes(&file.array.tensor, ranks[file.field]);
  return {};
}

// The files of tensors that must have one dimension count.
Status Operation::AlignGroup(const Relation& relation, std::vector<uint32_t>* ranks) const {
  const InputFile* first = nullptr;
  for (const InputFile& file : inputs_) {
    const bool in_group =
        std::find(relation.fields.begin(), relation.fields.end(), file.field) != relation.fields.end();
    if (!in_group) continue;
    if (first == nullptr) first = &file;
    if (file.file_rank != first->file_rank && !RightAligns(schema_)) {
      return InvalidArgument(schema_.name, ": ", schema_.fields[first->field].name, " has ", first->file_rank,
                             " dimensions but ", schema_.fields[file.field].name, " has ", file.file_rank,
                             "; their files must have equally many");
    }
    for (const uint8_t field : relation.fields) (*ranks)[field] = std::max((*ranks)[field], file.file_rank);
  }
  return {};
}

void Operation::SetInputTensors() {
  for (const InputFile& file : inputs_) {
    FieldValue& value = desc_.fields[file.field];
    if (schema_.fields[file.field].type == FieldType::kTensor) {
      value = file.array.tensor;
      continue;
    }
    if (!std::holds_alternative<std::vector<TensorDesc>>(value)) value = std::vector<TensorDesc>();
    std::get<std::vector<TensorDesc>>(value).push_back(file.array.tensor);
  }
}

Status Operation::SetAttributes() {
  // Scalars last: their type is another attribute.
  for (const bool scalars : {false, true}) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      const FieldSchema& field = schema_.fields[i];
      if (field.kind != FieldKind::kAttribute || (field.type == FieldType::kScalarUnion) != scalars) continue;
      ANYDML_RETURN_IF_ERROR(texts_[i] ? SetAttribute(i) : SetDefault(i));
    }
  }
  return {};
}

Status Operation::SetAttribute(size_t index) {
  const FieldSchema& field = schema_.fields[index];
  ANYDML_RETURN_IF_ERROR(ParseFieldValue(field, *texts_[index], ScalarType(desc_), &desc_.fields[index]));
  const std::string_view name = field.name;
  return name == "Axis" || name == "Axes" ? ShiftAxes(index) : Status();
}

// Axes count the dimensions of the first input's file; leading 1s move them.
Status Operation::ShiftAxes(size_t index) {
  if (inputs_.empty()) return {};
  const uint32_t file_rank = inputs_[0].file_rank;
  const uint32_t added = inputs_[0].array.tensor.rank - file_rank;
  std::vector<uint32_t*> axes;
  if (auto* axis = std::get_if<uint32_t>(&desc_.fields[index])) axes.push_back(axis);
  if (auto* array = std::get_if<std::vector<uint32_t>>(&desc_.fields[index])) {
    for (uint32_t& axis : *array) axes.push_back(&axis);
  }
  for (uint32_t* axis : axes) {
    if (*axis >= file_rank) {
      return InvalidArgument(schema_.name, ": ", schema_.fields[index].name, " is ", *axis,
                             " but the file of ", schema_.fields[inputs_[0].field].name, " has ", file_rank,
                             " dimensions; it must be in [0, ", file_rank - 1, "]");
    }
    *axis += added;
  }
  return {};
}

Status Operation::SetDefault(size_t index) {
  const FieldSchema& field = schema_.fields[index];
  if (field.optional || IsCount(schema_, index)) return {};
  const std::string_view name = field.name;
  // "InputDimensionCount" is about "InputTensor": what its file says.
  constexpr std::string_view kSuffix = "DimensionCount";
  if (field.type == FieldType::kUInt && name.ends_with(kSuffix)) {
    const std::string tensor = StrCat(name.substr(0, name.size() - kSuffix.size()), "Tensor");
    if (const InputFile* file = FileOf(tensor)) {
      desc_.fields[index] = file->file_rank;
      return {};
    }
  }
  if (field.type == FieldType::kEnum && std::string_view(field.enumeration->name) == "DML_TENSOR_DATA_TYPE" &&
      !inputs_.empty()) {
    desc_.fields[index] = static_cast<uint32_t>(inputs_[0].array.tensor.type);
    return {};
  }
  return UsageError(schema_.name, ": ", field.name, " is missing (", FieldTypeName(field), ")");
}

const InputFile* Operation::FileOf(std::string_view field_name) const {
  const int field = FindField(schema_, field_name);
  const auto file = std::find_if(inputs_.begin(), inputs_.end(), [field](const InputFile& candidate) {
    return static_cast<int>(candidate.field) == field;
  });
  return file == inputs_.end() ? nullptr : &*file;
}

Status Operation::SetOutputs(DataType index_type) {
  const Operator* op = FindImplementation(schema_.type);
  if (op == nullptr) {
    return Status(Code::kUnsupported, StrCat(schema_.name, " is known but not implemented yet"));
  }
  bool has_index = false;
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind != FieldKind::kOutput) continue;
    TensorDesc tensor;  // without sizes: to be inferred
    if (std::string_view(field.name).find("Ind") != std::string_view::npos) {
      tensor.type = index_type;
      has_index = true;
    }
    if (field.type == FieldType::kTensor) {
      desc_.fields[i] = tensor;
    } else {
      desc_.fields[i] = std::vector<TensorDesc>(texts_[i] ? Parts(field, *texts_[i]).size() : 0, tensor);
    }
  }
  if (index_type != DataType::kUnknown && !has_index) {
    return UsageError(schema_.name, " has no index output; --index-type does not apply to it");
  }
  ANYDML_RETURN_IF_ERROR(op->infer(&desc_));
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind == FieldKind::kOutput && field.optional && !texts_[i]) desc_.fields[i] = std::monostate();
  }
  return {};
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
    const auto paths = texts_[i] ? Parts(field, *texts_[i]) : std::vector<std::string>(1);
    if (const auto* array = std::get_if<std::vector<TensorDesc>>(&desc_.fields[i])) {
      for (size_t j = 0; j < array->size(); ++j)
        slots.push_back({StrCat(field.name, "[", j, "]"), paths[j], (*array)[j]});
      continue;
    }
    const auto* tensor = std::get_if<TensorDesc>(&desc_.fields[i]);
    slots.push_back({field.name, paths[0], tensor != nullptr ? *tensor : TensorDesc()});
  }
  return slots;
}

TensorDesc Operation::AsInFile(const TensorDesc& tensor) const {
  TensorDesc result = tensor;
  uint32_t extra = inputs_.empty() ? 0 : inputs_[0].array.tensor.rank - inputs_[0].file_rank;
  for (; extra > 0 && result.rank > 1 && result.sizes[0] == 1; --extra) {
    std::copy(result.sizes.begin() + 1, result.sizes.begin() + result.rank, result.sizes.begin());
    std::copy(result.strides.begin() + 1, result.strides.begin() + result.rank, result.strides.begin());
    --result.rank;
  }
  return result;
}

}  // namespace anydml::tools
