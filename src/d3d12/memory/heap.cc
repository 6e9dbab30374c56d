#include "d3d12/memory/heap.h"

#include "d3d12/adapters/memory_usage.h"
#include "d3d12/memory/resource_desc.h"

namespace anydml::d3d12 {

HRESULT Heap::Create(Device* device, const D3D12_HEAP_DESC* desc, REFIID iid, void** out) {
  if (desc == nullptr) return device->Fail(E_INVALIDARG, "CreateHeap: pDesc is null");
  if (desc->SizeInBytes == 0)
    return device->Fail(E_INVALIDARG, "CreateHeap: SizeInBytes is 0; it must be at least 1");
  if (desc->Alignment != 0 && desc->Alignment != kPlacementAlignment &&
      desc->Alignment != D3D12_DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT) {
    return device->Fail(E_INVALIDARG, "CreateHeap: Alignment is ", desc->Alignment, "; it must be 0, ",
                        kPlacementAlignment, " or ", D3D12_DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT);
  }
  const bool unified = device->backend().adapter().unified_memory;
  if (const Status status = CheckHeapProperties(desc->Properties, unified); !status.ok()) {
    return device->Fail("CreateHeap", status);
  }
  if (const Status status = CheckHeapFlags(desc->Flags); !status.ok())
    return device->Fail("CreateHeap", status);
  if (out == nullptr) return S_FALSE;

  D3D12_HEAP_DESC actual = *desc;
  if (actual.Alignment == 0) actual.Alignment = kPlacementAlignment;
  std::shared_ptr<Memory> memory;
  const Status status = AllocateCounted(device->backend(), KindOf(actual.Properties),
                                        AlignToPlacement(actual.SizeInBytes), &memory);
  if (!status.ok()) return device->Fail("CreateHeap", status);
  return CreateComObject<Heap>(iid, out, device, actual, std::move(memory));
}

}  // namespace anydml::d3d12
