#include "d3d12/memory/resource.h"

#include <algorithm>

#include "d3d12/adapters/memory_usage.h"
#include "d3d12/implementation_of.h"
#include "d3d12/memory/heap.h"
#include "d3d12/memory/resource_desc.h"
#include "d3d12/memory/resource_state.h"

namespace anydml::d3d12 {
namespace {

std::shared_ptr<ResourceState> MakeState(std::shared_ptr<Memory> memory, uint64_t offset, uint64_t size,
                                         const D3D12_HEAP_PROPERTIES& heap, D3D12_RESOURCE_STATES state) {
  auto result = std::make_shared<ResourceState>();
  result->present = std::min(size, memory->size() - offset);
  result->data = memory->device() + offset;
  result->memory = std::move(memory);
  result->offset = offset;
  result->size = size;
  result->heap = heap;
  result->state = state;
  return result;
}

Status CheckInHeap(const Heap& heap, UINT64 offset, uint64_t size) {
  const D3D12_HEAP_DESC& desc = heap.desc();
  if ((desc.Flags & D3D12_HEAP_FLAG_DENY_BUFFERS) != 0) {
    return InvalidArgument("pHeap was created with DENY_BUFFERS");
  }
  if (offset % kPlacementAlignment != 0) {
    return InvalidArgument("HeapOffset is ", offset, "; it must be a multiple of ", kPlacementAlignment);
  }
  if (offset > desc.SizeInBytes || size > desc.SizeInBytes - offset) {
    return InvalidArgument("HeapOffset ", offset, " and Width ", size, " reach beyond the heap's ",
                           desc.SizeInBytes, " bytes");
  }
  return {};
}

}  // namespace

HRESULT Resource::CreateCommitted(Device* device, const D3D12_HEAP_PROPERTIES* properties,
                                  D3D12_HEAP_FLAGS flags, const D3D12_RESOURCE_DESC* desc,
                                  D3D12_RESOURCE_STATES state, const D3D12_CLEAR_VALUE* clear_value,
                                  REFIID iid, void** out) {
  constexpr const char* kMethod = "CreateCommittedResource";
  if (properties == nullptr) return device->Fail(E_INVALIDARG, kMethod, ": pHeapProperties is null");
  if (desc == nullptr) return device->Fail(E_INVALIDARG, kMethod, ": pDesc is null");
  const bool unified = device->backend().adapter().unified_memory;
  Status status = CheckHeapProperties(*properties, unified);
  if (status.ok()) status = CheckHeapFlags(flags);
  if (status.ok()) status = CheckBufferDesc(*desc);
  if (status.ok()) status = CheckPlacement(*desc, state, *properties, clear_value);
  if (!status.ok()) return device->Fail(kMethod, status);
  if (out == nullptr) return S_FALSE;

  std::shared_ptr<Memory> memory;
  status = AllocateCounted(device->backend(), KindOf(*properties), AlignToPlacement(desc->Width), &memory);
  if (!status.ok()) return device->Fail(kMethod, status);
  return CreateComObject<Resource>(iid, out, device, *desc, flags,
                                   MakeState(std::move(memory), 0, desc->Width, *properties, state));
}

HRESULT Resource::CreatePlaced(Device* device, ID3D12Heap* heap, UINT64 offset,
                               const D3D12_RESOURCE_DESC* desc, D3D12_RESOURCE_STATES state,
                               const D3D12_CLEAR_VALUE* clear_value, REFIID iid, void** out) {
  constexpr const char* kMethod = "CreatePlacedResource";
  const auto implementation = ImplementationOf<Heap>(heap);
  if (!implementation || implementation->device() != device) {
    return device->Fail(E_INVALIDARG, kMethod, ": pHeap is ",
                        heap == nullptr ? "null" : "not a heap of this device");
  }
  if (desc == nullptr) return device->Fail(E_INVALIDARG, kMethod, ": pDesc is null");
  const D3D12_HEAP_DESC& heap_desc = implementation->desc();
  Status status = CheckBufferDesc(*desc);
  if (status.ok()) status = CheckPlacement(*desc, state, heap_desc.Properties, clear_value);
  if (status.ok()) status = CheckInHeap(*implementation, offset, desc->Width);
  if (!status.ok()) return device->Fail(kMethod, status);
  return CreateComObject<Resource>(
      iid, out, device, *desc, heap_desc.Flags,
      MakeState(implementation->memory(), offset, desc->Width, heap_desc.Properties, state));
}

HRESULT Resource::CreateOver(Device* device, void* memory, uint64_t bytes, std::function<void()> release,
                             REFIID iid, void** out) {
  constexpr const char* kMethod = "AnyDmlCreateBufferFromMemory";
  Backend& backend = device->backend();
  if (memory == nullptr) return device->Fail(E_INVALIDARG, kMethod, ": memory is null");
  if (bytes == 0 || bytes > UINT64_MAX - 3 - reinterpret_cast<uintptr_t>(memory)) {
    return device->Fail(E_INVALIDARG, kMethod, ": bytes is ", bytes,
                        "; it must be at least 1 and end within the address space");
  }
  if (reinterpret_cast<uintptr_t>(memory) % backend.foreign_alignment() != 0) {
    return device->Fail(E_INVALIDARG, kMethod, ": memory is ", memory, " but must be aligned to ",
                        backend.foreign_alignment(), " bytes on ", backend.adapter().id);
  }
  const D3D12_RESOURCE_DESC desc = {D3D12_RESOURCE_DIMENSION_BUFFER,
                                    0,
                                    (bytes + 3) / 4 * 4,  // rounded as TotalTensorSizeInBytes is
                                    1,
                                    1,
                                    1,
                                    DXGI_FORMAT_UNKNOWN,
                                    {1, 0},
                                    D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
                                    D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS};
  const D3D12_HEAP_PROPERTIES heap = {D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                      D3D12_MEMORY_POOL_UNKNOWN, 1, 1};
  // Released only if this succeeds: after a failure the caller still owns the memory.
  const auto given = std::make_shared<bool>(false);
  std::shared_ptr<Memory> adopted;
  const Status status = backend.Adopt(
      memory, bytes,
      [given, release = std::move(release)] {
        if (*given) release();
      },
      &adopted);
  if (!status.ok()) return device->Fail(kMethod, status);
  const HRESULT hr = CreateComObject<Resource>(
      iid, out, device, desc, D3D12_HEAP_FLAG_NONE,
      MakeState(std::move(adopted), 0, desc.Width, heap, D3D12_RESOURCE_STATE_COMMON));
  *given = SUCCEEDED(hr);
  return hr;
}

Resource::Resource(Device* device, const D3D12_RESOURCE_DESC& desc, D3D12_HEAP_FLAGS heap_flags,
                   std::shared_ptr<ResourceState> state)
    : DeviceChild(device),
      desc_([&desc] {
        D3D12_RESOURCE_DESC actual = desc;
        actual.Alignment = kPlacementAlignment;  // GetDesc reports the actual alignment
        return actual;
      }()),
      heap_flags_(heap_flags),
      state_(std::move(state)) {
  device->buffers().Insert(state_);
}

Resource::~Resource() {
  device()->buffers().Remove(*state_);
  if (!MarkDestroyed(*state_)) return;
  device()->Post(
      D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_OBJECT_DELETED_WHILE_STILL_IN_USE,
      StrCat("ID3D12Resource", QuotedName(),
             " was released while command lists that use it are in flight; its memory is kept until "
             "they are done"));
}

HRESULT Resource::CheckRange(const char* method, const D3D12_RANGE* range) const {
  if (range == nullptr || (range->Begin <= range->End && range->End <= desc_.Width)) return S_OK;
  return device()->Fail(E_INVALIDARG, "ID3D12Resource::", method, ": the range [", range->Begin, ", ",
                        range->End, ") does not lie in the buffer's ", desc_.Width, " bytes");
}

HRESULT Resource::Map(UINT subresource, const D3D12_RANGE* read_range, void** data) {
  if (data != nullptr) *data = nullptr;
  if (subresource != 0) {
    return device()->Fail(E_INVALIDARG, "ID3D12Resource::Map: Subresource is ", subresource,
                          "; a buffer has only 0");
  }
  if (!CpuVisible(state_->heap)) {
    return device()->Fail(
        E_INVALIDARG, "ID3D12Resource::Map: the buffer", QuotedName(),
        " is on a heap that the CPU cannot access (only UPLOAD, READBACK and such CUSTOM heaps can "
        "be mapped)");
  }
  if (const HRESULT hr = CheckRange("Map", read_range); FAILED(hr)) return hr;
  map_count_.fetch_add(1, std::memory_order_relaxed);
  if (data != nullptr) *data = state_->memory->host() + state_->offset;
  return S_OK;
}

void Resource::Unmap(UINT subresource, const D3D12_RANGE* written_range) {
  if (subresource != 0) {
    device()->Fail(E_INVALIDARG, "ID3D12Resource::Unmap: Subresource is ", subresource,
                   "; a buffer has only 0");
    return;
  }
  if (FAILED(CheckRange("Unmap", written_range))) return;
  int32_t count = map_count_.load(std::memory_order_relaxed);
  while (count > 0) {
    if (map_count_.compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) return;
  }
  device()->Fail(E_INVALIDARG, "ID3D12Resource::Unmap: the buffer", QuotedName(), " is not mapped");
}

D3D12_RESOURCE_DESC1 Resource::GetDesc1() { return ToDesc1(desc_); }

D3D12_GPU_VIRTUAL_ADDRESS Resource::GetGPUVirtualAddress() { return VirtualAddress(*state_); }

HRESULT Resource::WriteToSubresource(UINT, const D3D12_BOX*, const void*, UINT, UINT) {
  return device()->Fail(E_INVALIDARG, "ID3D12Resource::WriteToSubresource: buffers are written through Map");
}

HRESULT Resource::ReadFromSubresource(void*, UINT, UINT, UINT, const D3D12_BOX*) {
  return device()->Fail(E_INVALIDARG, "ID3D12Resource::ReadFromSubresource: buffers are read through Map");
}

HRESULT Resource::GetHeapProperties(D3D12_HEAP_PROPERTIES* properties, D3D12_HEAP_FLAGS* flags) {
  if (properties != nullptr) *properties = state_->heap;
  if (flags != nullptr) *flags = heap_flags_;
  return S_OK;
}

HRESULT Resource::GetProtectedResourceSession(REFIID, void** out) {
  if (out != nullptr) *out = nullptr;
  return DXGI_ERROR_NOT_FOUND;
}

}  // namespace anydml::d3d12
