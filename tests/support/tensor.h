// Tensor descriptions for tests: owns the arrays that the C structs point to.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <DirectML.h>

namespace anydml::test {

template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DML_TENSOR_DATA_TYPE value = DML_TENSOR_DATA_TYPE_FLOAT32;
};
template <>
struct DataTypeOf<uint32_t> {
  static constexpr DML_TENSOR_DATA_TYPE value = DML_TENSOR_DATA_TYPE_UINT32;
};
template <>
struct DataTypeOf<int32_t> {
  static constexpr DML_TENSOR_DATA_TYPE value = DML_TENSOR_DATA_TYPE_INT32;
};
template <>
struct DataTypeOf<int64_t> {
  static constexpr DML_TENSOR_DATA_TYPE value = DML_TENSOR_DATA_TYPE_INT64;
};
template <>
struct DataTypeOf<uint8_t> {
  static constexpr DML_TENSOR_DATA_TYPE value = DML_TENSOR_DATA_TYPE_UINT8;
};

inline uint32_t ElementBytes(DML_TENSOR_DATA_TYPE type) {
  switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT64:
    case DML_TENSOR_DATA_TYPE_UINT64:
    case DML_TENSOR_DATA_TYPE_INT64:
      return 8;
    case DML_TENSOR_DATA_TYPE_FLOAT16:
    case DML_TENSOR_DATA_TYPE_UINT16:
    case DML_TENSOR_DATA_TYPE_INT16:
      return 2;
    case DML_TENSOR_DATA_TYPE_UINT8:
    case DML_TENSOR_DATA_TYPE_INT8:
      return 1;
    default:
      return 4;
  }
}

// Not copyable: desc() points into the object.
class Tensor {
 public:
  Tensor(DML_TENSOR_DATA_TYPE type, std::vector<uint32_t> sizes,
         DML_TENSOR_FLAGS flags = DML_TENSOR_FLAG_NONE,
         std::optional<std::vector<uint32_t>> strides = std::nullopt)
      : sizes_(std::move(sizes)), strides_(std::move(strides)) {
    buffer_.DataType = type;
    buffer_.Flags = flags;
    buffer_.DimensionCount = static_cast<UINT>(sizes_.size());
    buffer_.Sizes = sizes_.data();
    buffer_.Strides = strides_ ? strides_->data() : nullptr;
    uint64_t elements = 1;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (strides_) {
        elements += uint64_t{sizes_[i] - 1} * (*strides_)[i];
      } else {
        elements *= sizes_[i];
      }
    }
    buffer_.TotalTensorSizeInBytes = (elements * ElementBytes(type) + 3) / 4 * 4;
    desc_ = {DML_TENSOR_TYPE_BUFFER, &buffer_};
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const DML_TENSOR_DESC* desc() const { return &desc_; }
  DML_BUFFER_TENSOR_DESC& buffer() { return buffer_; }
  uint64_t bytes() const { return buffer_.TotalTensorSizeInBytes; }

 private:
  std::vector<uint32_t> sizes_;
  std::optional<std::vector<uint32_t>> strides_;
  DML_BUFFER_TENSOR_DESC buffer_{};
  DML_TENSOR_DESC desc_{};
};

}  // namespace anydml::test
