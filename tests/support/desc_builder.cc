#include "support/desc_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <DirectML.h>

namespace anydml::testing {
namespace {

bool IsTensor(const FieldSchema& field) {
  return field.type == FieldType::kTensor || field.type == FieldType::kTensorArray;
}

bool IsDataType(const FieldSchema& field) {
  return field.type == FieldType::kEnum &&
         std::string_view(field.enumeration->name) == "DML_TENSOR_DATA_TYPE";
}

bool IsInline(FieldType type) {
  switch (type) {
    case FieldType::kUInt:
    case FieldType::kInt:
    case FieldType::kFloat:
    case FieldType::kBool:
    case FieldType::kEnum:
    case FieldType::kSize2D:
    case FieldType::kScalarUnion:
      return true;
    default:
      return false;
  }
}

}  // namespace

void TensorSpec::SetSizes(const std::vector<uint32_t>& new_sizes) {
  dimension_count = static_cast<uint32_t>(new_sizes.size());
  sizes = new_sizes;
  strides.reset();
  UpdateTotal();
}

void TensorSpec::SetStrides(const std::vector<uint32_t>& new_strides) {
  strides = new_strides;
  UpdateTotal();
}

void TensorSpec::SetDataType(uint32_t new_type) {
  data_type = new_type;
  UpdateTotal();
}

TensorDesc TensorSpec::ToTensorDesc() const {
  TensorDesc tensor;
  tensor.type = static_cast<DataType>(data_type);
  tensor.rank = std::min(dimension_count, kMaxDimensions);
  for (uint32_t i = 0; i < tensor.rank; ++i) tensor.sizes[i] = sizes->at(i);
  SetPackedStrides(&tensor);
  for (uint32_t i = 0; strides && i < tensor.rank; ++i) tensor.strides[i] = strides->at(i);
  return tensor;
}

void TensorSpec::UpdateTotal() {
  if (sizes) total_bytes = MinimumTotalBytes(ToTensorDesc());
}

DescBuilder::DescBuilder(const OperatorSchema& schema, FeatureLevel level, uint32_t variant)
    : schema_(&schema), level_(level), variant_(variant), fields_(schema.fields.size()) {
  for (size_t i = 0; i < fields_.size(); ++i) InitializeField(i);
  for (size_t i = 0; i < fields_.size(); ++i) {
    const FieldSchema& field = schema.fields[i];
    if (IsTensor(field)) SetSizes(i, std::vector<uint32_t>(MaxDimensions(i), 2));
    if (IsTensor(field) || IsDataType(field)) {
      SetDataType(i, static_cast<uint32_t>(std::countr_zero(AllowedTypes(i))));
    }
  }
}

DescBuilder DescBuilder::Fused(const OperatorSchema& schema, FeatureLevel level) {
  DescBuilder builder(schema, level);
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const FieldSchema& field = schema.fields[i];
    if (IsTensor(field) || field.type == FieldType::kScaleBias) builder.fields_[i].null = true;
  }
  return builder;
}

FieldSpec& DescBuilder::field(std::string_view name) {
  return fields_.at(static_cast<size_t>(FindField(*schema_, name)));
}

void DescBuilder::InitializeField(size_t index) {
  const FieldSchema& schema = schema_->fields[index];
  FieldSpec& field = fields_[index];
  const bool is_count =
      std::any_of(schema_->fields.begin(), schema_->fields.end(),
                  [&](const FieldSchema& other) { return other.count_field == static_cast<int>(index); });
  switch (schema.type) {
    case FieldType::kTensor:
      field.tensors.resize(1);
      break;
    case FieldType::kTensorArray:
      field.tensors.resize(2);
      break;
    case FieldType::kUInt:
      field.words = {is_count ? 2u : 1u};
      break;
    case FieldType::kEnum:
      field.words = {schema_->variant_field == static_cast<int>(index)
                         ? variant_
                         : schema.enumeration->members[0].value};
      break;
    case FieldType::kOperatorDesc:
      field.null = true;
      break;
    case FieldType::kOperatorDescArray:
      field.fused.assign(2, Fused(*FindOperator("ACTIVATION_RELU"), level_));
      break;
    case FieldType::kInt:
    case FieldType::kFloat:
    case FieldType::kBool:
      field.words = {0};
      break;
    default:  // arrays and pairs
      field.words = {1, 1};
      break;
  }
}

std::vector<size_t> DescBuilder::RelatedFields(size_t field, bool data_type) const {
  std::vector<size_t> related = {field};
  for (size_t next = 0; next < related.size(); ++next) {
    for (const Relation& relation : schema_->relations) {
      if ((relation.kind == RelationKind::kSameDataType) != data_type) continue;
      if (relation.below != 0 && level_ >= relation.below) continue;
      if ((relation.except_variants >> variant_ & 1u) != 0) continue;
      if (std::count(relation.fields.begin(), relation.fields.end(), related[next]) == 0) continue;
      for (size_t other : relation.fields) {
        if (std::count(related.begin(), related.end(), other) == 0) related.push_back(other);
      }
    }
  }
  return related;
}

uint32_t DescBuilder::AllowedTypes(size_t field) const {
  uint32_t types = DataTypesAt(level_);
  for (size_t other : RelatedFields(field, true)) {
    const TensorSupport* support =
        FindTensorSupport(SupportAt(*schema_, level_, variant_), static_cast<int>(other));
    if (support) types &= support->types;
  }
  return types;
}

uint32_t DescBuilder::MinDimensions(size_t field) const {
  uint32_t minimum = 1;
  for (size_t other : RelatedFields(field, false)) {
    const LevelSupport& support = SupportAt(*schema_, level_, variant_);
    minimum =
        std::max<uint32_t>(minimum, FindTensorSupport(support, static_cast<int>(other))->min_dimensions);
  }
  return minimum;
}

uint32_t DescBuilder::MaxDimensions(size_t field) const {
  uint32_t maximum = MaxDimensionsAt(level_);
  for (size_t other : RelatedFields(field, false)) {
    const LevelSupport& support = SupportAt(*schema_, level_, variant_);
    maximum =
        std::min<uint32_t>(maximum, FindTensorSupport(support, static_cast<int>(other))->max_dimensions);
  }
  return maximum;
}

void DescBuilder::SetDataType(size_t field, uint32_t type) {
  for (size_t other : RelatedFields(field, true)) {
    for (TensorSpec& tensor : fields_[other].tensors) tensor.SetDataType(type);
    if (IsDataType(schema_->fields[other])) fields_[other].words = {type};
  }
}

void DescBuilder::SetSizes(size_t field, const std::vector<uint32_t>& sizes) {
  for (size_t other : RelatedFields(field, false)) {
    for (TensorSpec& tensor : fields_[other].tensors) tensor.SetSizes(sizes);
  }
}

const void* DescBuilder::Store(const void* data, size_t size) {
  // Exactly as long as the data, so that a sanitizer sees every read beyond it.
  const size_t offset = misaligned_ ? 1 : 0;
  std::vector<std::byte>& block = storage_.emplace_back(offset + size);
  if (size > 0) std::memcpy(block.data() + offset, data, size);
  return block.data() + offset;
}

const void* DescBuilder::StoreTensors(const std::vector<TensorSpec>& tensors) {
  std::vector<DML_TENSOR_DESC> descs(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = tensors[i];
    const auto store = [this](const std::optional<std::vector<uint32_t>>& words) {
      return words ? static_cast<const UINT*>(Store(words->data(), words->size() * 4)) : nullptr;
    };
    DML_BUFFER_TENSOR_DESC buffer = {};
    // Through memory, because the values need not be members of the enums.
    std::memcpy(&buffer.DataType, &spec.data_type, 4);
    std::memcpy(&buffer.Flags, &spec.flags, 4);
    std::memcpy(&descs[i].Type, &spec.tensor_type, 4);
    buffer.DimensionCount = spec.dimension_count;
    buffer.Sizes = store(spec.sizes);
    buffer.Strides = store(spec.strides);
    buffer.TotalTensorSizeInBytes = spec.total_bytes;
    buffer.GuaranteedBaseOffsetAlignment = spec.alignment;
    descs[i].Desc = spec.null_desc ? nullptr : Store(&buffer, sizeof(buffer));
  }
  return Store(descs.data(), descs.size() * sizeof(descs[0]));
}

const void* DescBuilder::StoreField(size_t index) {
  FieldSpec& field = fields_[index];
  if (field.null) return nullptr;
  switch (schema_->fields[index].type) {
    case FieldType::kTensor:
    case FieldType::kTensorArray:
      return StoreTensors(field.tensors);
    case FieldType::kOperatorDesc:
    case FieldType::kOperatorDescArray: {
      std::vector<DML_OPERATOR_DESC> descs(field.fused.size());
      for (size_t i = 0; i < descs.size(); ++i) {
        field.fused[i].set_misaligned(misaligned_);
        std::memcpy(&descs[i], field.fused[i].Build(), sizeof(descs[i]));
      }
      return Store(descs.data(), descs.size() * sizeof(DML_OPERATOR_DESC));
    }
    default:
      return Store(field.words.data(), field.words.size() * 4);
  }
}

const DML_OPERATOR_DESC* DescBuilder::Build() {
  storage_.clear();
  std::vector<std::byte> bytes(schema_->desc_size);
  for (size_t i = 0; i < fields_.size(); ++i) {
    std::byte* target = bytes.data() + schema_->fields[i].offset;
    if (IsInline(schema_->fields[i].type)) {
      std::memcpy(target, fields_[i].words.data(), fields_[i].words.size() * 4);
    } else {
      const void* pointer = StoreField(i);
      std::memcpy(target, &pointer, sizeof(pointer));
    }
  }
  DML_OPERATOR_DESC desc = {static_cast<DML_OPERATOR_TYPE>(schema_->type), Store(bytes.data(), bytes.size())};
  return static_cast<const DML_OPERATOR_DESC*>(Store(&desc, sizeof(desc)));
}

}  // namespace anydml::testing
