#include "ops/reduce/axes.h"

namespace anydml {

Status CheckAxes(const OperatorDesc& desc, std::span<const uint32_t> axes) {
  const uint32_t rank = desc.tensor("InputTensor")->rank;
  AxisSet seen = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] >= rank) {
      return InvalidArgument(desc.schema->name, ": Axes[", i, "] is ", axes[i],
                             " but InputTensor.DimensionCount is ", rank, "; axes must be in [0, ", rank - 1,
                             "]");
    }
    if (Has(seen, axes[i])) {
      return InvalidArgument(desc.schema->name, ": Axes[", i, "] is ", axes[i],
                             " once more; each axis may be given once");
    }
    seen |= AxisSet{1} << axes[i];
  }
  return {};
}

}  // namespace anydml
