// Copies, clears and immediate writes.
#include <algorithm>
#include <cstring>

#include "d3d12/descriptors/buffer_view.h"
#include "d3d12/implementation_of.h"
#include "d3d12/lists/command_list.h"
#include "d3d12/lists/command_list_record.h"
#include "d3d12/lists/commands.h"

namespace anydml::d3d12 {
namespace {

Status CheckRange(const char* which, uint64_t offset, uint64_t bytes, uint64_t size) {
  if (offset <= size && bytes <= size - offset) return {};
  return InvalidArgument(which, " offset ", offset, " and ", bytes, " bytes reach beyond the buffer's ", size,
                         " bytes");
}

// The words that are repeated over a view when each element is set to `values`. Empty if the format has no
// such words (structured views).
std::vector<uint32_t> ClearPattern(DXGI_FORMAT format, const UINT values[4]) {
  const uint32_t v0 = values[0], v1 = values[1], v2 = values[2], v3 = values[3];
  const auto pair8 = [](uint32_t a, uint32_t b) { return (a & 0xFF) | (b & 0xFF) << 8; };
  const auto pair16 = [](uint32_t a, uint32_t b) { return (a & 0xFFFF) | b << 16; };
  switch (format) {
    case DXGI_FORMAT_R32_TYPELESS:  // raw views
    case DXGI_FORMAT_R32_UINT:
    case DXGI_FORMAT_R32_SINT:
    case DXGI_FORMAT_R32_FLOAT:
      return {v0};
    case DXGI_FORMAT_R32G32_UINT:
    case DXGI_FORMAT_R32G32_SINT:
    case DXGI_FORMAT_R32G32_FLOAT:
      return {v0, v1};
    case DXGI_FORMAT_R32G32B32A32_UINT:
    case DXGI_FORMAT_R32G32B32A32_SINT:
    case DXGI_FORMAT_R32G32B32A32_FLOAT:
      return {v0, v1, v2, v3};
    case DXGI_FORMAT_R16_UINT:
    case DXGI_FORMAT_R16_SINT:
    case DXGI_FORMAT_R16_FLOAT:
      return {pair16(v0, v0)};
    case DXGI_FORMAT_R16G16_UINT:
    case DXGI_FORMAT_R16G16_SINT:
    case DXGI_FORMAT_R16G16_FLOAT:
      return {pair16(v0, v1)};
    case DXGI_FORMAT_R16G16B16A16_UINT:
    case DXGI_FORMAT_R16G16B16A16_SINT:
    case DXGI_FORMAT_R16G16B16A16_FLOAT:
      return {pair16(v0, v1), pair16(v2, v3)};
    case DXGI_FORMAT_R8_UINT:
    case DXGI_FORMAT_R8_SINT:
      return {pair16(pair8(v0, v0), pair8(v0, v0))};
    case DXGI_FORMAT_R8G8_UINT:
    case DXGI_FORMAT_R8G8_SINT:
      return {pair16(pair8(v0, v1), pair8(v0, v1))};
    case DXGI_FORMAT_R8G8B8A8_UINT:
    case DXGI_FORMAT_R8G8B8A8_SINT:
      return {pair16(pair8(v0, v1), pair8(v2, v3))};
    default:
      return {};
  }
}

}  // namespace

Status CommandList::FindBuffer(const char* parameter, ID3D12Resource* object,
                               ComPtr<Resource>* resource) const {
  if (object == nullptr) return InvalidArgument(parameter, " is null");
  *resource = ImplementationOf<Resource>(object);
  if (!*resource || (*resource)->device() != device()) {
    return InvalidArgument(parameter, " is not a resource of this device");
  }
  return {};
}

Status CommandList::CopyRange(const char* method, ID3D12Resource* target, uint64_t target_offset,
                              ID3D12Resource* source, uint64_t source_offset, uint64_t bytes) {
  ComPtr<Resource> to, from;
  ANYDML_RETURN_IF_ERROR(FindBuffer("pDstBuffer", target, &to));
  ANYDML_RETURN_IF_ERROR(FindBuffer("pSrcBuffer", source, &from));
  ANYDML_RETURN_IF_ERROR(CheckRange("destination", target_offset, bytes, to->desc().Width));
  ANYDML_RETURN_IF_ERROR(CheckRange("source", source_offset, bytes, from->desc().Width));
  if (to.get() == from.get() && target_offset < source_offset + bytes &&
      source_offset < target_offset + bytes) {
    return InvalidArgument("the ranges at ", target_offset, " and ", source_offset, " of ", bytes,
                           " bytes in the same buffer overlap");
  }
  AppendUse(to->state(), D3D12_RESOURCE_STATE_COPY_DEST, method);
  // One buffer cannot be in both states; Direct3D accepts COPY_DEST for a copy within it.
  if (to.get() != from.get()) AppendUse(from->state(), D3D12_RESOURCE_STATE_COPY_SOURCE, method);
  if (bytes != 0) Append<CopyCommand>(to->state(), target_offset, from->state(), source_offset, bytes);
  return {};
}

void CommandList::CopyBufferRegion(ID3D12Resource* target, UINT64 target_offset, ID3D12Resource* source,
                                   UINT64 source_offset, UINT64 bytes) {
  constexpr const char* kMethod = "CopyBufferRegion";
  RecordIn(kMethod, [&] { return CopyRange(kMethod, target, target_offset, source, source_offset, bytes); });
}

void CommandList::CopyResource(ID3D12Resource* target, ID3D12Resource* source) {
  constexpr const char* kMethod = "CopyResource";
  RecordIn(kMethod, [&]() -> Status {
    ComPtr<Resource> to, from;
    ANYDML_RETURN_IF_ERROR(FindBuffer("pDstResource", target, &to));
    ANYDML_RETURN_IF_ERROR(FindBuffer("pSrcResource", source, &from));
    if (to.get() == from.get()) return InvalidArgument("pDstResource and pSrcResource are the same buffer");
    if (to->desc().Width != from->desc().Width) {
      return InvalidArgument("pDstResource has ", to->desc().Width, " bytes but pSrcResource has ",
                             from->desc().Width, "; they must be equal");
    }
    return CopyRange(kMethod, target, 0, source, 0, to->desc().Width);
  });
}

// The queue executes in order, so nothing can tell a plain copy from an atomic one.
void CommandList::AtomicCopyBufferUINT(ID3D12Resource* target, UINT64 target_offset, ID3D12Resource* source,
                                       UINT64 source_offset, UINT, ID3D12Resource* const*,
                                       const D3D12_SUBRESOURCE_RANGE_UINT64*) {
  constexpr const char* kMethod = "AtomicCopyBufferUINT";
  RecordIn(kMethod,
           [&] { return CopyRange(kMethod, target, target_offset, source, source_offset, sizeof(UINT)); });
}

void CommandList::AtomicCopyBufferUINT64(ID3D12Resource* target, UINT64 target_offset, ID3D12Resource* source,
                                         UINT64 source_offset, UINT, ID3D12Resource* const*,
                                         const D3D12_SUBRESOURCE_RANGE_UINT64*) {
  constexpr const char* kMethod = "AtomicCopyBufferUINT64";
  RecordIn(kMethod,
           [&] { return CopyRange(kMethod, target, target_offset, source, source_offset, sizeof(UINT64)); });
}

void CommandList::ClearUnorderedAccessViewUint(D3D12_GPU_DESCRIPTOR_HANDLE gpu_view,
                                               D3D12_CPU_DESCRIPTOR_HANDLE cpu_view, ID3D12Resource* resource,
                                               const UINT values[4], UINT rect_count,
                                               const D3D12_RECT* rects) {
  constexpr const char* kMethod = "ClearUnorderedAccessViewUint";
  RecordIn(kMethod, [&]() -> Status {
    if (type_ == D3D12_COMMAND_LIST_TYPE_COPY) return InvalidArgument("a COPY list cannot clear views");
    if (values == nullptr) return InvalidArgument("Values is null");
    if (rect_count != 0) return InvalidArgument("NumRects is ", rect_count, "; it must be 0 for a buffer");
    ComPtr<Resource> target;
    ANYDML_RETURN_IF_ERROR(FindBuffer("pResource", resource, &target));
    if (DescriptorTable::HeapOf(gpu_view) == 0 || DescriptorTable::HeapOf(gpu_view) != view_heap_) {
      return InvalidArgument("ViewGPUHandleInCurrentHeap is not in the heap that SetDescriptorHeaps has set");
    }
    // The CPU handle is read now; the GPU handle names the same view in the visible heap.
    View view;
    if (!device()->descriptors().Read(cpu_view, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, {&view, 1})) {
      return InvalidArgument("ViewCPUHandle is not a descriptor of a live CBV_SRV_UAV heap");
    }
    if (view.kind != ViewKind::kUnorderedAccess || view.buffer.resource != target->state()) {
      return InvalidArgument("ViewCPUHandle does not hold an unordered access view of pResource");
    }
    std::vector<uint32_t> pattern = ClearPattern(view.format, values);
    if (pattern.empty()) return InvalidArgument("a view of format ", view.format, " cannot be cleared");
    if (view.buffer.size < sizeof(uint32_t))
      return InvalidArgument("views of less than 4 bytes cannot be cleared");
    AppendUse(target->state(), D3D12_RESOURCE_STATE_UNORDERED_ACCESS, kMethod);
    Append<FillCommand>(target->state(), view.buffer.offset, view.buffer.size, std::move(pattern));
    return {};
  });
}

void CommandList::WriteBufferImmediate(UINT count, const D3D12_WRITEBUFFERIMMEDIATE_PARAMETER* parameters,
                                       const D3D12_WRITEBUFFERIMMEDIATE_MODE*) {
  RecordIn("WriteBufferImmediate", [&]() -> Status {  // execution is in order, so the modes make no
                                                      // difference
    if (count != 0 && parameters == nullptr) return InvalidArgument("pParams is null");
    for (UINT i = 0; i < count; ++i) {
      const D3D12_GPU_VIRTUAL_ADDRESS address = parameters[i].Dest;
      auto buffer = device()->buffers().Find(address, sizeof(UINT32));
      if (!buffer || address % sizeof(UINT32) != 0) {
        return InvalidArgument("pParams[", i, "].Dest is ", address,
                               ", which is not 4 aligned bytes of a buffer");
      }
      const uint64_t offset = address - VirtualAddress(*buffer);
      Append<FillCommand>(std::move(buffer), offset, sizeof(UINT32),
                          std::vector<uint32_t>{parameters[i].Value});
    }
    return {};
  });
}

}  // namespace anydml::d3d12
