// The order of a convolution's elements in memory that a device's kernels are fast with.
#pragma once

#include "ops/operator_traits.h"

namespace anydml {

// For OperatorTraits::layout.
LayoutPreference LayoutOfConvolution(const OperatorDesc& desc, const DeviceTraits& device);

}  // namespace anydml
