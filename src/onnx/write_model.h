// Models as files: for models that programs make (tests, benchmarks).
#pragma once

#include <string>

#include "onnx/model.h"

namespace anydml::onnx {

// What ReadModel reads as the same model. Tensors are written as raw data, in the file.
std::string WriteModel(const Model& model);

// One TensorProto.
std::string WriteTensor(const std::string& name, const Tensor& tensor);

}  // namespace anydml::onnx
