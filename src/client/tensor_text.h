// Tensors as text, in the documentation's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "schema/tensor_desc.h"

namespace anydml::client {

// Tensors with more elements are shortened: up to three elements at each end of every dimension, "..." in
// between.
inline constexpr uint64_t kDefaultPrintLimit = 1000;

// One element of many; floats with the fewest digits that read back as the same value.
std::string ElementToString(DataType type, const std::byte* data, uint64_t index);

// Nested brackets with aligned columns. `data` has at least the tensor's span.
std::string TensorToString(const TensorDesc& tensor, std::span<const std::byte> data,
                           uint64_t print_limit = kDefaultPrintLimit);

// "Name: (Sizes:{1,2}, DataType:FLOAT32)" and the elements on the lines below.
std::string DescribeTensor(const std::string& name, const TensorDesc& tensor, std::span<const std::byte> data,
                           uint64_t print_limit = kDefaultPrintLimit);

}  // namespace anydml::client
