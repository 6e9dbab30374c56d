// From view descriptions to descriptor slots.
#pragma once

#include <d3d12.h>

#include "base/status.h"
#include "d3d12/descriptors/descriptor_table.h"

namespace anydml::d3d12 {

class Device;

// Bytes of one element, 0 for formats that a buffer view cannot have here.
uint32_t FormatBytes(DXGI_FORMAT format);

// A null resource makes a null descriptor (which needs a description).
Status MakeUnorderedAccessView(Device* device, ID3D12Resource* resource, ID3D12Resource* counter,
                               const D3D12_UNORDERED_ACCESS_VIEW_DESC* desc, View* view);
Status MakeShaderResourceView(Device* device, ID3D12Resource* resource,
                              const D3D12_SHADER_RESOURCE_VIEW_DESC* desc, View* view);

}  // namespace anydml::d3d12
