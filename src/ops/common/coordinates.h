// The simple walk through a tensor, for the reference kernels: every coordinate in row-major order, and the
// element at a coordinate. Written to be obvious, not fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "schema/tensor_desc.h"

namespace anydml {

template <typename Body>
void ForEachCoordinate(const Dimensions& sizes, uint32_t rank, Body&& body) {
  Dimensions at{};
  while (true) {
    body(static_cast<const Dimensions&>(at));
    uint32_t d = rank;
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

inline uint64_t ElementOffset(const TensorDesc& tensor, const Dimensions& at) {
  uint64_t offset = 0;
  for (uint32_t d = 0; d < tensor.rank; ++d) offset += uint64_t{at[d]} * tensor.strides[d];
  return offset;
}

template <typename T>
T Load(const std::byte* data, uint64_t element) {
  T value;
  std::memcpy(&value, data + element * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* data, uint64_t element, T value) {
  std::memcpy(data + element * sizeof(T), &value, sizeof(T));
}

}  // namespace anydml
