// The methods of the device that create objects.
#include "com/guard.h"
#include "d3d12/descriptors/descriptor_heap.h"
#include "d3d12/device/device.h"
#include "d3d12/lists/command_allocator.h"
#include "d3d12/lists/command_list.h"
#include "d3d12/memory/heap.h"
#include "d3d12/memory/query_heap.h"
#include "d3d12/memory/resource.h"
#include "d3d12/memory/resource_desc.h"
#include "d3d12/queue/command_queue.h"
#include "d3d12/queue/fence.h"

namespace anydml::d3d12 {

template <typename Body>
HRESULT Device::Create(const char* method, void** out, Body&& body) {
  return Guard([&] {
    if (out != nullptr) *out = nullptr;
    if (removed()) return FailRemoved(method);
    return body();
  });
}

HRESULT Device::CheckSession(const char* method, ID3D12ProtectedResourceSession* session) {
  if (session == nullptr) return S_OK;
  return Fail(E_INVALIDARG, method,
              ": pProtectedSession must be null: this device has no protected sessions");
}

HRESULT Device::CreateCommandQueue(const D3D12_COMMAND_QUEUE_DESC* desc, REFIID iid, void** out) {
  return Create("CreateCommandQueue", out, [&] { return CommandQueue::Create(this, desc, iid, out); });
}

HRESULT Device::CreateCommandQueue1(const D3D12_COMMAND_QUEUE_DESC* desc, REFIID, REFIID iid, void** out) {
  return CreateCommandQueue(desc, iid, out);
}

HRESULT Device::CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE type, REFIID iid, void** out) {
  return Create("CreateCommandAllocator", out,
                [&] { return CommandAllocator::Create(this, type, iid, out); });
}

HRESULT Device::CreateCommandList(UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                                  ID3D12CommandAllocator* allocator, ID3D12PipelineState* pipeline,
                                  REFIID iid, void** out) {
  return Create("CreateCommandList", out,
                [&] { return CommandList::Create(this, node_mask, type, allocator, pipeline, iid, out); });
}

HRESULT Device::CreateCommandList1(UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                                   D3D12_COMMAND_LIST_FLAGS flags, REFIID iid, void** out) {
  return Create("CreateCommandList1", out,
                [&] { return CommandList::CreateClosed(this, node_mask, type, flags, iid, out); });
}

HRESULT Device::CreateDescriptorHeap(const D3D12_DESCRIPTOR_HEAP_DESC* desc, REFIID iid, void** out) {
  return Create("CreateDescriptorHeap", out, [&] { return DescriptorHeap::Create(this, desc, iid, out); });
}

HRESULT Device::CreateQueryHeap(const D3D12_QUERY_HEAP_DESC* desc, REFIID iid, void** out) {
  return Create("CreateQueryHeap", out, [&] { return QueryHeap::Create(this, desc, iid, out); });
}

HRESULT Device::CreateHeap(const D3D12_HEAP_DESC* desc, REFIID iid, void** out) {
  return Create("CreateHeap", out, [&] { return Heap::Create(this, desc, iid, out); });
}

HRESULT Device::CreateHeap1(const D3D12_HEAP_DESC* desc, ID3D12ProtectedResourceSession* session, REFIID iid,
                            void** out) {
  return Create("CreateHeap1", out, [&] {
    const HRESULT hr = CheckSession("CreateHeap1", session);
    return FAILED(hr) ? hr : Heap::Create(this, desc, iid, out);
  });
}

HRESULT Device::CreateCommittedResource(const D3D12_HEAP_PROPERTIES* properties, D3D12_HEAP_FLAGS flags,
                                        const D3D12_RESOURCE_DESC* desc, D3D12_RESOURCE_STATES state,
                                        const D3D12_CLEAR_VALUE* clear_value, REFIID iid, void** out) {
  return Create("CreateCommittedResource", out, [&] {
    return Resource::CreateCommitted(this, properties, flags, desc, state, clear_value, iid, out);
  });
}

HRESULT Device::CreateCommittedResource1(const D3D12_HEAP_PROPERTIES* properties, D3D12_HEAP_FLAGS flags,
                                         const D3D12_RESOURCE_DESC* desc, D3D12_RESOURCE_STATES state,
                                         const D3D12_CLEAR_VALUE* clear_value,
                                         ID3D12ProtectedResourceSession* session, REFIID iid, void** out) {
  return Create("CreateCommittedResource1", out, [&] {
    const HRESULT hr = CheckSession("CreateCommittedResource1", session);
    if (FAILED(hr)) return hr;
    return Resource::CreateCommitted(this, properties, flags, desc, state, clear_value, iid, out);
  });
}

HRESULT Device::CreateCommittedResource2(const D3D12_HEAP_PROPERTIES* properties, D3D12_HEAP_FLAGS flags,
                                         const D3D12_RESOURCE_DESC1* desc, D3D12_RESOURCE_STATES state,
                                         const D3D12_CLEAR_VALUE* clear_value,
                                         ID3D12ProtectedResourceSession* session, REFIID iid, void** out) {
  const D3D12_RESOURCE_DESC old_desc = desc == nullptr ? D3D12_RESOURCE_DESC{} : ToDesc(*desc);
  return CreateCommittedResource1(properties, flags, desc == nullptr ? nullptr : &old_desc, state,
                                  clear_value, session, iid, out);
}

HRESULT Device::CreatePlacedResource(ID3D12Heap* heap, UINT64 offset, const D3D12_RESOURCE_DESC* desc,
                                     D3D12_RESOURCE_STATES state, const D3D12_CLEAR_VALUE* clear_value,
                                     REFIID iid, void** out) {
  return Create("CreatePlacedResource", out, [&] {
    return Resource::CreatePlaced(this, heap, offset, desc, state, clear_value, iid, out);
  });
}

HRESULT Device::CreatePlacedResource1(ID3D12Heap* heap, UINT64 offset, const D3D12_RESOURCE_DESC1* desc,
                                      D3D12_RESOURCE_STATES state, const D3D12_CLEAR_VALUE* clear_value,
                                      REFIID iid, void** out) {
  const D3D12_RESOURCE_DESC old_desc = desc == nullptr ? D3D12_RESOURCE_DESC{} : ToDesc(*desc);
  return CreatePlacedResource(heap, offset, desc == nullptr ? nullptr : &old_desc, state, clear_value, iid,
                              out);
}

HRESULT Device::CreateFence(UINT64 initial, D3D12_FENCE_FLAGS flags, REFIID iid, void** out) {
  return Create("CreateFence", out, [&] {
    constexpr D3D12_FENCE_FLAGS kShared = D3D12_FENCE_FLAG_SHARED | D3D12_FENCE_FLAG_SHARED_CROSS_ADAPTER;
    if ((flags & ~(kShared | D3D12_FENCE_FLAG_NON_MONITORED)) != 0) {
      return Fail(E_INVALIDARG, "CreateFence: Flags is ", flags, ", which has unknown bits");
    }
    if ((flags & kShared) != 0) return Fail(E_NOTIMPL, "CreateFence: Flags asks for a shared fence");
    if (out == nullptr) return S_FALSE;
    auto state = std::make_shared<FenceState>(initial);
    Track(state);
    return CreateComObject<Fence>(iid, out, this, std::move(state), flags);
  });
}

}  // namespace anydml::d3d12
