// What graphs want to know before they choose the order of a convolution's elements in memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "schema/descriptions.generated.h"

namespace anydml {

// What a node has to do with the order of its elements.
enum class LayoutTaste : uint8_t {
  kChannels,      // reads and writes neighbouring channels
  kChannelsOnly,  // the same, but is no faster where it does only one of that
  kAgreement,     // any order, but the same one in all tensors
  kAny,
  kAsGiven,
};

// What the backend's kernels are fast with. `lanes`: of a CPU's vectors of FLOAT32.
LayoutTaste TasteOfConvolution(const ConvolutionDesc& convolution, std::string_view backend, uint32_t lanes);

}  // namespace anydml
