// Residency, sizes and the smaller methods of the device.
#include "com/guard.h"
#include "d3d12/device/device.h"
#include "d3d12/implementation_of.h"
#include "d3d12/interop.h"
#include "d3d12/memory/allocation_info.h"
#include "d3d12/memory/resource_desc.h"
#include "d3d12/queue/fence.h"

namespace anydml::d3d12 {

HRESULT Device::CheckPageables(const char* method, UINT count, ID3D12Pageable* const* objects) {
  if (count == 0 || objects == nullptr)
    return Fail(E_INVALIDARG, method, ": there must be at least one object");
  for (UINT i = 0; i < count; ++i) {
    if (objects[i] == nullptr || !IsDeviceOf(this, objects[i])) {
      return Fail(E_INVALIDARG, method, ": ppObjects[", i, "] is ",
                  objects[i] == nullptr ? "null" : "not of this device");
    }
  }
  return S_OK;
}

// Host memory is always resident, so these only check their arguments.
HRESULT Device::MakeResident(UINT count, ID3D12Pageable* const* objects) {
  return Guard([&] {
    if (removed()) return FailRemoved("MakeResident");
    return CheckPageables("MakeResident", count, objects);
  });
}

HRESULT Device::Evict(UINT count, ID3D12Pageable* const* objects) {
  return Guard([&] {
    if (removed()) return FailRemoved("Evict");
    return CheckPageables("Evict", count, objects);
  });
}

HRESULT Device::SetResidencyPriority(UINT count, ID3D12Pageable* const* objects,
                                     const D3D12_RESIDENCY_PRIORITY* priorities) {
  return Guard([&] {
    if (removed()) return FailRemoved("SetResidencyPriority");
    if (priorities == nullptr) return Fail(E_INVALIDARG, "SetResidencyPriority: pPriorities is null");
    return CheckPageables("SetResidencyPriority", count, objects);
  });
}

HRESULT Device::EnqueueMakeResident(D3D12_RESIDENCY_FLAGS, UINT count, ID3D12Pageable* const* objects,
                                    ID3D12Fence* fence, UINT64 value) {
  return Guard([&] {
    if (removed()) return FailRemoved("EnqueueMakeResident");
    const HRESULT hr = CheckPageables("EnqueueMakeResident", count, objects);
    if (FAILED(hr)) return hr;
    const auto implementation = ImplementationOf<Fence>(fence);
    if (!implementation || implementation->device() != this) {
      return Fail(E_INVALIDARG, "EnqueueMakeResident: pFenceToSignal is not a fence of this device");
    }
    return implementation->Signal(value);
  });
}

HRESULT Device::SetEventOnMultipleFenceCompletion(ID3D12Fence* const* fences, const UINT64* values,
                                                  UINT count, D3D12_MULTIPLE_FENCE_WAIT_FLAGS flags,
                                                  HANDLE event) {
  return Guard([&] {
    constexpr const char* kMethod = "SetEventOnMultipleFenceCompletion";
    if (count == 0 || fences == nullptr || values == nullptr) {
      return Fail(E_INVALIDARG, kMethod, ": there must be at least one fence, and neither array may be null");
    }
    if ((flags & ~D3D12_MULTIPLE_FENCE_WAIT_FLAG_ANY) != 0) {
      return FailWith(E_INVALIDARG, D3D12_MESSAGE_ID_SETEVENTONMULTIPLEFENCECOMPLETION_INVALIDFLAGS,
                      StrCat(kMethod, ": Flags is ", flags, "; it must be ALL (0) or ANY (1)"));
    }
    return NotifyOnFences(this, {fences, count}, values, flags, event);
  });
}

D3D12_RESOURCE_ALLOCATION_INFO Device::GetResourceAllocationInfo(UINT, UINT count,
                                                                 const D3D12_RESOURCE_DESC* descs) {
  return AllocationInfo(count, descs, nullptr);
}

D3D12_RESOURCE_ALLOCATION_INFO Device::GetResourceAllocationInfo1(UINT, UINT count,
                                                                  const D3D12_RESOURCE_DESC* descs,
                                                                  D3D12_RESOURCE_ALLOCATION_INFO1* infos) {
  return AllocationInfo(count, descs, infos);
}

D3D12_RESOURCE_ALLOCATION_INFO Device::GetResourceAllocationInfo2(UINT, UINT count,
                                                                  const D3D12_RESOURCE_DESC1* descs,
                                                                  D3D12_RESOURCE_ALLOCATION_INFO1* infos) {
  return AllocationInfo(count, descs, infos);
}

D3D12_HEAP_PROPERTIES Device::GetCustomHeapProperties(UINT, D3D12_HEAP_TYPE type) {
  return CustomHeapProperties(type, backend_.adapter().unified_memory);
}

void Device::GetCopyableFootprints(const D3D12_RESOURCE_DESC* desc, UINT first, UINT count,
                                   UINT64 base_offset, D3D12_PLACED_SUBRESOURCE_FOOTPRINT* layouts,
                                   UINT* row_counts, UINT64* row_sizes, UINT64* total_bytes) {
  Guard([&] {
    if (CopyableFootprints(desc, first, count, base_offset, layouts, row_counts, row_sizes, total_bytes))
      return S_OK;
    return Fail(E_INVALIDARG,
                "GetCopyableFootprints: only the one subresource of a valid buffer description has one");
  });
}

void Device::GetCopyableFootprints1(const D3D12_RESOURCE_DESC1* desc, UINT first, UINT count,
                                    UINT64 base_offset, D3D12_PLACED_SUBRESOURCE_FOOTPRINT* layouts,
                                    UINT* row_counts, UINT64* row_sizes, UINT64* total_bytes) {
  const D3D12_RESOURCE_DESC old_desc = desc == nullptr ? D3D12_RESOURCE_DESC{} : ToDesc(*desc);
  GetCopyableFootprints(desc == nullptr ? nullptr : &old_desc, first, count, base_offset, layouts, row_counts,
                        row_sizes, total_bytes);
}

void Device::GetResourceTiling(ID3D12Resource*, UINT* tiles, D3D12_PACKED_MIP_INFO* packed,
                               D3D12_TILE_SHAPE* shape, UINT* tiling_count, UINT, D3D12_SUBRESOURCE_TILING*) {
  if (tiles != nullptr) *tiles = 0;
  if (packed != nullptr) *packed = {};
  if (shape != nullptr) *shape = {};
  if (tiling_count != nullptr) *tiling_count = 0;
  Unsupported("GetResourceTiling");
}

HRESULT Device::EnumerateMetaCommands(UINT* count, D3D12_META_COMMAND_DESC*) {
  if (count == nullptr) return E_INVALIDARG;
  *count = 0;
  return S_OK;
}

void Device::GetRaytracingAccelerationStructurePrebuildInfo(
    const D3D12_BUILD_RAYTRACING_ACCELERATION_STRUCTURE_INPUTS*,
    D3D12_RAYTRACING_ACCELERATION_STRUCTURE_PREBUILD_INFO* info) {
  if (info != nullptr) *info = {};
  Unsupported("GetRaytracingAccelerationStructurePrebuildInfo");
}

D3D12_DRIVER_MATCHING_IDENTIFIER_STATUS Device::CheckDriverMatchingIdentifier(
    D3D12_SERIALIZED_DATA_TYPE, const D3D12_SERIALIZED_DATA_DRIVER_MATCHING_IDENTIFIER*) {
  return D3D12_DRIVER_MATCHING_IDENTIFIER_UNSUPPORTED_TYPE;
}

// Nothing is compiled or measured in the background, so every mode is already in force and every action
// complete.
HRESULT Device::SetBackgroundProcessingMode(D3D12_BACKGROUND_PROCESSING_MODE mode,
                                            D3D12_MEASUREMENTS_ACTION action, HANDLE event, BOOL* further) {
  if (further != nullptr) *further = FALSE;
  return Guard([&] {
    constexpr const char* kMethod = "SetBackgroundProcessingMode";
    if (removed()) return FailRemoved(kMethod);
    if (mode > D3D12_BACKGROUND_PROCESSING_MODE_DISABLE_PROFILING_BY_SYSTEM) {
      return Fail(E_INVALIDARG, kMethod, ": Mode is ", static_cast<uint32_t>(mode),
                  "; it must be ALLOWED (0) to DISABLE_PROFILING_BY_SYSTEM (3)");
    }
    if (action > D3D12_MEASUREMENTS_ACTION_DISCARD_PREVIOUS) {
      return Fail(E_INVALIDARG, kMethod, ": MeasurementsAction is ", static_cast<uint32_t>(action),
                  "; it must be KEEP_ALL (0) to DISCARD_PREVIOUS (3)");
    }
    return event == nullptr ? S_OK : SignalEvent(this, kMethod, event);
  });
}

}  // namespace anydml::d3d12
