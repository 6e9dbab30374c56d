// Lifetime of the memory behind buffers (ResourceState is in interop.h).
#pragma once

#include <memory>

#include "d3d12/interop.h"

namespace anydml::d3d12 {

// Begins a submission's use of the buffer. False if its COM object is destroyed; EndUse must follow in either
// case.
bool BeginUse(ResourceState& resource);
void EndUse(ResourceState& resource);

// Called when the COM object is destroyed. True if submissions still use the buffer; the last of them then
// frees the memory.
bool MarkDestroyed(ResourceState& resource);

}  // namespace anydml::d3d12
