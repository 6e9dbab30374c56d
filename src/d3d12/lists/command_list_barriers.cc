// Barriers and queries.
#include "d3d12/implementation_of.h"
#include "d3d12/lists/command_list.h"
#include "d3d12/lists/command_list_record.h"
#include "d3d12/lists/commands.h"
#include "d3d12/lists/state_tracking.h"
#include "d3d12/memory/query_heap.h"
#include "d3d12/memory/resource_desc.h"

namespace anydml::d3d12 {

// A queue runs its commands in order, each completely visible to the next, so barriers need no execution.
// They are checked, and the debug layer tracks them.
void CommandList::ResourceBarrier(UINT count, const D3D12_RESOURCE_BARRIER* barriers) {
  RecordIn("ResourceBarrier", [&]() -> Status {
    if (count != 0 && barriers == nullptr) return InvalidArgument("pBarriers is null");
    for (UINT i = 0; i < count; ++i) {
      const Status status = CheckBarrier(barriers[i]);
      if (!status.ok()) return InvalidArgument("pBarriers[", i, "]: ", status.message());
    }
    return {};
  });
}

Status CommandList::CheckBarrier(const D3D12_RESOURCE_BARRIER& barrier) {
  ComPtr<Resource> resource;
  switch (barrier.Type) {
    case D3D12_RESOURCE_BARRIER_TYPE_UAV:  // null: all accesses
      if (barrier.UAV.pResource == nullptr) return {};
      return FindBuffer("UAV.pResource", barrier.UAV.pResource, &resource);
    case D3D12_RESOURCE_BARRIER_TYPE_ALIASING:  // null: any placed resource
      if (barrier.Aliasing.pResourceBefore != nullptr) {
        ANYDML_RETURN_IF_ERROR(
            FindBuffer("Aliasing.pResourceBefore", barrier.Aliasing.pResourceBefore, &resource));
      }
      if (barrier.Aliasing.pResourceAfter != nullptr) {
        ANYDML_RETURN_IF_ERROR(
            FindBuffer("Aliasing.pResourceAfter", barrier.Aliasing.pResourceAfter, &resource));
      }
      return {};
    case D3D12_RESOURCE_BARRIER_TYPE_TRANSITION:
      break;
    default:
      return InvalidArgument("Type is ", barrier.Type, "; it must be TRANSITION, ALIASING or UAV");
  }
  const D3D12_RESOURCE_TRANSITION_BARRIER& transition = barrier.Transition;
  ANYDML_RETURN_IF_ERROR(FindBuffer("Transition.pResource", transition.pResource, &resource));
  if (transition.Subresource != 0 && transition.Subresource != D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES) {
    return InvalidArgument("Subresource is ", transition.Subresource, "; a buffer has only 0");
  }
  ANYDML_RETURN_IF_ERROR(CheckState(transition.StateBefore));
  ANYDML_RETURN_IF_ERROR(CheckState(transition.StateAfter));
  if (transition.StateBefore == transition.StateAfter) {
    return InvalidArgument("StateBefore and StateAfter are both ", transition.StateBefore);
  }
  if ((barrier.Flags & ~(D3D12_RESOURCE_BARRIER_FLAG_BEGIN_ONLY | D3D12_RESOURCE_BARRIER_FLAG_END_ONLY)) !=
      0) {
    return InvalidArgument("Flags is ", barrier.Flags, "; it must be NONE, BEGIN_ONLY or END_ONLY");
  }
  // The first half of a split barrier has no visible effect.
  if (device()->debug() && (barrier.Flags & D3D12_RESOURCE_BARRIER_FLAG_BEGIN_ONLY) == 0) {
    Append<TransitionCommand>(device(), resource->state(), transition.StateBefore, transition.StateAfter);
  }
  return {};
}

void CommandList::DiscardResource(ID3D12Resource* object, const D3D12_DISCARD_REGION* region) {
  RecordIn("DiscardResource", [&]() -> Status {
    ComPtr<Resource> resource;
    return FindBuffer("pResource", object, &resource);  // keeping the contents is one way to discard them
  });
}

Status CommandList::CheckQuery(ID3D12QueryHeap* object, D3D12_QUERY_TYPE type, uint64_t first, uint64_t count,
                               std::shared_ptr<ResourceState>* queries) const {
  const auto heap = ImplementationOf<QueryHeap>(object);
  if (!heap || heap->device() != device()) {
    return InvalidArgument("pQueryHeap is ", object == nullptr ? "null" : "not a query heap of this device");
  }
  if (type != D3D12_QUERY_TYPE_TIMESTAMP)
    return InvalidArgument("Type is ", type, "; it must be TIMESTAMP (2)");
  if (first + count > heap->count()) {
    return InvalidArgument("queries [", first, ", ", first + count, ") are not in the heap's ",
                           heap->count());
  }
  *queries = heap->state();
  return {};
}

void CommandList::EndQuery(ID3D12QueryHeap* heap, D3D12_QUERY_TYPE type, UINT index) {
  RecordIn("EndQuery", [&]() -> Status {
    std::shared_ptr<ResourceState> queries;
    ANYDML_RETURN_IF_ERROR(CheckQuery(heap, type, index, 1, &queries));
    Append<TimestampCommand>(std::move(queries), index);
    return {};
  });
}

void CommandList::ResolveQueryData(ID3D12QueryHeap* heap, D3D12_QUERY_TYPE type, UINT first, UINT count,
                                   ID3D12Resource* target, UINT64 offset) {
  RecordIn("ResolveQueryData", [&]() -> Status {
    std::shared_ptr<ResourceState> queries;
    ANYDML_RETURN_IF_ERROR(CheckQuery(heap, type, first, count, &queries));
    ComPtr<Resource> buffer;
    ANYDML_RETURN_IF_ERROR(FindBuffer("pDestinationBuffer", target, &buffer));
    const uint64_t bytes = uint64_t{count} * sizeof(uint64_t);
    const uint64_t size = buffer->desc().Width;
    if (offset % sizeof(uint64_t) != 0 || offset > size || bytes > size - offset) {
      return InvalidArgument("AlignedDestinationBufferOffset is ", offset,
                             "; it must be a multiple of 8 with room for ", bytes, " bytes in the buffer's ",
                             size);
    }
    AppendUse(buffer->state(), D3D12_RESOURCE_STATE_COPY_DEST, "ResolveQueryData");
    if (bytes != 0)
      Append<CopyCommand>(buffer->state(), offset, std::move(queries), first * sizeof(uint64_t), bytes);
    return {};
  });
}

}  // namespace anydml::d3d12
