// Reads the caller's C structs into an OperatorDesc. Follows only pointers that the schema names, and never
// null ones.
#include <cstddef>
#include <cstring>

#include <DirectML.h>

#include "schema/validate.h"
#include "schema/validate_internal.h"

namespace anydml {
namespace {

using internal::FieldName;
using internal::Judge;

// Attribute arrays have one element per dimension, axis or channel; no activation list is longer than the six
// of LSTM.
constexpr uint32_t kMaxArrayLength = 8;
// Our own limit: far above what any model joins or splits, far below what would take long to read.
constexpr uint32_t kMaxTensorArrayLength = 1u << 16;

static_assert(static_cast<uint32_t>(DataType::kFloat32) == DML_TENSOR_DATA_TYPE_FLOAT32);
static_assert(static_cast<uint32_t>(DataType::kFloat16) == DML_TENSOR_DATA_TYPE_FLOAT16);
static_assert(static_cast<uint32_t>(DataType::kUInt32) == DML_TENSOR_DATA_TYPE_UINT32);
static_assert(static_cast<uint32_t>(DataType::kUInt16) == DML_TENSOR_DATA_TYPE_UINT16);
static_assert(static_cast<uint32_t>(DataType::kUInt8) == DML_TENSOR_DATA_TYPE_UINT8);
static_assert(static_cast<uint32_t>(DataType::kInt32) == DML_TENSOR_DATA_TYPE_INT32);
static_assert(static_cast<uint32_t>(DataType::kInt16) == DML_TENSOR_DATA_TYPE_INT16);
static_assert(static_cast<uint32_t>(DataType::kInt8) == DML_TENSOR_DATA_TYPE_INT8);
static_assert(static_cast<uint32_t>(DataType::kFloat64) == DML_TENSOR_DATA_TYPE_FLOAT64);
static_assert(static_cast<uint32_t>(DataType::kUInt64) == DML_TENSOR_DATA_TYPE_UINT64);
static_assert(static_cast<uint32_t>(DataType::kInt64) == DML_TENSOR_DATA_TYPE_INT64);
static_assert(static_cast<uint32_t>(DataType::kUInt4) == DML_TENSOR_DATA_TYPE_UINT4);
static_assert(static_cast<uint32_t>(DataType::kInt4) == DML_TENSOR_DATA_TYPE_INT4);

// The C structs with integers instead of enums: a C++ enum must not hold a value outside its range.
struct TypedPointer {  // DML_OPERATOR_DESC, DML_TENSOR_DESC
  uint32_t type;
  const void* desc;
};
static_assert(sizeof(TypedPointer) == sizeof(DML_OPERATOR_DESC) &&
              sizeof(TypedPointer) == sizeof(DML_TENSOR_DESC));
static_assert(offsetof(TypedPointer, desc) == offsetof(DML_OPERATOR_DESC, Desc));
static_assert(offsetof(TypedPointer, desc) == offsetof(DML_TENSOR_DESC, Desc));

struct BufferTensor {  // DML_BUFFER_TENSOR_DESC
  uint32_t data_type;
  uint32_t flags;
  uint32_t dimension_count;
  const uint32_t* sizes;
  const uint32_t* strides;
  uint64_t total_bytes;
  uint32_t alignment;
};
static_assert(sizeof(BufferTensor) == sizeof(DML_BUFFER_TENSOR_DESC));
static_assert(offsetof(BufferTensor, flags) == offsetof(DML_BUFFER_TENSOR_DESC, Flags));
static_assert(offsetof(BufferTensor, dimension_count) == offsetof(DML_BUFFER_TENSOR_DESC, DimensionCount));
static_assert(offsetof(BufferTensor, sizes) == offsetof(DML_BUFFER_TENSOR_DESC, Sizes));
static_assert(offsetof(BufferTensor, strides) == offsetof(DML_BUFFER_TENSOR_DESC, Strides));
static_assert(offsetof(BufferTensor, total_bytes) ==
              offsetof(DML_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes));
static_assert(offsetof(BufferTensor, alignment) ==
              offsetof(DML_BUFFER_TENSOR_DESC, GuaranteedBaseOffsetAlignment));

static_assert(sizeof(ScaleBias) == sizeof(DML_SCALE_BIAS) && sizeof(Size2D) == sizeof(DML_SIZE_2D) &&
              sizeof(Scalar) == sizeof(DML_SCALAR_UNION));

template <typename T>
T Load(const void* base, size_t index_in_bytes) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index_in_bytes, sizeof(T));
  return value;
}

Status ReadTensor(const char* op, const FieldName& name, const TypedPointer& source, TensorDesc* out) {
  if (source.type != DML_TENSOR_TYPE_BUFFER) {
    return InvalidArgument(op, ": ", name, ".Type is ", source.type, ", allowed: DML_TENSOR_TYPE_BUFFER (1)");
  }
  if (!source.desc) return InvalidArgument(op, ": ", name, ".Desc is null; it is required");
  const auto buffer = Load<BufferTensor>(source.desc, 0);
  if ((buffer.flags & ~uint32_t{DML_TENSOR_FLAG_OWNED_BY_DML}) != 0) {
    return InvalidArgument(op, ": ", name, ".Flags is ", buffer.flags,
                           ", allowed: DML_TENSOR_FLAG_NONE (0), DML_TENSOR_FLAG_OWNED_BY_DML (1)");
  }
  if (buffer.dimension_count > kMaxDimensions) {
    return InvalidArgument(op, ": ", name, ".DimensionCount is ", buffer.dimension_count,
                           "; it must be at most ", kMaxDimensions);
  }
  if (!buffer.sizes && buffer.dimension_count > 0) {
    return InvalidArgument(op, ": ", name, ".Sizes is null; it is required");
  }
  out->type = static_cast<DataType>(buffer.data_type);
  out->owned_by_dml = buffer.flags != 0;
  out->rank = buffer.dimension_count;
  out->total_bytes = buffer.total_bytes;
  out->alignment = buffer.alignment;
  const size_t bytes = out->rank * sizeof(uint32_t);
  if (bytes > 0) std::memcpy(out->sizes.data(), buffer.sizes, bytes);
  if (bytes > 0 && buffer.strides) {
    std::memcpy(out->strides.data(), buffer.strides, bytes);
  } else {
    SetPackedStrides(out);
  }
  return {};
}

class Reader {
 public:
  // `fused`: the fields of NullInFusion must be null.
  Reader(const OperatorSchema& schema, FeatureLevel level, const void* base, bool fused)
      : schema_(schema), level_(level), base_(base), fused_(fused) {}

  Status Read(OperatorDesc* out) const {
    out->schema = &schema_;
    out->fields.assign(schema_.fields.size(), {});
    for (size_t i = 0; i < schema_.fields.size(); ++i) {
      const FieldSchema& field = schema_.fields[i];
      if (fused_ && internal::NullInFusion(field) && Pointer(field)) {
        return InvalidArgument(schema_.name, ": ", field.name, " must be null in a fused activation");
      }
      ANYDML_RETURN_IF_ERROR(ReadField(field, &out->fields[i]));
    }
    return {};
  }

 private:
  Status ReadField(const FieldSchema& field, FieldValue* out) const {
    switch (field.type) {
      case FieldType::kTensor:
        return ReadTensorField(field, out);
      case FieldType::kTensorArray:
        return ReadTensorArray(field, out);
      case FieldType::kUInt:
      case FieldType::kEnum:
        *out = Load<uint32_t>(base_, field.offset);
        return {};
      case FieldType::kBool:
        *out = uint32_t{Load<uint32_t>(base_, field.offset) != 0};
        return {};
      case FieldType::kInt:
        *out = Load<int32_t>(base_, field.offset);
        return {};
      case FieldType::kFloat:
        *out = Load<float>(base_, field.offset);
        return {};
      case FieldType::kUIntArray:
        return ReadArray<uint32_t>(field, out);
      case FieldType::kIntArray:
        return ReadArray<int32_t>(field, out);
      case FieldType::kFloatArray:
        return ReadArray<float>(field, out);
      case FieldType::kScaleBias:
        if (const auto* pointer = Pointer(field)) *out = Load<ScaleBias>(pointer, 0);
        return {};
      case FieldType::kSize2D:
        *out = Load<Size2D>(base_, field.offset);
        return {};
      case FieldType::kScalarUnion:
        *out = Load<Scalar>(base_, field.offset);
        return {};
      case FieldType::kOperatorDesc:
        return ReadFusedField(field, out);
      case FieldType::kOperatorDescArray:
        return ReadFusedArray(field, out);
    }
    return {};
  }

  const void* Pointer(const FieldSchema& field) const { return Load<const void*>(base_, field.offset); }

  // The array's pointer and length; the pointer is null only if the length is 0.
  Status ArrayBounds(const FieldSchema& field, uint32_t limit, const void** pointer, uint32_t* length) const {
    const FieldSchema& count = schema_.fields[static_cast<size_t>(field.count_field)];
    *pointer = Pointer(field);
    *length = Load<uint32_t>(base_, count.offset);
    if (*length > limit) {
      return InvalidArgument(schema_.name, ": ", count.name, " is ", *length, "; it must be at most ", limit);
    }
    if (*length > 0 && !*pointer) {
      return InvalidArgument(schema_.name, ": ", field.name, " is null but ", count.name, " is ", *length);
    }
    return {};
  }

  template <typename T>
  Status ReadArray(const FieldSchema& field, FieldValue* out) const {
    const void* pointer;
    uint32_t length;
    ANYDML_RETURN_IF_ERROR(ArrayBounds(field, kMaxArrayLength, &pointer, &length));
    std::vector<T> values(length);
    if (length > 0) std::memcpy(values.data(), pointer, length * sizeof(T));
    *out = std::move(values);
    return {};
  }

  Status ReadTensorField(const FieldSchema& field, FieldValue* out) const {
    const void* pointer = Pointer(field);
    if (!pointer) return {};  // validation checks whether it may be null
    return ReadTensor(schema_.name, {field.name}, Load<TypedPointer>(pointer, 0),
                      &out->emplace<TensorDesc>());
  }

  Status ReadTensorArray(const FieldSchema& field, FieldValue* out) const {
    const void* pointer;
    uint32_t length;
    ANYDML_RETURN_IF_ERROR(ArrayBounds(field, kMaxTensorArrayLength, &pointer, &length));
    auto& tensors = out->emplace<std::vector<TensorDesc>>(length);
    for (uint32_t i = 0; i < length; ++i) {
      const auto source = Load<TypedPointer>(pointer, i * sizeof(TypedPointer));
      const FieldName name{field.name, static_cast<int>(i)};
      ANYDML_RETURN_IF_ERROR(ReadTensor(schema_.name, name, source, &tensors[i]));
    }
    return {};
  }

  // Reads on only if the operator may be fused; otherwise a description that contains itself would be
  // followed forever.
  Status ReadFused(const FieldName& name, const TypedPointer& source, OperatorDesc* out) const {
    const OperatorSchema* activation = FindOperator(source.type);
    if (!activation) {
      return InvalidArgument(schema_.name, ": ", name, ".Type is ", source.type, ", which is no operator");
    }
    ANYDML_RETURN_IF_ERROR(internal::CheckFusion(Judge{&schema_, level_}, name, *activation));
    if (!source.desc) return InvalidArgument(schema_.name, ": ", name, ".Desc is null; it is required");
    const Status status = Reader(*activation, level_, source.desc, true).Read(out);
    if (status.ok()) return {};
    return Status(status.code(), StrCat(schema_.name, ": ", name, ": ", status.message()));
  }

  Status ReadFusedField(const FieldSchema& field, FieldValue* out) const {
    const void* pointer = Pointer(field);
    if (!pointer) return {};
    auto fused = std::make_shared<OperatorDesc>();
    ANYDML_RETURN_IF_ERROR(ReadFused({field.name}, Load<TypedPointer>(pointer, 0), fused.get()));
    *out = std::shared_ptr<const OperatorDesc>(std::move(fused));
    return {};
  }

  Status ReadFusedArray(const FieldSchema& field, FieldValue* out) const {
    const void* pointer;
    uint32_t length;
    ANYDML_RETURN_IF_ERROR(ArrayBounds(field, kMaxArrayLength, &pointer, &length));
    auto& array = out->emplace<std::vector<OperatorDesc>>(length);
    for (uint32_t i = 0; i < length; ++i) {
      const auto source = Load<TypedPointer>(pointer, i * sizeof(TypedPointer));
      ANYDML_RETURN_IF_ERROR(ReadFused({field.name, static_cast<int>(i)}, source, &array[i]));
    }
    return {};
  }

  const OperatorSchema& schema_;
  FeatureLevel level_;
  const void* base_;
  bool fused_;
};

}  // namespace

Status ReadOperatorDesc(const DML_OPERATOR_DESC* desc, FeatureLevel level, OperatorDesc* out) {
  if (!desc) return InvalidArgument("DML_OPERATOR_DESC: the pointer is null; a description is required");
  const auto source = Load<TypedPointer>(desc, 0);
  const OperatorSchema* schema = FindOperator(source.type);
  if (!schema) {
    return InvalidArgument("DML_OPERATOR_DESC: Type is ", source.type,
                           ", which is no operator; known are 1 to ", AllOperators().size());
  }
  ANYDML_RETURN_IF_ERROR(internal::CheckAvailability(*schema, level));
  if (!source.desc) return InvalidArgument(schema->name, ": Desc is null; it is required");
  return Reader(*schema, level, source.desc, false).Read(out);
}

}  // namespace anydml
