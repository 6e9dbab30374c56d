// Convolutions that are normalised, scaled or shifted per channel, as in training.
#pragma once

#include "onnx/file/model.h"

namespace anydml::onnx {

// Merges BatchNormalization, Mul and Add with constants into filters and bias of the FLOAT32 Conv or
// ConvTranspose before them. FLOAT16 filters would lose digits.
void FoldNormalizations(Model* model);

}  // namespace anydml::onnx
