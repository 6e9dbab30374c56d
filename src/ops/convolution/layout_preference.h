// The order of a convolution's elements in memory that a device's kernels are fast with. Graphs choose
// layouts by it (graph/layouts.cc).
#pragma once

#include <cstdint>

#include "kernel/device_traits.h"
#include "schema/descriptions.generated.h"

namespace anydml {

enum class LayoutPreference : uint8_t {
  kChannels,      // reads and writes neighbouring channels
  kChannelsOnly,  // the same, but gains nothing where only its input or only its output has them
  kAgreement,     // any order, but the same one in all tensors
  kAny,
  kAsGiven,
};

LayoutPreference PreferenceOfConvolution(const ConvolutionDesc& convolution, const DeviceTraits& device);

}  // namespace anydml
