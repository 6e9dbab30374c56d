// ONNX models from bytes: nodes of any operators, usually on existing values.
#pragma once

#include "fuzz.h"
#include "onnx/file/model.h"

namespace anydml::fuzz {

onnx::Model AnyModel(ByteSource& source);

// Values for the model's inputs.
std::map<std::string, onnx::Tensor> AnyInputs(ByteSource& source, const onnx::Model& model);

}  // namespace anydml::fuzz
