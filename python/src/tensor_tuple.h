// Tensors as Python passes them.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "schema/tensor_desc.h"

namespace anydml::python {

// (type, sizes, strides), all numbers.
using PyTensor = std::tuple<uint32_t, std::vector<uint64_t>, std::vector<uint64_t>>;

// Checks what the C++ types cannot represent.
TensorDesc ToTensor(const PyTensor& given);
PyTensor FromTensor(const TensorDesc& tensor);

}  // namespace anydml::python
