// The kernel of a graph: kernels that run one after the other, and the places of their tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/device_traits.h"
#include "kernel/kernel.h"
#include "kernel/scratch_layout.h"
#include "kernel/work_estimate.h"

namespace anydml {

class GraphKernel final : public Kernel, public WorkEstimate {
 public:
  // The place of a part's tensor.
  struct Place {
    // Only during initialisation: kPacked, a constant; kPrepared, the result of a preparation.
    enum class In { kNowhere, kInput, kOutput, kTemporary, kPersistent, kPacked, kPrepared };
    In in = In::kNowhere;
    uint32_t index = 0;   // of the graph's input or output, or of the packed value
    uint64_t offset = 0;  // there
    uint64_t bytes = 0;
  };
  struct Part {
    std::string name;  // for error messages
    std::unique_ptr<const Kernel> kernel;
    std::vector<Place> inputs;
    std::vector<Place> outputs;
    Place scratch;
    Place persistent;
    uint32_t first_note = 0;
  };
  // A value that preparations make and that all its readers pack.
  struct Prepared {
    std::vector<Part> parts;  // the parts that make it
    uint64_t bytes = 0;
  };
  // A graph input bound to the bytes of this output: it is copied before the step that first writes there,
  // and read from the copy afterwards.
  struct CopiedInput {
    uint32_t input = 0;
    uint32_t output = 0;
    uint32_t step = 0;
    std::unique_ptr<const Kernel> kernel;
    uint64_t offset = 0;  // in the temporary memory
    uint64_t bytes = 0;
  };
  struct Layout {
    std::vector<Part> parts;
    std::vector<CopiedInput> copied_inputs;  // in the order of steps
    std::vector<Part> preparations;          // their results stay in the persistent memory
    uint64_t temporary_bytes = 0;
    uint64_t persistent_bytes = 0;
    std::vector<bool> packed_inputs;  // of the graph
    std::vector<std::vector<std::byte>> constants;
    std::vector<uint64_t> constant_offsets;                // in the persistent memory
    std::vector<std::vector<std::byte>> packed_constants;  // on the host: constants that all their readers
                                                           // pack
    std::vector<Prepared> prepared;
    std::string made_of;
    uint64_t work_bytes = WorkEstimate::kUnknown;
    const DeviceTraits* device = &kHostDevice;
    bool guarded = false;  // on the host: run parts between inaccessible pages
  };
  explicit GraphKernel(Layout layout);

  Status Run(const KernelArguments& arguments) const override;
  uint64_t temporary_bytes() const override { return layout_.temporary_bytes; }
  uint64_t persistent_bytes() const override { return layout_.persistent_bytes; }
  uint64_t initialization_temporary_bytes() const override;
  std::span<const PersistentData> persistent_data() const override { return persistent_data_; }
  Status Initialize(const KernelArguments& arguments) const override;
  bool packs_input(uint32_t input) const override { return layout_.packed_inputs[input]; }
  uint32_t note_count() const override { return note_count_; }
  std::string Describe(uint32_t number, const DataErrorNote& note) const override;
  std::string made_of() const override { return layout_.made_of; }
  uint64_t work_bytes() const override { return layout_.work_bytes; }

 private:
  Status RunPart(const Part& part, KernelArguments& own, Buffer* operands,
                 const KernelArguments& arguments) const;
  Status CopyInputs(uint32_t step, size_t* next, Buffer* inputs, KernelArguments* arguments) const;
  Buffer ResolveKnown(const Place& place, const KernelArguments& arguments) const;
  Status Prepare(const Part& part, const Buffer& output, const Buffer& temporary,
                 const KernelArguments& arguments) const;
  uint64_t PreparedBytes(const Part& part) const;
  Status InitializePart(const Part& part, const KernelArguments& arguments) const;

  Layout layout_;
  std::vector<PersistentData> persistent_data_;
  size_t most_operands_ = 0;  // of a part
  uint32_t note_count_ = 0;
};

}  // namespace anydml
