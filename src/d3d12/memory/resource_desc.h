// Rules for descriptions of heaps and buffers. Messages begin with the field; the caller prepends the method.
#pragma once

#include <d3d12.h>

#include "backend/backend.h"
#include "base/status.h"

namespace anydml::d3d12 {

inline constexpr uint64_t kPlacementAlignment = D3D12_DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT;

// `bytes` rounded up to whole placement units; UINT64_MAX if that overflows.
uint64_t AlignToPlacement(uint64_t bytes);

D3D12_RESOURCE_DESC ToDesc(const D3D12_RESOURCE_DESC1& desc);
D3D12_RESOURCE_DESC1 ToDesc1(const D3D12_RESOURCE_DESC& desc);

Status CheckBufferDesc(const D3D12_RESOURCE_DESC& desc);
Status CheckHeapProperties(const D3D12_HEAP_PROPERTIES& properties, bool unified_memory);
Status CheckHeapFlags(D3D12_HEAP_FLAGS flags);
// Checks a buffer with this description, created in this state on such a heap.
Status CheckPlacement(const D3D12_RESOURCE_DESC& desc, D3D12_RESOURCE_STATES state,
                      const D3D12_HEAP_PROPERTIES& properties, const D3D12_CLEAR_VALUE* clear_value);
Status CheckState(D3D12_RESOURCE_STATES state);

MemoryKind KindOf(const D3D12_HEAP_PROPERTIES& properties);
bool CpuVisible(const D3D12_HEAP_PROPERTIES& properties);
D3D12_HEAP_PROPERTIES CustomHeapProperties(D3D12_HEAP_TYPE type, bool unified_memory);

}  // namespace anydml::d3d12
