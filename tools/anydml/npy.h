// NumPy's .npy files, versions 1.0 to 3.0.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "schema/tensor_desc.h"

namespace anydml::tools {

struct NpyArray {
  // Sizes as in the file, {1} for a 0-d array. Fortran order is expressed by the
  // strides; the data stays as it is. Booleans are UINT8.
  TensorDesc tensor;
  std::vector<std::byte> data;  // tensor.total_bytes long
};

// `name` stands for the file in the sentences that explain a failure. Consumes `bytes`.
Status ParseNpy(std::string_view name, std::vector<std::byte> bytes, NpyArray* out);
Status ReadNpy(const std::string& path, NpyArray* out);

// The magic, the version and the dictionary of a C-order file with these sizes.
std::string NpyHeader(const TensorDesc& tensor);

}  // namespace anydml::tools
