// Graphs with their own buffers and a command list that is recorded once: running them allocates and records
// nothing. On the CPU large inputs and results stay in the caller's memory; if that is elsewhere in the next
// run, the list is recorded again.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "client/session.h"
#include "onnx/run/compiled_graphs.h"

namespace anydml::onnx {

class PreparedRun {
 public:
  // `input_bytes` are multiples of 4. The first `outputs` slots of the graphs are for the host. `session` and
  // `graphs` must outlive it. `timed`: record timestamps for DeviceSeconds.
  static Status Create(client::Session* session, const CompiledGraphs& graphs,
                       std::span<const uint64_t> input_bytes, size_t outputs, bool timed,
                       std::unique_ptr<PreparedRun>* out);

  // `data` must stay valid until the graphs have been executed.
  Status SetInput(size_t index, std::span<const std::byte> data);
  Status Execute();
  Tensor TakeOutput(size_t index, ElementType type, const Shape& shape) const;

  bool timed() const { return timed_; }
  // Of the latest execution, by the device's clock, without the copies from and to the host.
  Status DeviceSeconds(double* seconds) { return session_.DeviceSeconds(list_, seconds); }

 private:
  using Buffer = CompiledGraphs::Buffer;

  // Memory of the host and the buffer for the graph: the same if they share memory, otherwise with a copy
  // between them.
  struct Slot {
    uint64_t bytes = 0;
    std::byte* memory = nullptr;
    std::shared_ptr<std::byte> own;  // shared with results; null: the caller's memory, or staging
    Buffer device;
    Buffer staging;
  };

  PreparedRun(client::Session* session, const CompiledGraphs& graphs, bool timed);
  Status MakeSlot(bool upload, Slot* slot);
  Status Use(std::byte* memory, Slot* slot);
  Status Record();

  client::Session& session_;
  const CompiledGraphs& graphs_;
  const bool shares_memory_;
  const bool timed_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<Buffer> between_;  // slots that the host does not use
  Buffer temporary_;
  client::RecordedList list_;
  bool recorded_ = false;
};

}  // namespace anydml::onnx
