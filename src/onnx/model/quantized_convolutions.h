// Convolutions between DequantizeLinear and QuantizeLinear, as exporters write quantised models.
#pragma once

#include "onnx/file/model.h"

namespace anydml::onnx {

// Turns them into QLinearConv if weights and scales are constants and byte sums pay. Results may differ by
// one step of the result's scale, because the sums become exact.
void TakeQuantizedConvolutions(Model* model);

}  // namespace anydml::onnx
