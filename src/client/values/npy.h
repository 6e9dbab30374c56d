// NumPy's .npy files, versions 1.0 to 3.0.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/values/input_file.h"
#include "schema/tensor_desc.h"

namespace anydml::client {

struct NpyArray {
  // Sizes as in the file, {1} for a 0-d array. Strides express Fortran order; the data stay as they are.
  // Booleans are UINT8.
  TensorDesc tensor;
  std::vector<std::byte> data;  // tensor.total_bytes long
  bool scalar = false;          // it was 0-d
};

// `name` is the file's name in error messages. Consumes `bytes`. DirectML's tensors must have elements;
// ONNX's may have none.
enum class Emptiness { kRefused, kAllowed };
Status ParseNpy(std::string_view name, std::vector<std::byte> bytes, NpyArray* out,
                Emptiness emptiness = Emptiness::kRefused);
Status ReadNpy(const InputPath& path, NpyArray* out, Emptiness emptiness = Emptiness::kRefused);

// As elements of `type`: the file's own type, or a 4-bit type, whose elements take a byte each in files:
// uint8 for UINT4, int8 for INT4.
Status ReadNpyAs(const std::string& path, DataType type, NpyArray* out,
                 Emptiness emptiness = Emptiness::kRefused);
// Packs elements of a byte each from the file `name`; an error names the first that does not fit.
Status PackFourBits(std::string_view name, DataType type, std::vector<std::byte>* elements);

// The magic, the version and the dictionary of a C-order file with these sizes. 4-bit elements are written as
// a byte each.
std::string NpyHeader(const TensorDesc& tensor);
// The same for any sizes: none, 0, or more than tensors have.
std::string NpyHeader(DataType type, const std::vector<int64_t>& sizes);

}  // namespace anydml::client
