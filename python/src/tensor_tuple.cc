#include "tensor_tuple.h"

#include <pybind11/pybind11.h>

#include "base/status.h"

namespace py = pybind11;

namespace anydml::python {

TensorDesc ToTensor(const PyTensor& given) {
  const auto& [type, sizes, strides] = given;
  if (sizes.size() > kMaxDimensions) {
    throw py::value_error(StrCat("a tensor has at most ", kMaxDimensions, " dimensions, not ", sizes.size()));
  }
  TensorDesc tensor;
  tensor.type = static_cast<DataType>(type);
  tensor.rank = static_cast<uint32_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > UINT32_MAX || strides.at(i) > UINT32_MAX) {
      throw py::value_error(StrCat("dimension ", i, " has size ", sizes[i], " and stride ", strides[i],
                                   "; both must be less than 2^32"));
    }
    tensor.sizes[i] = static_cast<uint32_t>(sizes[i]);
    tensor.strides[i] = static_cast<uint32_t>(strides[i]);
  }
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}

PyTensor FromTensor(const TensorDesc& tensor) {
  const auto list = [&tensor](const Dimensions& from) {
    return std::vector<uint64_t>(from.begin(), from.begin() + tensor.rank);
  };
  return {static_cast<uint32_t>(tensor.type), list(tensor.sizes), list(tensor.strides)};
}

}  // namespace anydml::python
