#include "schema/tensor_desc.h"

#include <limits>

namespace anydml {
namespace {

constexpr uint64_t kSaturated = std::numeric_limits<uint64_t>::max();

uint64_t SaturatingMultiply(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kSaturated : product;
}

uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? kSaturated : sum;
}

}  // namespace

uint64_t ElementCount(const TensorDesc& tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] == 0) return 0;  // even if the product of the other sizes overflows
  }
  for (uint32_t i = 0; i < tensor.rank; ++i) count = SaturatingMultiply(count, tensor.sizes[i]);
  return count;
}

uint64_t ElementSpan(const TensorDesc& tensor) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] == 0) return 0;
    last = SaturatingAdd(last, uint64_t{tensor.sizes[i] - 1} * tensor.strides[i]);
  }
  return SaturatingAdd(last, 1);
}

uint64_t MinimumTotalBytes(const TensorDesc& tensor) {
  const uint64_t span = ElementSpan(tensor);
  if (span == kSaturated) return kSaturated;
  const uint32_t bits = BitSize(tensor.type);
  const uint64_t bytes = bits < 8 ? (span / 2 + span % 2) * (bits / 4) : SaturatingMultiply(span, bits / 8);
  return bytes > kSaturated - 3 ? kSaturated : (bytes + 3) & ~uint64_t{3};
}

bool SameLayout(const TensorDesc& a, const TensorDesc& b) {
  if (a.type != b.type || a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] != b.sizes[i]) return false;
    if (a.sizes[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

void SetPackedStrides(TensorDesc* tensor) {
  // Saturates if the inner dimensions alone have 2^32 elements, which no valid tensor has.
  constexpr uint64_t kMaxStride = std::numeric_limits<uint32_t>::max();
  uint64_t stride = 1;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    tensor->strides[i] = static_cast<uint32_t>(stride);
    stride = stride * tensor->sizes[i];
    if (stride > kMaxStride) stride = kMaxStride;
  }
}

TensorDesc PackedTensor(DataType type, const uint32_t* sizes, uint32_t rank) {
  TensorDesc tensor;
  tensor.type = type;
  tensor.rank = rank;
  for (uint32_t i = 0; i < rank; ++i) tensor.sizes[i] = sizes[i];
  SetPackedStrides(&tensor);
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}

std::string SizesToString(const TensorDesc& tensor) {
  std::string text = "{";
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(tensor.sizes[i]);
  }
  return text + '}';
}

}  // namespace anydml
