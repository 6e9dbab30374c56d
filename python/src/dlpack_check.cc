// Checks tensors of other libraries before they are used.
#include <limits>

#include "dlpack.h"

namespace anydml::python::dlpack {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// How far the elements extend below and above the first one, in bytes. Add returns false on overflow.
struct Reach {
  int64_t below = 0;  // 0 or negative
  int64_t above = 0;

  bool Add(int64_t size, int64_t stride, int64_t element_bytes) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(stride, element_bytes, &bytes)) return false;
    if (__builtin_mul_overflow(bytes, size - 1, &bytes)) return false;
    int64_t& side = bytes < 0 ? below : above;
    return !__builtin_add_overflow(side, bytes, &side);
  }
};

std::string SizesMistake(const Tensor& tensor, int64_t element_bytes, bool* empty) {
  int64_t bytes = element_bytes;  // empty dimensions count as one element, as in NumPy
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t size = tensor.shape[i];
    if (size < 0) return StrCat("has size ", size, " in dimension ", i, "; sizes must be at least 0");
    *empty |= size == 0;
    if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes)) {
      return StrCat("has size ", size, " in dimension ", i, ", with which it has more bytes than 2^63 - 1");
    }
  }
  return {};
}

std::string AddressMistake(const Tensor& tensor, int64_t element_bytes) {
  if (tensor.data == nullptr) return "has elements but no address";
  uint64_t first = 0;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &first) ||
      first > uint64_t{kMost}) {
    return StrCat("has byte_offset ", tensor.byte_offset, ", which leads beyond the address space");
  }
  Reach reach;
  const Extents extents = ExtentsOf(tensor);
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (!reach.Add(extents.sizes[i], extents.strides[i], element_bytes)) {
      return StrCat("has stride ", extents.strides[i], " in dimension ", i,
                    ", with which it has more bytes than 2^63 - 1");
    }
  }
  const auto begin = static_cast<int64_t>(first);
  if (begin + reach.below < 0 || reach.above > kMost - begin - element_bytes) {
    return "has strides that lead beyond the address space";
  }
  return {};
}

}  // namespace

std::string Mistake(const Tensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMostDimensions) {
    return StrCat("has ", tensor.ndim, " dimensions; there must be between 0 and ", kMostDimensions);
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return StrCat("has ", tensor.ndim, " dimensions but no sizes");
  }
  const int64_t element_bytes = tensor.dtype.bits / 8;  // of types that operators support
  bool empty = false;
  std::string mistake = SizesMistake(tensor, element_bytes, &empty);
  if (mistake.empty() && !empty) mistake = AddressMistake(tensor, element_bytes);
  return mistake;
}

Extents ExtentsOf(const Tensor& tensor) {
  Extents extents{};
  bool empty = false;
  int64_t packed = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) empty |= tensor.shape[i] == 0;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    const int64_t size = tensor.shape[i];
    extents.sizes[i] = size;
    extents.strides[i] = tensor.strides != nullptr && size > 1 && !empty ? tensor.strides[i] : packed;
    if (size > 1) packed *= size;
  }
  return extents;
}

}  // namespace anydml::python::dlpack
