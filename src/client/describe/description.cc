#include "client/describe/description.h"

#include <algorithm>
#include <utility>

#include "client/describe/desc_fields.h"
#include "client/describe/field_values.h"
#include "client/describe/operator_facts.h"
#include "client/exit_status.h"

namespace anydml::client {
namespace {

bool HasRole(const OperatorSchema& schema, FieldRole role) {
  return std::any_of(schema.fields.begin(), schema.fields.end(),
                     [role](const FieldSchema& field) { return field.role == role; });
}

// If the documentation has a count of a tensor's meaningful dimensions, tensors of lower rank may be
// right-aligned with leading 1s. Otherwise the caller decides about ranks: a shorter tensor would silently
// mean something else.
bool RightAligns(const OperatorSchema& schema) { return HasRole(schema, FieldRole::kDimensionCount); }

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

std::vector<TensorDesc*> TensorsOf(FieldValue* value) {
  std::vector<TensorDesc*> tensors;
  if (auto* tensor = std::get_if<TensorDesc>(value)) tensors.push_back(tensor);
  if (auto* array = std::get_if<std::vector<TensorDesc>>(value)) {
    for (TensorDesc& tensor : *array) tensors.push_back(&tensor);
  }
  return tensors;
}

void SetSizes(const TensorDesc& from, TensorDesc* tensor) {
  tensor->rank = from.rank;
  tensor->sizes = from.sizes;
  SetPackedStrides(tensor);
  tensor->total_bytes = MinimumTotalBytes(*tensor);
}

}  // namespace

Description::Description(const OperatorSchema& schema) : schema_(schema) {
  desc_.schema = &schema;
  desc_.fields.assign(schema.fields.size(), {});
}

void Description::AddInput(size_t field, const TensorDesc& tensor) {
  inputs_.push_back({field, tensor, tensor.rank});
}

Status Description::AlignInputs(FeatureLevel level) {
  std::vector<uint32_t> ranks(schema_.fields.size());
  for (const Input& input : inputs_) ranks[input.field] = std::max(ranks[input.field], input.given_rank);
  for (const Relation& relation : schema_.relations) {
    if (relation.kind == RelationKind::kSameDimensionCount)
      ANYDML_RETURN_IF_ERROR(AlignGroup(relation, &ranks));
  }
  for (const TensorSupport& support : SupportAt(schema_, level).tensors) {
    // A leading 1 would turn the batch into channels and the channels into a spatial dimension.
    if (HasRole(schema_, FieldRole::kPerSpatialDimension)) break;
    ranks[support.field] = std::max(ranks[support.field], uint32_t{support.min_dimensions});
  }
  for (const Relation& relation : schema_.relations) {
    if (relation.kind != RelationKind::kSameDimensionCount) continue;
    uint32_t largest = 0;
    for (const uint8_t field : relation.fields) largest = std::max(largest, ranks[field]);
    for (const uint8_t field : relation.fields) ranks[field] = largest;
  }
  for (Input& input : inputs_) {
    AddLeadingOnes(&input.tensor, ranks[input.field]);
    FieldValue& value = desc_.fields[input.field];
    if (schema_.fields[input.field].type == FieldType::kTensor) {
      value = input.tensor;
      continue;
    }
    if (!std::holds_alternative<std::vector<TensorDesc>>(value)) value = std::vector<TensorDesc>();
    std::get<std::vector<TensorDesc>>(value).push_back(input.tensor);
  }
  return {};
}

// The inputs among tensors that must have the same rank.
Status Description::AlignGroup(const Relation& relation, std::vector<uint32_t>* ranks) const {
  const Input* first = nullptr;
  const auto name_of = [this](const Input& input) {
    const FieldSchema& field = schema_.fields[input.field];
    if (field.type != FieldType::kTensorArray) return std::string(field.name);
    const auto begins = std::find_if(inputs_.begin(), inputs_.end(),
                                     [&input](const Input& other) { return other.field == input.field; });
    return StrCat(field.name, "[", &input - &*begins, "]");
  };
  for (const Input& input : inputs_) {
    const bool in_group =
        std::find(relation.fields.begin(), relation.fields.end(), input.field) != relation.fields.end();
    if (!in_group) continue;
    if (first == nullptr) first = &input;
    if (input.given_rank != first->given_rank && !RightAligns(schema_)) {
      return InvalidArgument(schema_.name, ": ", name_of(*first), " has ", first->given_rank,
                             " dimensions but ", name_of(input), " has ", input.given_rank,
                             "; they must have equally many");
    }
    for (const uint8_t field : relation.fields) (*ranks)[field] = std::max((*ranks)[field], input.given_rank);
  }
  return {};
}

Status Description::SetAttribute(size_t index, std::string_view text) {
  const FieldSchema& field = schema_.fields[index];
  ANYDML_RETURN_IF_ERROR(ParseFieldValue(field, text, ScalarType(desc_), &desc_.fields[index]));
  if (field.role == FieldRole::kAxis) return ShiftAxes(index);
  if (field.role == FieldRole::kPerDimension) return AddNeutralElements(index);
  return {};
}

void Description::SetOperators(size_t field, std::vector<OperatorDesc> operators) {
  if (schema_.fields[field].type == FieldType::kOperatorDescArray) {
    desc_.fields[field] = std::move(operators);
  } else {
    desc_.fields[field] = std::make_shared<const OperatorDesc>(std::move(operators.at(0)));
  }
}

// Axes refer to the given dimensions of the first input; leading 1s shift them.
Status Description::ShiftAxes(size_t index) {
  if (inputs_.empty()) return {};
  const uint32_t given_rank = inputs_[0].given_rank;
  const uint32_t added = inputs_[0].tensor.rank - given_rank;
  std::vector<uint32_t*> axes;
  if (auto* axis = std::get_if<uint32_t>(&desc_.fields[index])) axes.push_back(axis);
  if (auto* array = std::get_if<std::vector<uint32_t>>(&desc_.fields[index])) {
    for (uint32_t& axis : *array) axes.push_back(&axis);
  }
  for (uint32_t* axis : axes) {
    if (*axis >= given_rank) {
      return InvalidArgument(schema_.name, ": ", schema_.fields[index].name, " is ", *axis, " but ",
                             schema_.fields[inputs_[0].field].name, " has ", given_rank,
                             " dimensions; it must be in [0, ", given_rank - 1, "]");
    }
    *axis += added;
  }
  return {};
}

// Arrays have an element per given dimension of the first input; leading 1s need elements, too.
Status Description::AddNeutralElements(size_t index) {
  if (inputs_.empty()) return {};
  const FieldSchema& field = schema_.fields[index];
  const uint32_t given_rank = inputs_[0].given_rank;
  const auto add = [&](auto* array) -> Status {
    if (array == nullptr) return {};
    if (array->size() != given_rank) {
      return InvalidArgument(schema_.name, ": ", field.name, " has ", array->size(), " elements but ",
                             schema_.fields[inputs_[0].field].name, " has ", given_rank,
                             " dimensions; they must be equally many");
    }
    array->insert(array->begin(), AddedOnes(), field.neutral);
    auto* length = std::get_if<uint32_t>(&desc_.fields[static_cast<size_t>(field.count_field)]);
    if (length != nullptr && *length == given_rank) *length += AddedOnes();
    return {};
  };
  FieldValue& value = desc_.fields[index];
  ANYDML_RETURN_IF_ERROR(add(std::get_if<std::vector<uint32_t>>(&value)));
  ANYDML_RETURN_IF_ERROR(add(std::get_if<std::vector<int32_t>>(&value)));
  return add(std::get_if<std::vector<float>>(&value));
}

Status Description::SetDefault(size_t index) {
  const FieldSchema& field = schema_.fields[index];
  if (field.optional || IsCount(schema_, index)) return {};
  if (field.role == FieldRole::kDimensionCount) {
    if (const Input* input = InputOf(static_cast<size_t>(field.subject))) {
      desc_.fields[index] = input->given_rank;
      return {};
    }
  }
  if (field.type == FieldType::kEnum && std::string_view(field.enumeration->name) == "DML_TENSOR_DATA_TYPE" &&
      !inputs_.empty()) {
    desc_.fields[index] = static_cast<uint32_t>(inputs_[0].tensor.type);
    return {};
  }
  return UsageError(schema_.name, ": ", field.name, " is missing (", FieldTypeName(field), ")");
}

const Description::Input* Description::InputOf(size_t field) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [field](const Input& candidate) { return candidate.field == field; });
  return found == inputs_.end() ? nullptr : &*found;
}

DataType Description::TypeOfInputsLike(size_t output) const {
  // The schema has no relation for FOLD, whose documentation contradicts itself; the operator checks the
  // types.
  if (schema_.type == static_cast<uint32_t>(OperatorType::kFold) && !inputs_.empty()) {
    return inputs_[0].tensor.type;
  }
  for (const Relation& relation : schema_.relations) {
    const bool holds_always = relation.below == 0 && relation.except_variants == 0;
    if (relation.kind != RelationKind::kSameDataType || !holds_always ||
        std::find(relation.fields.begin(), relation.fields.end(), output) == relation.fields.end()) {
      continue;
    }
    for (const uint8_t field : relation.fields) {
      if (const Input* input = InputOf(field)) return input->tensor.type;
    }
  }
  return DataType::kUnknown;
}

Status Description::InferOutputs(const std::vector<OutputRequest>& requests) {
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind != FieldKind::kOutput) continue;
    OutputRequest tensors = requests[i];
    for (TensorDesc& tensor : tensors) {
      if (tensor.rank > 0 && tensor.type == DataType::kUnknown) tensor.type = TypeOfInputsLike(i);
      // Operators infer both sizes and type, or keep a tensor as it is: given sizes alone are restored
      // afterwards.
      if (tensor.type == DataType::kUnknown) tensor.rank = 0;
      if (tensor.rank > 0) AddLeadingOnes(&tensor, tensor.rank + AddedOnes());
    }
    if (field.type == FieldType::kTensorArray) {
      desc_.fields[i] = std::move(tensors);
    } else {
      desc_.fields[i] = tensors.empty() ? TensorDesc() : tensors[0];
    }
  }
  ANYDML_RETURN_IF_ERROR(SetCounts(&desc_));  // of Axes, which determine sizes
  ANYDML_RETURN_IF_ERROR(client::InferOutputs(&desc_));
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.kind != FieldKind::kOutput) continue;
    if (field.optional && requests[i].empty()) desc_.fields[i] = std::monostate();
    const std::vector<TensorDesc*> tensors = TensorsOf(&desc_.fields[i]);
    for (size_t j = 0; j < requests[i].size(); ++j) {
      if (requests[i][j].rank > 0 && requests[i][j].type == DataType::kUnknown) {
        SetSizes(requests[i][j], tensors[j]);
        AddLeadingOnes(tensors[j], tensors[j]->rank + AddedOnes());
      }
    }
  }
  return SetCounts(&desc_);
}

// The number added to the first input, to whose dimensions callers refer.
uint32_t Description::AddedOnes() const {
  return inputs_.empty() ? 0 : inputs_[0].tensor.rank - inputs_[0].given_rank;
}

TensorDesc Description::AsGiven(const TensorDesc& tensor) const {
  TensorDesc result = tensor;
  for (uint32_t extra = AddedOnes(); extra > 0 && result.rank > 1 && result.sizes[0] == 1; --extra) {
    std::copy(result.sizes.begin() + 1, result.sizes.begin() + result.rank, result.sizes.begin());
    std::copy(result.strides.begin() + 1, result.strides.begin() + result.rank, result.strides.begin());
    --result.rank;
  }
  return result;
}

std::string Description::AddedDimensions() const {
  std::string sentence;
  for (const Input& input : inputs_) {
    if (input.tensor.rank == input.given_rank) continue;
    TensorDesc given = input.tensor;
    given.rank = input.given_rank;
    std::copy_n(input.tensor.sizes.begin() + (input.tensor.rank - input.given_rank), given.rank,
                given.sizes.begin());
    sentence += StrCat(sentence.empty() ? "" : ", ", schema_.fields[input.field].name, " ",
                       SizesToString(given), " is taken as ", SizesToString(input.tensor));
  }
  if (AddedOnes() > 0) {
    for (const FieldSchema& field : schema_.fields) {
      if (field.role == FieldRole::kAxis) sentence += StrCat(", ", field.name, " 0 as ", AddedOnes());
    }
  }
  return sentence;
}

}  // namespace anydml::client
