// The commands that RecordDispatch appends to a command list. They hold programs, memory and the device's
// state, never COM objects, and prepare everything when they are made: execution allocates nothing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "d3d12/interop.h"
#include "dml/device_state.h"
#include "dml/layout.h"

namespace anydml::dml {

// The part of the persistent resource that the kernel fills at initialisation.
Buffer KernelPart(const Program& program, const Buffer& persistent);

// The buffer that a run reads as an input: the bound one, or the copy that initialisation made.
Buffer InputOf(const TensorSlot& input, const Buffer& bound, const Buffer& persistent);

// Prefixes a failure of the program's kernel with the names of both.
Status OfProgram(const Program& program, const Status& status);

// Runs a compiled operator on bindings that CheckTogether has accepted.
class DispatchCommand final : public d3d12::Command {
 public:
  DispatchCommand(std::shared_ptr<DeviceState> state, const Layout& layout,
                  std::span<const d3d12::Descriptor> bound);
  Status Execute(Stream& stream) const override;
  // Not repeatable while errors in data are reported, which happens for every run.
  bool repeatable() const override { return state_->data_error_sink() == nullptr; }
  bool IsSame(const d3d12::Command& other) const override;
  uint64_t work_bytes() const override;

 private:
  const std::shared_ptr<DeviceState> state_;
  const std::shared_ptr<Program> program_;
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  Buffer temporary_;
  Buffer persistent_;  // the kernel's part of the persistent resource
};

// With DESCRIPTORS_VOLATILE: reads and checks the descriptors at every submission.
class VolatileDispatchCommand final : public d3d12::Command {
 public:
  VolatileDispatchCommand(std::shared_ptr<DeviceState> state, std::shared_ptr<const Layout> layout,
                          D3D12_GPU_DESCRIPTOR_HANDLE descriptors);
  Status Resolve(std::shared_ptr<const d3d12::Command>* instead) const override;
  Status Execute(Stream& stream) const override;
  // The command that it resolves to is repeatable.
  bool repeatable() const override { return state_->data_error_sink() == nullptr; }

 private:
  Status ReadBindings(std::vector<d3d12::Descriptor>* bound) const;

  const std::shared_ptr<DeviceState> state_;
  const std::shared_ptr<const Layout> layout_;
  const D3D12_GPU_DESCRIPTOR_HANDLE descriptors_;
};

// Fills the persistent resources of an initializer's operators: kernels pack the inputs that they keep, other
// owned inputs are copied. Marks the operators as initialised.
class InitializeCommand final : public d3d12::Command {
 public:
  InitializeCommand(std::shared_ptr<DeviceState> state, std::shared_ptr<const Layout> layout,
                    std::span<const d3d12::Descriptor> bound);
  Status Execute(Stream& stream) const override;
  bool repeatable() const override { return false; }

 private:
  struct CopyStep {
    std::byte* target;
    const std::byte* source;
    uint64_t bytes;
  };
  struct ProgramStep {
    Program* program;  // kept alive by layout_
    std::vector<CopyStep> copies;
    std::vector<Buffer> inputs;   // only owned ones are set
    std::vector<Buffer> outputs;  // all null
    Buffer persistent;            // the kernel's part of the persistent resource
  };

  Status ExecuteStep(const ProgramStep& step, Stream& stream) const;

  const std::shared_ptr<DeviceState> state_;
  const std::shared_ptr<const Layout> layout_;
  Buffer temporary_;
  std::vector<ProgramStep> steps_;
};

}  // namespace anydml::dml
