// The rules for bindings. Messages begin with the slot; callers prepend the method.
#pragma once

#include <span>

#include <DirectML.h>

#include "base/status.h"
#include "d3d12/interop.h"
#include "dml/layout.h"

namespace anydml::dml {

// The rules for one buffer as the public object: it must be ours, of this device, a buffer, allow unordered
// access, and satisfy CheckRegion. A null Buffer is no binding.
Status CheckBuffer(d3d12::Device* device, const Slot& slot, const DML_BUFFER_BINDING& binding,
                   d3d12::Descriptor* out);

// The rules that a descriptor alone can violate: heap, alignment, range, size.
Status CheckRegion(const Slot& slot, const d3d12::Descriptor& descriptor);

// The rules that concern all bindings together: nothing missing, no hazards. One descriptor per slot of the
// layout.
Status CheckTogether(const Layout& layout, std::span<const d3d12::Descriptor> bound);

// The same rules for addresses instead of buffers (null: nothing bound). Each is aligned to its elements;
// those that the application provides also to `alignment`.
Status CheckAddresses(const Layout& layout, std::span<std::byte* const> bound, uint32_t alignment);

}  // namespace anydml::dml
