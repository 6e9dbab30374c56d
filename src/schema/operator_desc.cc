#include "schema/operator_desc.h"

namespace anydml {
namespace {

// Throws for a field that the operator does not have: index -1 is out of every range.
const FieldValue& Field(const OperatorDesc& desc, std::string_view name) {
  return desc.fields.at(static_cast<size_t>(FindField(*desc.schema, name)));
}

std::vector<const TensorDesc*> Tensors(const OperatorDesc& desc, FieldKind kind) {
  std::vector<const TensorDesc*> tensors;
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = desc.schema->fields[i];
    if (field.kind != kind) continue;
    if (field.type == FieldType::kTensor) {
      tensors.push_back(std::get_if<TensorDesc>(&desc.fields[i]));
    } else if (const auto* array = std::get_if<std::vector<TensorDesc>>(&desc.fields[i])) {
      for (const TensorDesc& tensor : *array) tensors.push_back(&tensor);
    }
  }
  return tensors;
}

}  // namespace

const TensorDesc* OperatorDesc::tensor(std::string_view name) const {
  const FieldValue& value = Field(*this, name);
  return std::holds_alternative<std::monostate>(value) ? nullptr : &std::get<TensorDesc>(value);
}

uint32_t OperatorDesc::uint(std::string_view name) const { return std::get<uint32_t>(Field(*this, name)); }

const ScaleBias* OperatorDesc::scale_bias(std::string_view name) const {
  const FieldValue& value = Field(*this, name);
  return std::holds_alternative<std::monostate>(value) ? nullptr : &std::get<ScaleBias>(value);
}

std::vector<const TensorDesc*> OperatorDesc::inputs() const { return Tensors(*this, FieldKind::kInput); }
std::vector<const TensorDesc*> OperatorDesc::outputs() const { return Tensors(*this, FieldKind::kOutput); }

}  // namespace anydml
