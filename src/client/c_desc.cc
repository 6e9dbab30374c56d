#include "client/c_desc.h"

#include <cstring>

namespace anydml::client {
namespace {

static_assert(sizeof(ScaleBias) == sizeof(DML_SCALE_BIAS) && sizeof(Size2D) == sizeof(DML_SIZE_2D) &&
              sizeof(Scalar) == sizeof(DML_SCALAR_UNION));

bool IsPacked(const TensorDesc& tensor) {
  TensorDesc packed = tensor;
  SetPackedStrides(&packed);
  return SameLayout(tensor, packed);
}

}  // namespace

CDesc::CDesc(const OperatorDesc& desc) : bytes_(desc.schema->desc_size) {
  for (size_t i = 0; i < desc.fields.size(); ++i) Write(desc.schema->fields[i], desc.fields[i]);
  operator_.Type = static_cast<DML_OPERATOR_TYPE>(desc.schema->type);
  operator_.Desc = bytes_.data();
}

template <typename T>
void CDesc::Store(const FieldSchema& field, const T& value) {
  std::memcpy(bytes_.data() + field.offset, &value, sizeof(value));
}

const DML_TENSOR_DESC* CDesc::Tensors(const TensorDesc* tensors, size_t count) {
  std::vector<DML_TENSOR_DESC>& array = tensors_.emplace_back();
  for (size_t i = 0; i < count; ++i) {
    const TensorDesc& tensor = tensors[i];
    DML_BUFFER_TENSOR_DESC buffer{};
    buffer.DataType = static_cast<DML_TENSOR_DATA_TYPE>(tensor.type);
    buffer.Flags = tensor.owned_by_dml ? DML_TENSOR_FLAG_OWNED_BY_DML : DML_TENSOR_FLAG_NONE;
    buffer.DimensionCount = tensor.rank;
    buffer.Sizes = tensor.sizes.data();
    buffer.Strides = IsPacked(tensor) ? nullptr : tensor.strides.data();
    buffer.TotalTensorSizeInBytes = tensor.total_bytes;
    buffer.GuaranteedBaseOffsetAlignment = tensor.alignment;
    array.push_back({DML_TENSOR_TYPE_BUFFER, &buffers_.emplace_back(buffer)});
  }
  return array.data();
}

const DML_OPERATOR_DESC* CDesc::Operators(const OperatorDesc* operators, size_t count) {
  std::vector<DML_OPERATOR_DESC>& array = operators_.emplace_back();
  for (size_t i = 0; i < count; ++i) {
    array.push_back(nested_.emplace_back(std::make_unique<CDesc>(operators[i]))->get());
  }
  return array.data();
}

void CDesc::Write(const FieldSchema& field, const FieldValue& value) {
  // Arrays, operators and ScaleBias are pointers in the struct; everything else is inside it.
  if (const auto* tensor = std::get_if<TensorDesc>(&value)) {
    Store(field, Tensors(tensor, 1));
  } else if (const auto* tensors = std::get_if<std::vector<TensorDesc>>(&value)) {
    Store(field, Tensors(tensors->data(), tensors->size()));
  } else if (const auto* unsigned_value = std::get_if<uint32_t>(&value)) {
    Store(field, *unsigned_value);
  } else if (const auto* signed_value = std::get_if<int32_t>(&value)) {
    Store(field, *signed_value);
  } else if (const auto* float_value = std::get_if<float>(&value)) {
    Store(field, *float_value);
  } else if (const auto* unsigned_array = std::get_if<std::vector<uint32_t>>(&value)) {
    Store(field, unsigned_array->data());
  } else if (const auto* signed_array = std::get_if<std::vector<int32_t>>(&value)) {
    Store(field, signed_array->data());
  } else if (const auto* float_array = std::get_if<std::vector<float>>(&value)) {
    Store(field, float_array->data());
  } else if (const auto* scale_bias = std::get_if<ScaleBias>(&value)) {
    Store(field, scale_bias);
  } else if (const auto* size = std::get_if<Size2D>(&value)) {
    Store(field, *size);
  } else if (const auto* scalar = std::get_if<Scalar>(&value)) {
    Store(field, *scalar);
  } else if (const auto* op = std::get_if<std::shared_ptr<const OperatorDesc>>(&value)) {
    Store(field, Operators(op->get(), 1));
  } else if (const auto* operators = std::get_if<std::vector<OperatorDesc>>(&value)) {
    Store(field, Operators(operators->data(), operators->size()));
  }
}

}  // namespace anydml::client
