// Graphs with buffers of their own and a command list that is recorded once: nothing is allocated or recorded
// when they run. On the CPU large inputs and results are where the caller has them; the list is recorded
// again when that is somewhere else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/session.h"
#include "onnx/compiled_graphs.h"

namespace anydml::onnx {

class PreparedRun {
 public:
  // `input_bytes` are multiples of 4. The first `outputs` slots of the graphs are for the host. `session` and
  // `graphs` have to outlive it. `timed`: what the graphs take can be asked for.
  static Status Create(tools::Session* session, const CompiledGraphs& graphs,
                       std::span<const uint64_t> input_bytes, size_t outputs, bool timed,
                       std::unique_ptr<PreparedRun>* out);

  // `data` stays until the graphs have been executed.
  Status SetInput(size_t index, std::span<const std::byte> data);
  Status Execute();
  Tensor TakeOutput(size_t index, ElementType type, const Shape& shape) const;

  bool timed() const { return timed_; }
  // Of the latest execution, by the device's clock, without the copies from and to the host.
  Status DeviceSeconds(double* seconds) { return session_.DeviceSeconds(list_, seconds); }

 private:
  using Buffer = CompiledGraphs::Buffer;

  // Memory of the host and the buffer that the graph sees: the same where they share memory, or with a copy
  // between them.
  struct Slot {
    uint64_t bytes = 0;
    std::byte* memory = nullptr;
    std::shared_ptr<std::byte> own;  // what results share; null: the caller's memory, or staging
    Buffer device;
    Buffer staging;
  };

  PreparedRun(tools::Session* session, const CompiledGraphs& graphs, bool timed);
  Status MakeSlot(bool upload, Slot* slot);
  Status Use(std::byte* memory, Slot* slot);
  Status Record();

  tools::Session& session_;
  const CompiledGraphs& graphs_;
  const bool shares_memory_;
  const bool timed_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<Buffer> between_;  // slots that the host does not see
  Buffer temporary_;
  tools::RecordedList list_;
  bool recorded_ = false;
};

}  // namespace anydml::onnx
