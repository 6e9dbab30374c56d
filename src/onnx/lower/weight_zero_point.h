// The zero point of weights.
#pragma once

#include <algorithm>

#include "onnx/lower/compose.h"

namespace anydml::onnx {

// Kernels pack weights if they own the zero point, too, which a graph's small constants are not: so a single
// one becomes one per column or channel, of which there are `count`, and zeros are omitted.
struct WeightZeroPoint {
  View view;
  const View* use = nullptr;

  WeightZeroPoint(Lowering& n, size_t weights, size_t input, size_t rank, size_t axis, int64_t count) {
    if (!n.Has(input)) return;
    const Tensor* const zero = n.IfConstant(input);
    if (zero != nullptr && n.IfConstant(weights) != nullptr && !zero->data.empty()) {
      const bool none = std::all_of(zero->data.begin(), zero->data.end(),
                                    [](std::byte byte) { return byte == std::byte{0}; });
      if (none) return;
      if (zero->data.size() == 1 && BitsOf(zero->type) == 8 && count > 0) {
        const std::vector<std::byte> all(static_cast<size_t>(count), zero->data[0]);
        view = AlongAxis(n.Constant(MakeTensor(zero->type, {count}, all)), rank, axis);
        use = &view;
        return;
      }
    }
    view = AlongAxis(n.In(input), rank, axis);
    use = &view;
  }
};

}  // namespace anydml::onnx
