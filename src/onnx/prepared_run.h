// Graphs with buffers of their own and a command list that is recorded once: nothing is allocated or recorded
// when they run.
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
  // `graphs` have to outlive it.
  static Status Create(tools::Session* session, const CompiledGraphs& graphs,
                       std::span<const uint64_t> input_bytes, size_t outputs,
                       std::unique_ptr<PreparedRun>* out);

  // Inputs are copied in, outputs are read afterwards.
  std::span<std::byte> input(size_t index) { return {inputs_[index].memory, inputs_[index].bytes}; }
  std::span<const std::byte> output(size_t index) const {
    return {outputs_[index].memory, outputs_[index].bytes};
  }
  Status Execute();

 private:
  // Memory of the host and the buffer that the graph sees: the same where they share memory, or with a copy
  // between them.
  struct Slot {
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
    std::vector<std::byte> own;
    Microsoft::WRL::ComPtr<ID3D12Resource> device;
    Microsoft::WRL::ComPtr<ID3D12Resource> staging;
  };

  explicit PreparedRun(tools::Session* session) : session_(*session) {}
  Status MakeSlot(uint64_t bytes, bool upload, Slot* slot);
  Status Record(const CompiledGraphs& graphs);

  tools::Session& session_;
  std::vector<Slot> inputs_, outputs_;
  tools::RecordedList list_;
};

}  // namespace anydml::onnx
