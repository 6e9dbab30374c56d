// NumPy's .npy files, versions 1.0 to 3.0.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anydml/cli/input_file.h"
#include "base/status.h"
#include "schema/tensor_desc.h"

namespace anydml::tools {

struct NpyArray {
  // Sizes as in the file, {1} for a 0-d array. Fortran order is expressed by the
  // strides; the data stays as it is. Booleans are UINT8.
  TensorDesc tensor;
  std::vector<std::byte> data;  // tensor.total_bytes long
  bool scalar = false;          // it was 0-d
};

// `name` stands for the file in the sentences that explain a failure. Consumes `bytes`.
// Tensors of DirectML have elements; those of ONNX may have none.
enum class Emptiness { kRefused, kAllowed };
Status ParseNpy(std::string_view name, std::vector<std::byte> bytes, NpyArray* out,
                Emptiness emptiness = Emptiness::kRefused);
Status ReadNpy(const InputPath& path, NpyArray* out, Emptiness emptiness = Emptiness::kRefused);

// As elements of `type`: of the file's own, or of four bits, which files have a byte each for: uint8 for
// UINT4, int8 for INT4.
Status ReadNpyAs(const std::string& path, DataType type, NpyArray* out,
                 Emptiness emptiness = Emptiness::kRefused);
// Packs elements of a byte each, which come from the file `name`, or names the first that does not fit.
Status PackFourBits(std::string_view name, DataType type, std::vector<std::byte>* elements);

// The magic, the version and the dictionary of a C-order file with these sizes. Elements of four bits are
// written in a byte each.
std::string NpyHeader(const TensorDesc& tensor);
// The same for any sizes: none, 0, or more than tensors have.
std::string NpyHeader(DataType type, const std::vector<int64_t>& sizes);

}  // namespace anydml::tools
