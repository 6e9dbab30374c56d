#pragma once

#include <memory>

#include "d3d12/device/device_child.h"
#include "d3d12/queue/work_queue.h"

namespace anydml::d3d12 {

class CommandQueue final : public DeviceChild<ID3D12CommandQueue, ID3D12Pageable> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x08}};

  static HRESULT Create(Device* device, const D3D12_COMMAND_QUEUE_DESC* desc, REFIID iid, void** out);

  CommandQueue(Device* device, const D3D12_COMMAND_QUEUE_DESC& desc);
  ~CommandQueue() override;

  void STDMETHODCALLTYPE UpdateTileMappings(ID3D12Resource*, UINT, const D3D12_TILED_RESOURCE_COORDINATE*,
                                            const D3D12_TILE_REGION_SIZE*, ID3D12Heap*, UINT,
                                            const D3D12_TILE_RANGE_FLAGS*, const UINT*, const UINT*,
                                            D3D12_TILE_MAPPING_FLAGS) override;
  void STDMETHODCALLTYPE CopyTileMappings(ID3D12Resource*, const D3D12_TILED_RESOURCE_COORDINATE*,
                                          ID3D12Resource*, const D3D12_TILED_RESOURCE_COORDINATE*,
                                          const D3D12_TILE_REGION_SIZE*, D3D12_TILE_MAPPING_FLAGS) override;
  void STDMETHODCALLTYPE ExecuteCommandLists(UINT count, ID3D12CommandList* const* lists) override;
  void STDMETHODCALLTYPE SetMarker(UINT, const void*, UINT) override {}
  void STDMETHODCALLTYPE BeginEvent(UINT, const void*, UINT) override {}
  void STDMETHODCALLTYPE EndEvent() override {}
  HRESULT STDMETHODCALLTYPE Signal(ID3D12Fence* fence, UINT64 value) override;
  HRESULT STDMETHODCALLTYPE Wait(ID3D12Fence* fence, UINT64 value) override;
  HRESULT STDMETHODCALLTYPE GetTimestampFrequency(UINT64* frequency) override;
  HRESULT STDMETHODCALLTYPE GetClockCalibration(UINT64* gpu_timestamp, UINT64* cpu_timestamp) override;
  D3D12_COMMAND_QUEUE_DESC STDMETHODCALLTYPE GetDesc() override { return desc_; }

  void* native_stream() const { return work_->native_stream(); }

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  HRESULT PushFence(const char* method, ID3D12Fence* fence, UINT64 value, bool wait);

  const D3D12_COMMAND_QUEUE_DESC desc_;
  // Its destructor joins the thread, before the base class releases the device.
  std::unique_ptr<WorkQueue> work_;
};

}  // namespace anydml::d3d12
