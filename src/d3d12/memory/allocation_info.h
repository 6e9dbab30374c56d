// The size of buffers: GetResourceAllocationInfo and GetCopyableFootprints.
#pragma once

#include <d3d12.h>

namespace anydml::d3d12 {

// SizeInBytes is UINT64_MAX if one is invalid.
D3D12_RESOURCE_ALLOCATION_INFO AllocationInfo(UINT count, const D3D12_RESOURCE_DESC* descs,
                                              D3D12_RESOURCE_ALLOCATION_INFO1* infos);
D3D12_RESOURCE_ALLOCATION_INFO AllocationInfo(UINT count, const D3D12_RESOURCE_DESC1* descs,
                                              D3D12_RESOURCE_ALLOCATION_INFO1* infos);

// False (and all outputs are UINT64_MAX, as on Windows) if the arguments are invalid.
bool CopyableFootprints(const D3D12_RESOURCE_DESC* desc, UINT first, UINT count, UINT64 base_offset,
                        D3D12_PLACED_SUBRESOURCE_FOOTPRINT* layouts, UINT* row_counts, UINT64* row_sizes,
                        UINT64* total_bytes);

}  // namespace anydml::d3d12
