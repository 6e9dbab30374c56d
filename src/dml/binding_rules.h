// What may be bound where. Sentences begin with the slot; callers put the method before them.
#pragma once

#include <span>

#include <DirectML.h>

#include "base/status.h"
#include "d3d12/interop.h"
#include "dml/layout.h"

namespace anydml::dml {

// The rules for one buffer, seen from the public object: ours, of this device, a
// buffer, allowing unordered access, and everything that CheckRegion says.
// A null Buffer is no binding.
Status CheckBuffer(d3d12::Device* device, const Slot& slot, const DML_BUFFER_BINDING& binding,
                   d3d12::Descriptor* out);

// The rules that a descriptor alone can tell: heap, alignment, range, size.
Status CheckRegion(const Slot& slot, const d3d12::Descriptor& descriptor);

// The rules between bindings, once all are there: nothing missing, no hazards.
// One descriptor per slot of the layout.
Status CheckTogether(const Layout& layout, std::span<const d3d12::Descriptor> bound);

// The same rules for addresses without buffers (null: nothing), which are aligned to their elements and,
// but for what the application does not provide, to `alignment`.
Status CheckAddresses(const Layout& layout, std::span<std::byte* const> bound, uint32_t alignment);

}  // namespace anydml::dml
