// Convolutions that are normalised, scaled or shifted channel by channel, as they are trained.
#pragma once

#include "onnx/model.h"

namespace anydml::onnx {

// Puts BatchNormalization, Mul and Add with constants behind Conv and ConvTranspose of FLOAT32 into filters
// and bias. FLOAT16 filters would lose digits.
void FoldNormalizations(Model* model);

}  // namespace anydml::onnx
