// The amount of an adapter's memory that this process uses, for the budgets that DXGI and DXCore report.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace anydml::d3d12 {

// Backend::Allocate; the bytes count until the memory is freed.
Status AllocateCounted(Backend& backend, MemoryKind kind, uint64_t bytes, std::shared_ptr<Memory>* memory);

uint64_t MemoryInUse(const Backend& backend);

}  // namespace anydml::d3d12
