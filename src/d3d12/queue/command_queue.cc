#include "d3d12/queue/command_queue.h"

#include <chrono>
#include <system_error>

#include "base/background_thread.h"
#include "com/guard.h"
#include "d3d12/implementation_of.h"
#include "d3d12/lists/command_allocator.h"
#include "d3d12/queue/fence.h"

namespace anydml::d3d12 {

HRESULT CommandQueue::Create(Device* device, const D3D12_COMMAND_QUEUE_DESC* desc, REFIID iid, void** out) {
  constexpr const char* kMethod = "CreateCommandQueue";
  if (desc == nullptr) return device->Fail(E_INVALIDARG, kMethod, ": pDesc is null");
  if (const HRESULT hr = CheckListType(device, kMethod, desc->Type); FAILED(hr)) return hr;
  if (desc->Priority != D3D12_COMMAND_QUEUE_PRIORITY_NORMAL &&
      desc->Priority != D3D12_COMMAND_QUEUE_PRIORITY_HIGH) {
    return device->Fail(E_INVALIDARG, kMethod, ": Priority is ", desc->Priority,
                        "; it must be NORMAL (0) or HIGH (", D3D12_COMMAND_QUEUE_PRIORITY_HIGH, ")");
  }
  if ((desc->Flags & ~D3D12_COMMAND_QUEUE_FLAG_DISABLE_GPU_TIMEOUT) != 0 || desc->NodeMask > 1) {
    return device->Fail(E_INVALIDARG, kMethod, ": Flags is ", desc->Flags, " and NodeMask ", desc->NodeMask,
                        "; they must be NONE or DISABLE_GPU_TIMEOUT (1), and 0 or 1");
  }
  try {
    return CreateComObject<CommandQueue>(iid, out, device, *desc);
  } catch (const std::system_error& error) {  // of a thread
    return device->Fail(E_OUTOFMEMORY, kMethod, ": ", error.what());
  }
}

CommandQueue::CommandQueue(Device* device, const D3D12_COMMAND_QUEUE_DESC& desc)
    : DeviceChild(device),
      desc_(desc),
      work_(std::make_unique<WorkQueue>(device, device->backend().CreateStream())) {}

CommandQueue::~CommandQueue() {
  if (device()->forked()) {
    work_.release();  // destroying it would wait for its thread, which exists only in the parent
  } else if (InfoQueue::InCallback()) {
    // Destroying it here might wait forever: this may be its own thread, or hold a lock that its thread
    // needs.
    WorkQueue* const work = work_.release();
    Device* const kept = device();
    kept->AddRef();
    try {
      StartBackgroundThread("anydml-end", [work, kept] {
        delete work;
        kept->Release();
      }).detach();
    } catch (...) {  // no memory or thread for that: leave both alive, idle
    }
  }
}

void CommandQueue::ExecuteCommandLists(UINT count, ID3D12CommandList* const* lists) {
  if (count == 0) return;
  if (device()->forked()) device()->FailRemoved("ID3D12CommandQueue::ExecuteCommandLists");
  if (device()->removed()) return;
  const HRESULT hr = Guard([&] {
    constexpr const char* kMethod = "ID3D12CommandQueue::ExecuteCommandLists: ";
    if (lists == nullptr) {
      device()->Remove(DXGI_ERROR_INVALID_CALL, kMethod, "ppCommandLists is null");
      return S_OK;
    }
    std::unique_ptr<Submission> submission;
    const Status status = Submission::Prepare(device(), desc_.Type, {lists, count}, &submission);
    if (!status.ok()) {
      const bool memory = status.code() == Code::kOutOfMemory;
      device()->Remove(memory ? E_OUTOFMEMORY : DXGI_ERROR_INVALID_CALL, kMethod, status.message());
      return S_OK;
    }
    work_->Push({std::move(submission), nullptr, 0, false});
    return S_OK;
  });
  if (FAILED(hr)) device()->Remove(hr, "ID3D12CommandQueue::ExecuteCommandLists: out of memory");
}

HRESULT CommandQueue::PushFence(const char* method, ID3D12Fence* object, UINT64 value, bool wait) {
  return Guard([&] {
    const auto fence = ImplementationOf<Fence>(object);
    if (!fence || fence->device() != device()) {
      return device()->Fail(E_INVALIDARG, "ID3D12CommandQueue::", method, ": pFence is ",
                            object == nullptr ? "null" : "not a fence of this device");
    }
    if (device()->removed()) return device()->FailRemoved("ID3D12CommandQueue::", method);
    work_->Push({nullptr, fence->state(), value, wait});
    return S_OK;
  });
}

HRESULT CommandQueue::Signal(ID3D12Fence* fence, UINT64 value) {
  return PushFence("Signal", fence, value, false);
}

HRESULT CommandQueue::Wait(ID3D12Fence* fence, UINT64 value) { return PushFence("Wait", fence, value, true); }

HRESULT CommandQueue::GetTimestampFrequency(UINT64* frequency) {
  if (frequency == nullptr) {
    return Guard([&] {
      return device()->Fail(E_INVALIDARG, "ID3D12CommandQueue::GetTimestampFrequency: pFrequency is null");
    });
  }
  *frequency = device()->backend().timestamp_frequency();
  return S_OK;
}

HRESULT CommandQueue::GetClockCalibration(UINT64* gpu_timestamp, UINT64* cpu_timestamp) {
  if (gpu_timestamp == nullptr || cpu_timestamp == nullptr) {
    return Guard([&] {
      return device()->Fail(E_INVALIDARG,
                            "ID3D12CommandQueue::GetClockCalibration: neither pointer may be null");
    });
  }
  // The CPU time is in nanoseconds of steady_clock, as our QueryPerformanceCounter is.
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *gpu_timestamp = device()->backend().CurrentTimestamp();
  *cpu_timestamp = static_cast<UINT64>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  return S_OK;
}

void CommandQueue::UpdateTileMappings(ID3D12Resource*, UINT, const D3D12_TILED_RESOURCE_COORDINATE*,
                                      const D3D12_TILE_REGION_SIZE*, ID3D12Heap*, UINT,
                                      const D3D12_TILE_RANGE_FLAGS*, const UINT*, const UINT*,
                                      D3D12_TILE_MAPPING_FLAGS) {
  Guard([&] {
    return device()->Fail(E_NOTIMPL,
                          "ID3D12CommandQueue::UpdateTileMappings: this device has no tiled resources");
  });
}

void CommandQueue::CopyTileMappings(ID3D12Resource*, const D3D12_TILED_RESOURCE_COORDINATE*, ID3D12Resource*,
                                    const D3D12_TILED_RESOURCE_COORDINATE*, const D3D12_TILE_REGION_SIZE*,
                                    D3D12_TILE_MAPPING_FLAGS) {
  Guard([&] {
    return device()->Fail(E_NOTIMPL,
                          "ID3D12CommandQueue::CopyTileMappings: this device has no tiled resources");
  });
}

}  // namespace anydml::d3d12
