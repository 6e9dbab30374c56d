// The fallback: a CPU kernel that stands in for one that a device does not have.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/kernel.h"

namespace anydml {

// Prefix of the name of the implementation that runs. Alone, as a forced implementation, it selects the
// fastest one.
inline constexpr std::string_view kHostPrefix = "host:";

// Slow: the stream is waited for, operands are copied to the host and back, and one thread computes. Outputs
// are copied back whole: what another queue writes between their elements meanwhile is lost. Scratch is host
// memory; packed constants are in persistent memory of the device.
class HostKernel final : public Kernel {
 public:
  explicit HostKernel(std::unique_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {}

  Status Run(const KernelArguments& arguments) const override { return RunOnHost(arguments, false); }
  Status Initialize(const KernelArguments& arguments) const override { return RunOnHost(arguments, true); }
  uint64_t persistent_bytes() const override { return kernel_->persistent_bytes(); }
  std::span<const PersistentData> persistent_data() const override { return kernel_->persistent_data(); }
  bool packs_input(uint32_t input) const override { return kernel_->packs_input(input); }
  std::string made_of() const override { return kernel_->made_of(); }

 private:
  Status RunOnHost(const KernelArguments& arguments, bool initialize) const {
    if (arguments.host != nullptr) return arguments.host->RunOnHost(*kernel_, arguments, initialize);
    return Status(
        Code::kUnsupported,
        "the device has no implementation of this operator, and one on the host cannot be replayed with a "
        "recorded command list");
  }

  const std::unique_ptr<const Kernel> kernel_;
};

}  // namespace anydml
