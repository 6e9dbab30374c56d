#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/process.h"
#include "base/status.h"
#include "d3d12/descriptors/descriptor_table.h"
#include "d3d12/device/debug_device.h"
#include "d3d12/device/unsupported_device.h"
#include "d3d12/memory/buffer_map.h"
#include "d3d12/messages/info_queue.h"

namespace anydml::d3d12 {

class FenceState;

class Device final : public UnsupportedDevice {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x00}};

  Device(Backend& backend, bool debug);

  // ---- Services ----

  Backend& backend() const { return backend_; }
  bool debug() const { return debug_; }
  DescriptorTable& descriptors() { return descriptors_; }
  BufferMap& buffers() { return buffers_; }
  InfoQueue& info_queue() { return info_queue_; }

  // Every failure goes through one of these: the message becomes the thread's last error and a message of the
  // info queue; the code is returned.
  HRESULT FailWith(HRESULT code, D3D12_MESSAGE_ID id, const std::string& message) noexcept;
  template <typename... Args>
  HRESULT Fail(HRESULT code, const Args&... args) noexcept {
    try {
      return FailWith(code, D3D12_MESSAGE_ID_UNKNOWN, StrCat(args...));
    } catch (...) {
      return code;  // no memory for the message
    }
  }
  HRESULT Fail(const char* method, const Status& status) noexcept;
  template <typename... Args>
  HRESULT FailRemoved(const Args&... method) noexcept {
    return Fail(DXGI_ERROR_DEVICE_REMOVED, method..., ": the device ", WhyRemoved());
  }

  // Posts a message that is not a failure of a call.
  void PostText(D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id, const std::string& text) noexcept;
  template <typename... Args>
  void Post(D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id, const Args&... args) noexcept {
    try {
      PostText(severity, id, StrCat(args...));
    } catch (...) {  // no memory for the message; destructors call this, too
    }
  }

  // Removes the device; the first reason is kept. Queues drop their work, fences end all waits.
  void RemoveWith(HRESULT reason, const std::string& text) noexcept;
  template <typename... Args>
  void Remove(HRESULT reason, const Args&... args) noexcept {
    try {
      RemoveWith(reason, StrCat(args...));
    } catch (...) {
      RemoveWith(reason, {});  // no memory for the message
    }
  }
  bool removed() const { return removed_reason() != S_OK; }
  HRESULT removed_reason() const {
    return forked() ? DXGI_ERROR_DEVICE_REMOVED : removed_reason_.load(std::memory_order_acquire);
  }
  const char* WhyRemoved() const noexcept;  // to be appended to "the device"

  // Whether this process was forked from the device's process. The device's threads do not exist here, and
  // their locks are never released, so for the child the device counts as removed.
  bool forked() const { return process_ != CurrentProcess(); }

  // Registers a fence, because removal must reach every fence.
  void Track(const std::shared_ptr<FenceState>& fence);

  // ---- ID3D12Device ----

  UINT STDMETHODCALLTYPE GetNodeCount() override { return 1; }
  HRESULT STDMETHODCALLTYPE CreateCommandQueue(const D3D12_COMMAND_QUEUE_DESC* desc, REFIID iid,
                                               void** out) override;
  HRESULT STDMETHODCALLTYPE CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE type, REFIID iid,
                                                   void** out) override;
  HRESULT STDMETHODCALLTYPE CreateCommandList(UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                                              ID3D12CommandAllocator* allocator,
                                              ID3D12PipelineState* pipeline, REFIID iid, void** out) override;
  HRESULT STDMETHODCALLTYPE CheckFeatureSupport(D3D12_FEATURE feature, void* data, UINT size) override;
  HRESULT STDMETHODCALLTYPE CreateDescriptorHeap(const D3D12_DESCRIPTOR_HEAP_DESC* desc, REFIID iid,
                                                 void** out) override;
  UINT STDMETHODCALLTYPE GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE) override {
    return kDescriptorIncrement;
  }
  void STDMETHODCALLTYPE CreateConstantBufferView(const D3D12_CONSTANT_BUFFER_VIEW_DESC* desc,
                                                  D3D12_CPU_DESCRIPTOR_HANDLE target) override;
  void STDMETHODCALLTYPE CreateShaderResourceView(ID3D12Resource* resource,
                                                  const D3D12_SHADER_RESOURCE_VIEW_DESC* desc,
                                                  D3D12_CPU_DESCRIPTOR_HANDLE target) override;
  void STDMETHODCALLTYPE CreateUnorderedAccessView(ID3D12Resource* resource, ID3D12Resource* counter,
                                                   const D3D12_UNORDERED_ACCESS_VIEW_DESC* desc,
                                                   D3D12_CPU_DESCRIPTOR_HANDLE target) override;
  void STDMETHODCALLTYPE CreateSampler(const D3D12_SAMPLER_DESC* desc,
                                       D3D12_CPU_DESCRIPTOR_HANDLE target) override;
  void STDMETHODCALLTYPE CopyDescriptors(UINT target_count, const D3D12_CPU_DESCRIPTOR_HANDLE* targets,
                                         const UINT* target_sizes, UINT source_count,
                                         const D3D12_CPU_DESCRIPTOR_HANDLE* sources, const UINT* source_sizes,
                                         D3D12_DESCRIPTOR_HEAP_TYPE type) override;
  void STDMETHODCALLTYPE CopyDescriptorsSimple(UINT count, D3D12_CPU_DESCRIPTOR_HANDLE target,
                                               D3D12_CPU_DESCRIPTOR_HANDLE source,
                                               D3D12_DESCRIPTOR_HEAP_TYPE type) override;
  D3D12_RESOURCE_ALLOCATION_INFO STDMETHODCALLTYPE
  GetResourceAllocationInfo(UINT visible_mask, UINT count, const D3D12_RESOURCE_DESC* descs) override;
  D3D12_HEAP_PROPERTIES STDMETHODCALLTYPE GetCustomHeapProperties(UINT node_mask,
                                                                  D3D12_HEAP_TYPE type) override;
  HRESULT STDMETHODCALLTYPE CreateCommittedResource(const D3D12_HEAP_PROPERTIES* properties,
                                                    D3D12_HEAP_FLAGS flags, const D3D12_RESOURCE_DESC* desc,
                                                    D3D12_RESOURCE_STATES state,
                                                    const D3D12_CLEAR_VALUE* clear_value, REFIID iid,
                                                    void** out) override;
  HRESULT STDMETHODCALLTYPE CreateHeap(const D3D12_HEAP_DESC* desc, REFIID iid, void** out) override;
  HRESULT STDMETHODCALLTYPE CreatePlacedResource(ID3D12Heap* heap, UINT64 offset,
                                                 const D3D12_RESOURCE_DESC* desc, D3D12_RESOURCE_STATES state,
                                                 const D3D12_CLEAR_VALUE* clear_value, REFIID iid,
                                                 void** out) override;
  HRESULT STDMETHODCALLTYPE MakeResident(UINT count, ID3D12Pageable* const* objects) override;
  HRESULT STDMETHODCALLTYPE Evict(UINT count, ID3D12Pageable* const* objects) override;
  HRESULT STDMETHODCALLTYPE CreateFence(UINT64 initial, D3D12_FENCE_FLAGS flags, REFIID iid,
                                        void** out) override;
  HRESULT STDMETHODCALLTYPE GetDeviceRemovedReason() override { return removed_reason(); }
  void STDMETHODCALLTYPE GetCopyableFootprints(const D3D12_RESOURCE_DESC* desc, UINT first, UINT count,
                                               UINT64 base_offset,
                                               D3D12_PLACED_SUBRESOURCE_FOOTPRINT* layouts, UINT* row_counts,
                                               UINT64* row_sizes, UINT64* total_bytes) override;
  HRESULT STDMETHODCALLTYPE CreateQueryHeap(const D3D12_QUERY_HEAP_DESC* desc, REFIID iid,
                                            void** out) override;
  HRESULT STDMETHODCALLTYPE SetStablePowerState(BOOL) override { return S_OK; }
  void STDMETHODCALLTYPE GetResourceTiling(ID3D12Resource*, UINT* tiles, D3D12_PACKED_MIP_INFO* packed,
                                           D3D12_TILE_SHAPE* shape, UINT* tiling_count, UINT,
                                           D3D12_SUBRESOURCE_TILING*) override;
  LUID STDMETHODCALLTYPE GetAdapterLuid() override;

  // ---- ID3D12Device1 to ID3D12Device9 ----

  HRESULT STDMETHODCALLTYPE SetEventOnMultipleFenceCompletion(ID3D12Fence* const* fences,
                                                              const UINT64* values, UINT count,
                                                              D3D12_MULTIPLE_FENCE_WAIT_FLAGS flags,
                                                              HANDLE event) override;
  HRESULT STDMETHODCALLTYPE SetResidencyPriority(UINT count, ID3D12Pageable* const* objects,
                                                 const D3D12_RESIDENCY_PRIORITY* priorities) override;
  HRESULT STDMETHODCALLTYPE EnqueueMakeResident(D3D12_RESIDENCY_FLAGS flags, UINT count,
                                                ID3D12Pageable* const* objects, ID3D12Fence* fence,
                                                UINT64 value) override;
  HRESULT STDMETHODCALLTYPE CreateCommandList1(UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                                               D3D12_COMMAND_LIST_FLAGS flags, REFIID iid,
                                               void** out) override;
  HRESULT STDMETHODCALLTYPE CreateCommittedResource1(const D3D12_HEAP_PROPERTIES* properties,
                                                     D3D12_HEAP_FLAGS flags, const D3D12_RESOURCE_DESC* desc,
                                                     D3D12_RESOURCE_STATES state,
                                                     const D3D12_CLEAR_VALUE* clear_value,
                                                     ID3D12ProtectedResourceSession* session, REFIID iid,
                                                     void** out) override;
  HRESULT STDMETHODCALLTYPE CreateHeap1(const D3D12_HEAP_DESC* desc, ID3D12ProtectedResourceSession* session,
                                        REFIID iid, void** out) override;
  D3D12_RESOURCE_ALLOCATION_INFO STDMETHODCALLTYPE
  GetResourceAllocationInfo1(UINT visible_mask, UINT count, const D3D12_RESOURCE_DESC* descs,
                             D3D12_RESOURCE_ALLOCATION_INFO1* infos) override;
  void STDMETHODCALLTYPE RemoveDevice() override;
  HRESULT STDMETHODCALLTYPE EnumerateMetaCommands(UINT* count, D3D12_META_COMMAND_DESC* descs) override;
  void STDMETHODCALLTYPE GetRaytracingAccelerationStructurePrebuildInfo(
      const D3D12_BUILD_RAYTRACING_ACCELERATION_STRUCTURE_INPUTS*,
      D3D12_RAYTRACING_ACCELERATION_STRUCTURE_PREBUILD_INFO* info) override;
  D3D12_DRIVER_MATCHING_IDENTIFIER_STATUS STDMETHODCALLTYPE CheckDriverMatchingIdentifier(
      D3D12_SERIALIZED_DATA_TYPE, const D3D12_SERIALIZED_DATA_DRIVER_MATCHING_IDENTIFIER*) override;
  HRESULT STDMETHODCALLTYPE SetBackgroundProcessingMode(D3D12_BACKGROUND_PROCESSING_MODE mode,
                                                        D3D12_MEASUREMENTS_ACTION action, HANDLE event,
                                                        BOOL* further) override;
  D3D12_RESOURCE_ALLOCATION_INFO STDMETHODCALLTYPE
  GetResourceAllocationInfo2(UINT visible_mask, UINT count, const D3D12_RESOURCE_DESC1* descs,
                             D3D12_RESOURCE_ALLOCATION_INFO1* infos) override;
  HRESULT STDMETHODCALLTYPE CreateCommittedResource2(const D3D12_HEAP_PROPERTIES* properties,
                                                     D3D12_HEAP_FLAGS flags, const D3D12_RESOURCE_DESC1* desc,
                                                     D3D12_RESOURCE_STATES state,
                                                     const D3D12_CLEAR_VALUE* clear_value,
                                                     ID3D12ProtectedResourceSession* session, REFIID iid,
                                                     void** out) override;
  HRESULT STDMETHODCALLTYPE CreatePlacedResource1(ID3D12Heap* heap, UINT64 offset,
                                                  const D3D12_RESOURCE_DESC1* desc,
                                                  D3D12_RESOURCE_STATES state,
                                                  const D3D12_CLEAR_VALUE* clear_value, REFIID iid,
                                                  void** out) override;
  void STDMETHODCALLTYPE GetCopyableFootprints1(const D3D12_RESOURCE_DESC1* desc, UINT first, UINT count,
                                                UINT64 base_offset,
                                                D3D12_PLACED_SUBRESOURCE_FOOTPRINT* layouts, UINT* row_counts,
                                                UINT64* row_sizes, UINT64* total_bytes) override;
  HRESULT STDMETHODCALLTYPE CreateCommandQueue1(const D3D12_COMMAND_QUEUE_DESC* desc, REFIID creator,
                                                REFIID iid, void** out) override;

 protected:
  ~Device() override;
  void* QueryOther(REFIID iid) override;
  void Unsupported(const char* method) override;

 private:
  // The frame of every method that creates an object: creates nothing on a removed device and lets no
  // exception escape.
  template <typename Body>
  HRESULT Create(const char* method, void** out, Body&& body);
  template <typename Body>
  void WriteView(const char* method, D3D12_CPU_DESCRIPTOR_HANDLE target, Body&& make);
  HRESULT CheckPageables(const char* method, UINT count, ID3D12Pageable* const* objects);
  HRESULT CheckSession(const char* method, ID3D12ProtectedResourceSession* session);

  Backend& backend_;
  const bool debug_;
  const uint32_t process_ = CurrentProcess();
  InfoQueue info_queue_;
  DebugDevice debug_device_;
  DebugDevice1 debug_device1_;
  DescriptorTable descriptors_;
  BufferMap buffers_;
  std::atomic<HRESULT> removed_reason_{S_OK};
  std::mutex fences_mutex_;
  std::vector<std::weak_ptr<FenceState>> fences_;
};

}  // namespace anydml::d3d12
