#include "d3d12/memory/query_heap.h"

#include "d3d12/adapters/memory_usage.h"
#include "d3d12/memory/resource_desc.h"
#include "d3d12/memory/resource_state.h"

namespace anydml::d3d12 {

HRESULT QueryHeap::Create(Device* device, const D3D12_QUERY_HEAP_DESC* desc, REFIID iid, void** out) {
  if (desc == nullptr) return device->Fail(E_INVALIDARG, "CreateQueryHeap: pDesc is null");
  if (desc->Type != D3D12_QUERY_HEAP_TYPE_TIMESTAMP &&
      desc->Type != D3D12_QUERY_HEAP_TYPE_COPY_QUEUE_TIMESTAMP) {
    return device->Fail(E_NOTIMPL, "CreateQueryHeap: Type is ", desc->Type,
                        "; this compute-only device has TIMESTAMP (1) and COPY_QUEUE_TIMESTAMP (5) only");
  }
  if (desc->Count == 0)
    return device->Fail(E_INVALIDARG, "CreateQueryHeap: Count is 0; it must be at least 1");
  if (desc->NodeMask > 1) {
    return device->Fail(E_INVALIDARG, "CreateQueryHeap: NodeMask is ", desc->NodeMask, "; it must be 0 or 1");
  }
  if (out == nullptr) return S_FALSE;
  auto state = std::make_shared<ResourceState>();
  state->size = state->present = uint64_t{desc->Count} * sizeof(uint64_t);
  state->heap.Type = D3D12_HEAP_TYPE_DEFAULT;
  const Status status =
      AllocateCounted(device->backend(), MemoryKind::kDefault, AlignToPlacement(state->size), &state->memory);
  if (!status.ok()) return device->Fail("CreateQueryHeap", status);
  state->data = state->memory->device();
  return CreateComObject<QueryHeap>(iid, out, device, *desc, std::move(state));
}

QueryHeap::~QueryHeap() {
  if (!MarkDestroyed(*state_)) return;
  device()->Post(
      D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_OBJECT_DELETED_WHILE_STILL_IN_USE,
      StrCat("ID3D12QueryHeap", QuotedName(), " was released while command lists that use it are in flight"));
}

}  // namespace anydml::d3d12
