// The debug layer's tracking of resource states. Commands that track and check them are recorded only while
// the layer is on; a wrong state is a message and no failure, because states mean nothing to the backends.
#pragma once

#include <string>

#include "d3d12/interop.h"

namespace anydml::d3d12 {

class TransitionCommand final : public Command {
 public:
  TransitionCommand(Device* device, std::shared_ptr<ResourceState> resource, D3D12_RESOURCE_STATES before,
                    D3D12_RESOURCE_STATES after);
  Status Execute(Stream& stream) const override;
  bool repeatable() const override { return false; }  // it works on the host at every execution

 private:
  Device* const device_;  // the queue that executes keeps it alive
  const uint32_t before_;
  const uint32_t after_;
};

// Records that a command is about to use the buffer in the given state.
class UseCommand final : public Command {
 public:
  UseCommand(Device* device, std::shared_ptr<ResourceState> resource, D3D12_RESOURCE_STATES needed,
             const char* method);
  Status Execute(Stream& stream) const override;
  bool repeatable() const override { return false; }

 private:
  Device* const device_;
  const uint32_t needed_;
  const char* const method_;
};

// At the end of ExecuteCommandLists every buffer returns to COMMON.
void DecayState(ResourceState& resource);

}  // namespace anydml::d3d12
