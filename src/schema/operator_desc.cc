#include "schema/operator_desc.h"

#include "base/status.h"

namespace anydml {
namespace {

// Throws for a field that the operator does not have: index -1 is out of range.
const FieldValue& Field(const OperatorDesc& desc, std::string_view name) {
  return desc.fields.at(static_cast<size_t>(FindField(*desc.schema, name)));
}

// body(field, tensor, index in its array), in binding order.
template <typename Body>
void ForTensors(const OperatorDesc& desc, FieldKind kind, const Body& body) {
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = desc.schema->fields[i];
    if (field.kind != kind) continue;
    if (field.type == FieldType::kTensor) {
      body(field, std::get_if<TensorDesc>(&desc.fields[i]), 0);
    } else if (const auto* array = std::get_if<std::vector<TensorDesc>>(&desc.fields[i])) {
      for (size_t j = 0; j < array->size(); ++j) body(field, &(*array)[j], j);
    }
  }
}

std::vector<const TensorDesc*> Tensors(const OperatorDesc& desc, FieldKind kind) {
  std::vector<const TensorDesc*> tensors;
  ForTensors(desc, kind,
             [&](const FieldSchema&, const TensorDesc* tensor, size_t) { tensors.push_back(tensor); });
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

std::vector<NamedTensor> NamedTensors(const OperatorDesc& desc, FieldKind kind) {
  std::vector<NamedTensor> tensors;
  ForTensors(desc, kind, [&](const FieldSchema& field, const TensorDesc* tensor, size_t number) {
    const bool array = field.type == FieldType::kTensorArray;
    tensors.push_back({array ? StrCat(field.name, "[", number, "]") : field.name, tensor});
  });
  return tensors;
}

}  // namespace anydml
