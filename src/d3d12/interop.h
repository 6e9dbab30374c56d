// The internal functions of Direct3D 12 that DirectML uses: for the memory behind a resource,
// descriptors, its own commands in a command list, and a place for error messages.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <d3d12.h>

#include "backend/backend.h"
#include "base/status.h"
#include "kernel/work_estimate.h"

namespace anydml::d3d12 {

// The part of a buffer that outlives the COM object. Commands in flight hold it, so that an application that
// destroys a buffer too early gets an error and not a stray write.
struct ResourceState {
  std::shared_ptr<Memory> memory;  // the heap's; null once the buffer is destroyed and idle
  std::byte* data = nullptr;       // the first byte, as the device sees it
  uint64_t offset = 0;             // of this buffer within the memory
  uint64_t size = 0;               // Desc.Width
  uint64_t present = 0;            // how much of `size` exists: the application's memory may end up to 3
                                   // bytes before it
  D3D12_HEAP_PROPERTIES heap{};
  std::atomic<bool> destroyed{false};     // the COM object is gone
  std::atomic<uint32_t> in_flight{0};     // submissions that use it and have not completed
  std::atomic<uint32_t> state{0};         // D3D12_RESOURCE_STATES, tracked while the debug layer is on
  std::atomic<bool> memory_freed{false};  // `memory` was released

  // Never changes, even after the memory is released, because descriptors and recorded lists may still name
  // the buffer. They are executed only between BeginUse and EndUse (resource_state.h).
  std::byte* device_data() const { return data; }
};

// One slot of a descriptor heap.
struct Descriptor {
  std::shared_ptr<ResourceState> resource;  // null: nothing bound
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A command in a command list. Immutable once recorded: one list may be in flight several times.
class Command {
 public:
  virtual ~Command() = default;

  // Runs on the application's thread at submission. A command that depends on the state at that time
  // (volatile descriptors) returns the command to run instead.
  virtual Status Resolve(std::shared_ptr<const Command>* instead) const {
    (void)instead;
    return {};
  }

  // Runs on the queue's thread, or on the application's if it is very short. A failure removes the Direct3D
  // device.
  virtual Status Execute(Stream& stream) const = 0;
  // As WorkEstimate::work_bytes.
  virtual uint64_t work_bytes() const { return WorkEstimate::kUnknown; }

  // Whether every execution does the same, and all of it on the stream.
  virtual bool repeatable() const { return true; }
  // Whether executing the other command does the same. Compares the results of Resolve at two submissions.
  virtual bool IsSame(const Command& other) const { return this == &other; }

  // The buffers that it touches, for lifetime checks.
  std::span<const std::shared_ptr<ResourceState>> resources() const { return resources_; }

 protected:
  std::vector<std::shared_ptr<ResourceState>> resources_;
};

class Device;

// The implementation behind an interface, or null if the object is not ours. Adds no reference.
Device* DeviceFrom(IUnknown* object);
std::shared_ptr<ResourceState> ResourceFrom(ID3D12Resource* resource);

// Services of the device.
ID3D12Device* PublicDevice(Device* device);
Backend& BackendOf(Device* device);
bool DebugLayerEnabled(Device* device);
bool IsDeviceOf(Device* device, ID3D12DeviceChild* child);  // whether the child belongs to this device

// Posts to the device's info queue (and stderr under the debug layer).
void PostMessage(Device* device, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id,
                 const std::string& text);

HRESULT RemovedReason(Device* device);   // S_OK unless the device is removed
const char* WhyRemoved(Device* device);  // of a removed device; to be appended to "the Direct3D device"

// Descriptor slots by handle. False if a slot is outside every live heap of the device, or in a heap that is
// not CBV_SRV_UAV (or, for the GPU, not shader-visible).
bool WriteDescriptors(Device* device, D3D12_CPU_DESCRIPTOR_HANDLE first,
                      std::span<const Descriptor> descriptors);
bool ReadDescriptors(Device* device, D3D12_GPU_DESCRIPTOR_HANDLE first, std::span<Descriptor> descriptors);
bool DescriptorRangeValid(Device* device, D3D12_CPU_DESCRIPTOR_HANDLE cpu, D3D12_GPU_DESCRIPTOR_HANDLE gpu,
                          uint32_t count);

// A buffer over the application's memory (AnyDmlCreateBufferFromMemory).
HRESULT CreateBufferFromMemory(Device* device, void* memory, uint64_t bytes, std::function<void()> release,
                               ID3D12Resource** out);

// The device's own stream behind a queue; null if there is none, or if the queue is not ours.
void* NativeStream(ID3D12CommandQueue* queue);

// Appends to an open list of type DIRECT or COMPUTE; otherwise fails with the reason. `gpu_descriptors` (ptr
// 0: none) must be in a heap set by SetDescriptorHeaps.
Status RecordCommand(ID3D12CommandList* list, std::shared_ptr<const Command> command,
                     D3D12_GPU_DESCRIPTOR_HANDLE gpu_descriptors);

}  // namespace anydml::d3d12
