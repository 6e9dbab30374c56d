#include "d3d12/memory/resource_desc.h"

namespace anydml::d3d12 {
namespace {

constexpr uint32_t kReadStates =
    D3D12_RESOURCE_STATE_GENERIC_READ | D3D12_RESOURCE_STATE_ALL_SHADER_RESOURCE |
    D3D12_RESOURCE_STATE_DEPTH_READ | D3D12_RESOURCE_STATE_RESOLVE_SOURCE |
    D3D12_RESOURCE_STATE_VIDEO_DECODE_READ | D3D12_RESOURCE_STATE_VIDEO_PROCESS_READ |
    D3D12_RESOURCE_STATE_VIDEO_ENCODE_READ;
constexpr uint32_t kWriteStates =
    D3D12_RESOURCE_STATE_RENDER_TARGET | D3D12_RESOURCE_STATE_UNORDERED_ACCESS |
    D3D12_RESOURCE_STATE_DEPTH_WRITE | D3D12_RESOURCE_STATE_STREAM_OUT | D3D12_RESOURCE_STATE_COPY_DEST |
    D3D12_RESOURCE_STATE_RESOLVE_DEST | D3D12_RESOURCE_STATE_RAYTRACING_ACCELERATION_STRUCTURE |
    D3D12_RESOURCE_STATE_VIDEO_DECODE_WRITE | D3D12_RESOURCE_STATE_VIDEO_PROCESS_WRITE |
    D3D12_RESOURCE_STATE_VIDEO_ENCODE_WRITE;

// Flags that request something that this device lacks.
constexpr uint32_t kUnsupportedHeapFlags =
    D3D12_HEAP_FLAG_SHARED | D3D12_HEAP_FLAG_ALLOW_DISPLAY | D3D12_HEAP_FLAG_SHARED_CROSS_ADAPTER |
    D3D12_HEAP_FLAG_HARDWARE_PROTECTED | D3D12_HEAP_FLAG_ALLOW_WRITE_WATCH;
constexpr uint32_t kKnownHeapFlags =
    kUnsupportedHeapFlags | D3D12_HEAP_FLAG_DENY_BUFFERS | D3D12_HEAP_FLAG_DENY_RT_DS_TEXTURES |
    D3D12_HEAP_FLAG_DENY_NON_RT_DS_TEXTURES | D3D12_HEAP_FLAG_ALLOW_SHADER_ATOMICS |
    D3D12_HEAP_FLAG_CREATE_NOT_RESIDENT | D3D12_HEAP_FLAG_CREATE_NOT_ZEROED;

Status CheckCustomHeap(const D3D12_HEAP_PROPERTIES& properties, bool unified_memory) {
  if (properties.CPUPageProperty < D3D12_CPU_PAGE_PROPERTY_NOT_AVAILABLE ||
      properties.CPUPageProperty > D3D12_CPU_PAGE_PROPERTY_WRITE_BACK) {
    return InvalidArgument("CPUPageProperty is ", properties.CPUPageProperty,
                           " but a heap of type CUSTOM needs NOT_AVAILABLE, WRITE_COMBINE or WRITE_BACK");
  }
  if (properties.MemoryPoolPreference < D3D12_MEMORY_POOL_L0 ||
      properties.MemoryPoolPreference > D3D12_MEMORY_POOL_L1) {
    return InvalidArgument("MemoryPoolPreference is ", properties.MemoryPoolPreference,
                           " but a heap of type CUSTOM needs L0 or L1");
  }
  if (properties.MemoryPoolPreference == D3D12_MEMORY_POOL_L1 && unified_memory) {
    return InvalidArgument(
        "MemoryPoolPreference is L1 but this adapter has unified memory, which is all in L0");
  }
  if (properties.MemoryPoolPreference == D3D12_MEMORY_POOL_L1 &&
      properties.CPUPageProperty != D3D12_CPU_PAGE_PROPERTY_NOT_AVAILABLE) {
    return InvalidArgument("CPUPageProperty is ", properties.CPUPageProperty,
                           " but memory pool L1 is not visible to the CPU; it must be NOT_AVAILABLE");
  }
  return {};
}

}  // namespace

uint64_t AlignToPlacement(uint64_t bytes) {
  if (bytes > UINT64_MAX - (kPlacementAlignment - 1)) return UINT64_MAX;
  return (bytes + kPlacementAlignment - 1) & ~(kPlacementAlignment - 1);
}

D3D12_RESOURCE_DESC ToDesc(const D3D12_RESOURCE_DESC1& desc) {
  return {desc.Dimension, desc.Alignment, desc.Width,      desc.Height, desc.DepthOrArraySize,
          desc.MipLevels, desc.Format,    desc.SampleDesc, desc.Layout, desc.Flags};
}

D3D12_RESOURCE_DESC1 ToDesc1(const D3D12_RESOURCE_DESC& desc) {
  return {desc.Dimension,        desc.Alignment, desc.Width,  desc.Height,
          desc.DepthOrArraySize, desc.MipLevels, desc.Format, desc.SampleDesc,
          desc.Layout,           desc.Flags,     {}};
}

Status CheckBufferDesc(const D3D12_RESOURCE_DESC& desc) {
  if (desc.Dimension >= D3D12_RESOURCE_DIMENSION_TEXTURE1D &&
      desc.Dimension <= D3D12_RESOURCE_DIMENSION_TEXTURE3D) {
    return Status(Code::kNotImplemented,
                  "Dimension is a texture but this compute-only device has buffers only; it must be BUFFER");
  }
  if (desc.Dimension != D3D12_RESOURCE_DIMENSION_BUFFER) {
    return InvalidArgument("Dimension is ", desc.Dimension, "; it must be BUFFER (1)");
  }
  if (desc.Alignment != 0 && desc.Alignment != kPlacementAlignment) {
    return InvalidArgument("Alignment is ", desc.Alignment, "; a buffer's must be 0 or ",
                           kPlacementAlignment);
  }
  if (desc.Width == 0) return InvalidArgument("Width is 0; a buffer must have at least 1 byte");
  if (desc.Height != 1) return InvalidArgument("Height is ", desc.Height, "; a buffer's must be 1");
  if (desc.DepthOrArraySize != 1) {
    return InvalidArgument("DepthOrArraySize is ", desc.DepthOrArraySize, "; a buffer's must be 1");
  }
  if (desc.MipLevels != 1) return InvalidArgument("MipLevels is ", desc.MipLevels, "; a buffer's must be 1");
  if (desc.Format != DXGI_FORMAT_UNKNOWN) {
    return InvalidArgument("Format is ", desc.Format, "; a buffer's must be DXGI_FORMAT_UNKNOWN (0)");
  }
  if (desc.SampleDesc.Count != 1 || desc.SampleDesc.Quality != 0) {
    return InvalidArgument("SampleDesc is {", desc.SampleDesc.Count, ", ", desc.SampleDesc.Quality,
                           "}; a buffer's must be {1, 0}");
  }
  if (desc.Layout != D3D12_TEXTURE_LAYOUT_ROW_MAJOR) {
    return InvalidArgument("Layout is ", desc.Layout, "; a buffer's must be ROW_MAJOR (1)");
  }
  if ((desc.Flags & ~D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS) != 0) {
    return InvalidArgument("Flags is ", desc.Flags, "; a buffer's may be NONE or ALLOW_UNORDERED_ACCESS (4)");
  }
  return {};
}

Status CheckHeapProperties(const D3D12_HEAP_PROPERTIES& properties, bool unified_memory) {
  if (properties.CreationNodeMask > 1 || properties.VisibleNodeMask > 1) {
    return InvalidArgument("CreationNodeMask is ", properties.CreationNodeMask, " and VisibleNodeMask ",
                           properties.VisibleNodeMask, "; the device has one node, so they must be 0 or 1");
  }
  switch (properties.Type) {
    case D3D12_HEAP_TYPE_DEFAULT:
    case D3D12_HEAP_TYPE_UPLOAD:
    case D3D12_HEAP_TYPE_READBACK:
      if (properties.CPUPageProperty == D3D12_CPU_PAGE_PROPERTY_UNKNOWN &&
          properties.MemoryPoolPreference == D3D12_MEMORY_POOL_UNKNOWN) {
        return {};
      }
      return InvalidArgument("CPUPageProperty and MemoryPoolPreference are ", properties.CPUPageProperty,
                             " and ", properties.MemoryPoolPreference,
                             "; unless Type is CUSTOM they must be UNKNOWN (0)");
    case D3D12_HEAP_TYPE_CUSTOM:
      return CheckCustomHeap(properties, unified_memory);
    default:
      return InvalidArgument("heap Type is ", properties.Type,
                             "; it must be DEFAULT, UPLOAD, READBACK or CUSTOM");
  }
}

Status CheckHeapFlags(D3D12_HEAP_FLAGS flags) {
  if ((flags & ~kKnownHeapFlags) != 0) return InvalidArgument("heap flags ", flags, " contain unknown bits");
  if ((flags & kUnsupportedHeapFlags) != 0) {
    return Status(Code::kNotImplemented,
                  StrCat("heap flags ", flags,
                         " ask for sharing, display, protection or write watch, which this "
                         "device does not have"));
  }
  return {};
}

Status CheckState(D3D12_RESOURCE_STATES state) {
  const auto bits = static_cast<uint32_t>(state);
  if ((bits & ~(kReadStates | kWriteStates)) != 0)
    return InvalidArgument("state ", bits, " contains unknown bits");
  const uint32_t writes = bits & kWriteStates;
  if (writes != 0 && ((writes & (writes - 1)) != 0 || (bits & kReadStates) != 0)) {
    return InvalidArgument("state ", bits, " combines a write state with others; a write state stands alone");
  }
  return {};
}

Status CheckPlacement(const D3D12_RESOURCE_DESC& desc, D3D12_RESOURCE_STATES state,
                      const D3D12_HEAP_PROPERTIES& properties, const D3D12_CLEAR_VALUE* clear_value) {
  if (clear_value != nullptr)
    return InvalidArgument("pOptimizedClearValue is set; it must be null for a buffer");
  ANYDML_RETURN_IF_ERROR(CheckState(state));
  const bool upload = properties.Type == D3D12_HEAP_TYPE_UPLOAD;
  const bool readback = properties.Type == D3D12_HEAP_TYPE_READBACK;
  if ((upload || readback) && (desc.Flags & D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS) != 0) {
    return InvalidArgument("Flags has ALLOW_UNORDERED_ACCESS, which ", upload ? "UPLOAD" : "READBACK",
                           " heaps do not allow");
  }
  if (upload && state != D3D12_RESOURCE_STATE_GENERIC_READ) {
    return InvalidArgument("the initial state is ", state, "; on an UPLOAD heap it must be GENERIC_READ (",
                           D3D12_RESOURCE_STATE_GENERIC_READ, ")");
  }
  if (readback && state != D3D12_RESOURCE_STATE_COPY_DEST) {
    return InvalidArgument("the initial state is ", state, "; on a READBACK heap it must be COPY_DEST (",
                           D3D12_RESOURCE_STATE_COPY_DEST, ")");
  }
  return {};
}

MemoryKind KindOf(const D3D12_HEAP_PROPERTIES& properties) {
  switch (properties.Type) {
    case D3D12_HEAP_TYPE_UPLOAD:
      return MemoryKind::kUpload;
    case D3D12_HEAP_TYPE_READBACK:
      return MemoryKind::kReadback;
    case D3D12_HEAP_TYPE_CUSTOM:
      if (properties.CPUPageProperty == D3D12_CPU_PAGE_PROPERTY_WRITE_COMBINE) return MemoryKind::kUpload;
      if (properties.CPUPageProperty == D3D12_CPU_PAGE_PROPERTY_WRITE_BACK) return MemoryKind::kReadback;
      return MemoryKind::kDefault;
    default:
      return MemoryKind::kDefault;
  }
}

bool CpuVisible(const D3D12_HEAP_PROPERTIES& properties) {
  return KindOf(properties) != MemoryKind::kDefault;
}

D3D12_HEAP_PROPERTIES CustomHeapProperties(D3D12_HEAP_TYPE type, bool unified_memory) {
  D3D12_HEAP_PROPERTIES properties = {D3D12_HEAP_TYPE_CUSTOM, D3D12_CPU_PAGE_PROPERTY_NOT_AVAILABLE,
                                      unified_memory ? D3D12_MEMORY_POOL_L0 : D3D12_MEMORY_POOL_L1, 1, 1};
  if (type == D3D12_HEAP_TYPE_UPLOAD || type == D3D12_HEAP_TYPE_READBACK) {
    // With cache-coherent unified memory, uploads need no write combining.
    const bool write_back = type == D3D12_HEAP_TYPE_READBACK || unified_memory;
    properties.CPUPageProperty =
        write_back ? D3D12_CPU_PAGE_PROPERTY_WRITE_BACK : D3D12_CPU_PAGE_PROPERTY_WRITE_COMBINE;
    properties.MemoryPoolPreference = D3D12_MEMORY_POOL_L0;
  }
  return properties;
}

}  // namespace anydml::d3d12
