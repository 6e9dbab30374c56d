#include "d3d12/descriptors/buffer_view.h"

#include "d3d12/implementation_of.h"
#include "d3d12/memory/resource.h"

namespace anydml::d3d12 {
namespace {

struct BufferRange {
  DXGI_FORMAT format;
  uint64_t first_element;
  uint32_t count;
  uint32_t stride;
  bool raw;
};

// Fills `view` with a checked range of `resource`.
Status Resolve(const BufferRange& range, const Resource& resource, View* view) {
  uint32_t bytes = 0;
  if (range.raw) {
    if (range.format != DXGI_FORMAT_R32_TYPELESS || range.stride != 0) {
      return InvalidArgument("a RAW view must have Format R32_TYPELESS and StructureByteStride 0");
    }
    bytes = sizeof(uint32_t);
  } else if (range.format == DXGI_FORMAT_UNKNOWN) {
    if (range.stride == 0 || range.stride % 4 != 0 || range.stride > 2048) {
      return InvalidArgument("StructureByteStride is ", range.stride,
                             "; with Format UNKNOWN it must be a multiple of 4 in [4, 2048]");
    }
    bytes = range.stride;
  } else {
    bytes = FormatBytes(range.format);
    if (bytes == 0)
      return InvalidArgument("Format ", range.format, " is not one that a buffer view can have");
  }
  const uint64_t size = resource.desc().Width;
  if (range.count == 0 || range.first_element > size / bytes ||
      range.count > size / bytes - range.first_element) {
    return InvalidArgument("FirstElement ", range.first_element, " and NumElements ", range.count, " of ",
                           bytes, " bytes do not lie in the buffer's ", size, " bytes");
  }
  view->buffer.resource = resource.state();
  view->buffer.offset = range.first_element * bytes;
  view->buffer.size = static_cast<uint64_t>(range.count) * bytes;
  view->format = range.format;
  return {};
}

Status FindResource(Device* device, ID3D12Resource* object, ComPtr<Resource>* resource) {
  *resource = ImplementationOf<Resource>(object);
  if (!*resource || (*resource)->device() != device)
    return InvalidArgument("pResource is not of this device");
  return {};
}

}  // namespace

uint32_t FormatBytes(DXGI_FORMAT format) {
  switch (format) {
    case DXGI_FORMAT_R32G32B32A32_FLOAT:
    case DXGI_FORMAT_R32G32B32A32_UINT:
    case DXGI_FORMAT_R32G32B32A32_SINT:
      return 16;
    case DXGI_FORMAT_R16G16B16A16_FLOAT:
    case DXGI_FORMAT_R16G16B16A16_UINT:
    case DXGI_FORMAT_R16G16B16A16_SINT:
    case DXGI_FORMAT_R32G32_FLOAT:
    case DXGI_FORMAT_R32G32_UINT:
    case DXGI_FORMAT_R32G32_SINT:
      return 8;
    case DXGI_FORMAT_R8G8B8A8_UINT:
    case DXGI_FORMAT_R8G8B8A8_SINT:
    case DXGI_FORMAT_R16G16_FLOAT:
    case DXGI_FORMAT_R16G16_UINT:
    case DXGI_FORMAT_R16G16_SINT:
    case DXGI_FORMAT_R32_FLOAT:
    case DXGI_FORMAT_R32_UINT:
    case DXGI_FORMAT_R32_SINT:
      return 4;
    case DXGI_FORMAT_R8G8_UINT:
    case DXGI_FORMAT_R8G8_SINT:
    case DXGI_FORMAT_R16_FLOAT:
    case DXGI_FORMAT_R16_UINT:
    case DXGI_FORMAT_R16_SINT:
      return 2;
    case DXGI_FORMAT_R8_UINT:
    case DXGI_FORMAT_R8_SINT:
      return 1;
    default:
      return 0;
  }
}

Status MakeUnorderedAccessView(Device* device, ID3D12Resource* object, ID3D12Resource* counter,
                               const D3D12_UNORDERED_ACCESS_VIEW_DESC* desc, View* view) {
  *view = {};
  view->kind = ViewKind::kUnorderedAccess;
  if (desc == nullptr) return InvalidArgument("pDesc is null; a buffer's view needs a description");
  if (desc->ViewDimension != D3D12_UAV_DIMENSION_BUFFER) {
    return InvalidArgument("ViewDimension is ", desc->ViewDimension, "; it must be BUFFER (1)");
  }
  if (object == nullptr) return {};
  ComPtr<Resource> resource;
  ANYDML_RETURN_IF_ERROR(FindResource(device, object, &resource));
  if ((resource->desc().Flags & D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS) == 0) {
    return InvalidArgument("the buffer was created without ALLOW_UNORDERED_ACCESS");
  }
  if (counter != nullptr || desc->Buffer.CounterOffsetInBytes != 0) {
    return InvalidArgument(
        "pCounterResource and CounterOffsetInBytes must be null and 0: counters need shaders");
  }
  const bool raw = (desc->Buffer.Flags & D3D12_BUFFER_UAV_FLAG_RAW) != 0;
  return Resolve({desc->Format, desc->Buffer.FirstElement, desc->Buffer.NumElements,
                  desc->Buffer.StructureByteStride, raw},
                 *resource, view);
}

Status MakeShaderResourceView(Device* device, ID3D12Resource* object,
                              const D3D12_SHADER_RESOURCE_VIEW_DESC* desc, View* view) {
  *view = {};
  view->kind = ViewKind::kShaderResource;
  if (desc == nullptr) return InvalidArgument("pDesc is null; a buffer's view needs a description");
  if (desc->ViewDimension != D3D12_SRV_DIMENSION_BUFFER) {
    return InvalidArgument("ViewDimension is ", desc->ViewDimension, "; it must be BUFFER (1)");
  }
  if (object == nullptr) return {};
  ComPtr<Resource> resource;
  ANYDML_RETURN_IF_ERROR(FindResource(device, object, &resource));
  const bool raw = (desc->Buffer.Flags & D3D12_BUFFER_SRV_FLAG_RAW) != 0;
  return Resolve({desc->Format, desc->Buffer.FirstElement, desc->Buffer.NumElements,
                  desc->Buffer.StructureByteStride, raw},
                 *resource, view);
}

}  // namespace anydml::d3d12
