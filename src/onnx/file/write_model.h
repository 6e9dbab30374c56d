// Writes models that programs make (tests, benchmarks).
#pragma once

#include <cstdint>
#include <string>

#include "onnx/file/model.h"

namespace anydml::onnx {

// What ReadModel reads as the same model. Tensors are written as raw data, in the file. Initializers of more
// than `most_bytes` are written without their elements, as external data that the reader has to have.
std::string WriteModel(const Model& model, size_t most_bytes = SIZE_MAX);

// One TensorProto.
std::string WriteTensor(const std::string& name, const Tensor& tensor);

}  // namespace anydml::onnx
