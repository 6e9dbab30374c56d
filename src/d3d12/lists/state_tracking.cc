#include "d3d12/lists/state_tracking.h"

#include "d3d12/device/device.h"

namespace anydml::d3d12 {
namespace {

constexpr uint32_t kCommon = D3D12_RESOURCE_STATE_COMMON;
constexpr uint32_t kReadOnly = D3D12_RESOURCE_STATE_GENERIC_READ | D3D12_RESOURCE_STATE_ALL_SHADER_RESOURCE;

// Buffers on these heaps keep their initial state.
bool StateIsFixed(const ResourceState& resource) {
  return resource.heap.Type == D3D12_HEAP_TYPE_UPLOAD || resource.heap.Type == D3D12_HEAP_TYPE_READBACK;
}

}  // namespace

TransitionCommand::TransitionCommand(Device* device, std::shared_ptr<ResourceState> resource,
                                     D3D12_RESOURCE_STATES before, D3D12_RESOURCE_STATES after)
    : device_(device), before_(before), after_(after) {
  resources_ = {std::move(resource)};
}

Status TransitionCommand::Execute(Stream&) const {
  ResourceState& resource = *resources_[0];
  const uint32_t current = resource.state.load(std::memory_order_relaxed);
  // A buffer in COMMON would have been promoted by its next use.
  const bool matches = current == before_ || current == kCommon ||
                       (before_ != kCommon && (current & before_) == before_ && (current & ~kReadOnly) == 0);
  if (!matches) {
    device_->Post(
        D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_RESOURCE_BARRIER_BEFORE_AFTER_MISMATCH,
        StrCat("ResourceBarrier: StateBefore is ", before_, " but the buffer is in state ", current));
  }
  resource.state.store(after_, std::memory_order_relaxed);
  return {};
}

UseCommand::UseCommand(Device* device, std::shared_ptr<ResourceState> resource, D3D12_RESOURCE_STATES needed,
                       const char* method)
    : device_(device), needed_(needed), method_(method) {
  resources_ = {std::move(resource)};
}

Status UseCommand::Execute(Stream&) const {
  ResourceState& resource = *resources_[0];
  const uint32_t current = resource.state.load(std::memory_order_relaxed);
  if ((current & needed_) == needed_) return {};
  const bool promotes = current == kCommon || ((current | needed_) & ~kReadOnly) == 0;
  if (!StateIsFixed(resource) && promotes) {
    resource.state.store(current | needed_, std::memory_order_relaxed);
    return {};
  }
  device_->Post(D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_INVALID_SUBRESOURCE_STATE, method_,
                ": needs the buffer in state ", needed_, " but it is in state ", current);
  return {};
}

void DecayState(ResourceState& resource) {
  if (!StateIsFixed(resource)) resource.state.store(kCommon, std::memory_order_relaxed);
}

}  // namespace anydml::d3d12
