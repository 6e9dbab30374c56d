#pragma once

#include <string>

#include "onnx/file/model.h"

namespace anydml::onnx {

// A TensorProto in `file`. `name` is its own, for whoever has no other.
Status ParseTensor(Bytes message, const Blob& file, ExternalFiles* external, std::string* name, Tensor* out);

}  // namespace anydml::onnx
