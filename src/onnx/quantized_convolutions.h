// Convolutions between DequantizeLinear and QuantizeLinear, as exporters write quantised models.
#pragma once

#include "onnx/model.h"

namespace anydml::onnx {

// Makes QLinearConv of them, where weights and scales are constants and sums of bytes pay. What comes out may
// differ by one step of the result's scale: the sums are exact then.
void TakeQuantizedConvolutions(Model* model);

}  // namespace anydml::onnx
