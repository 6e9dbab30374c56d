#include "d3d12/interop.h"

#include "d3d12/device/device.h"
#include "d3d12/implementation_of.h"
#include "d3d12/lists/command_list.h"
#include "d3d12/memory/resource.h"
#include "d3d12/queue/command_queue.h"

namespace anydml::d3d12 {
namespace {

constexpr D3D12_DESCRIPTOR_HEAP_TYPE kViews = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
constexpr size_t kOnStack = 16;

// Runs `body` with temporary views; dispatches have few descriptors, so it rarely allocates.
template <typename Body>
bool WithViews(size_t count, Body&& body) {
  if (count <= kOnStack) {
    View views[kOnStack];
    return body(std::span<View>(views, count));
  }
  std::vector<View> views(count);
  return body(std::span<View>(views));
}

}  // namespace

Device* DeviceFrom(IUnknown* object) { return ImplementationOf<Device>(object).get(); }

std::shared_ptr<ResourceState> ResourceFrom(ID3D12Resource* resource) {
  const auto implementation = ImplementationOf<Resource>(resource);
  return implementation ? implementation->state() : nullptr;
}

ID3D12Device* PublicDevice(Device* device) { return device; }

Backend& BackendOf(Device* device) { return device->backend(); }

bool DebugLayerEnabled(Device* device) { return device->debug(); }

bool IsDeviceOf(Device* device, ID3D12DeviceChild* child) {
  void* found = nullptr;
  if (child == nullptr || FAILED(child->GetDevice(Device::kImplementation, &found))) return false;
  return ComPtr<Device>::Adopt(static_cast<Device*>(found)).get() == device;
}

void PostMessage(Device* device, D3D12_MESSAGE_SEVERITY severity, D3D12_MESSAGE_ID id,
                 const std::string& text) {
  device->PostText(severity, id, text);
}

HRESULT RemovedReason(Device* device) { return device->removed_reason(); }

const char* WhyRemoved(Device* device) { return device->WhyRemoved(); }

bool WriteDescriptors(Device* device, D3D12_CPU_DESCRIPTOR_HANDLE first,
                      std::span<const Descriptor> descriptors) {
  return WithViews(descriptors.size(), [&](std::span<View> views) {
    for (size_t i = 0; i < views.size(); ++i) {
      views[i] = {descriptors[i], DXGI_FORMAT_R32_TYPELESS, ViewKind::kUnorderedAccess};
    }
    return device->descriptors().Write(first, kViews, views);
  });
}

bool ReadDescriptors(Device* device, D3D12_GPU_DESCRIPTOR_HANDLE first, std::span<Descriptor> descriptors) {
  return WithViews(descriptors.size(), [&](std::span<View> views) {
    if (!device->descriptors().Read(first, kViews, views)) return false;
    for (size_t i = 0; i < views.size(); ++i) descriptors[i] = std::move(views[i].buffer);
    return true;
  });
}

bool DescriptorRangeValid(Device* device, D3D12_CPU_DESCRIPTOR_HANDLE cpu, D3D12_GPU_DESCRIPTOR_HANDLE gpu,
                          uint32_t count) {
  return device->descriptors().Valid(cpu, count, kViews) && device->descriptors().Valid(gpu, count, kViews);
}

HRESULT CreateBufferFromMemory(Device* device, void* memory, uint64_t bytes, std::function<void()> release,
                               ID3D12Resource** out) {
  if (device->removed()) return device->FailRemoved("AnyDmlCreateBufferFromMemory");
  return Resource::CreateOver(device, memory, bytes, std::move(release), __uuidof(ID3D12Resource),
                              reinterpret_cast<void**>(out));
}

void* NativeStream(ID3D12CommandQueue* queue) {
  const auto implementation = ImplementationOf<CommandQueue>(queue);
  return implementation ? implementation->native_stream() : nullptr;
}

Status RecordCommand(ID3D12CommandList* list, std::shared_ptr<const Command> command,
                     D3D12_GPU_DESCRIPTOR_HANDLE gpu_descriptors) {
  const auto implementation = ImplementationOf<CommandList>(list);
  if (!implementation)
    return InvalidArgument("the command list is ", list == nullptr ? "null" : "not one of ours");
  return implementation->Record(std::move(command), gpu_descriptors);
}

}  // namespace anydml::d3d12
