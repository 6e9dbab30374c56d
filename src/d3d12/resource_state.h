// Life time of the memory behind buffers (ResourceState is in interop.h).
#pragma once

#include <memory>

#include "d3d12/interop.h"

namespace anydml::d3d12 {

// A submission uses the buffer. False when its COM object is gone; EndUse is owed either way.
bool BeginUse(ResourceState& resource);
void EndUse(ResourceState& resource);

// The COM object goes. True when submissions still use the buffer; the last of
// them frees the memory then.
bool MarkDestroyed(ResourceState& resource);

}  // namespace anydml::d3d12
