// Runs a program on a device: compiled parts are cached by sizes, control flow is done by the host.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "client/session.h"
#include "onnx/model/program.h"
#include "onnx/run/prepared_run.h"
#include "onnx/run/trace.h"

namespace anydml::onnx {

// A value while a program runs. A tensor is on the host, on the device, or on both.
struct RuntimeValue {
  enum class Kind { kNone, kTensor, kSequence, kNothing };  // kNothing: an optional value that is absent
  Kind kind = Kind::kNone;
  ElementType type = ElementType::kUndefined;
  Shape shape;
  std::optional<Tensor> host;
  Microsoft::WRL::ComPtr<ID3D12Resource> device;
  std::vector<RuntimeValue> elements;  // of a sequence

  static RuntimeValue Of(Tensor tensor);
  static RuntimeValue Sequence(std::vector<RuntimeValue> elements);
  bool exists() const { return kind != Kind::kNone; }
};

class ProgramRunner {
 public:
  // `flags`: for compiling graphs.
  ProgramRunner(const Program& program, client::Session* session,
                DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE);

  // `inputs` as Program::inputs; `captured` as Program::captures.
  Status Run(std::vector<RuntimeValue> inputs, std::vector<RuntimeValue> captured,
             std::vector<RuntimeValue>* outputs);

  void set_progress(std::function<void(size_t)> progress) { progress_ = std::move(progress); }
  // Asked before every iteration of a loop; an error ends the run.
  void set_poll(std::function<Status()> poll) { poll_ = std::move(poll); }
  // Called for every compiled part with lines that explain it.
  void set_explain(std::function<void(const std::string&)> explain) { explain_ = std::move(explain); }

  // From now on programs of a single part measure how long their graphs take.
  void set_timed() { timed_ = true; }
  // For the latest run; empty if unknown.
  std::optional<double> device_seconds() const { return device_seconds_; }

  // Copies a value that is only on the device.
  Status EnsureHost(RuntimeValue* value);

 private:
  struct CompiledPart {
    Part part;
    CompiledGraphs graphs;                  // empty if there is nothing to compute
    std::unique_ptr<PreparedRun> prepared;  // of a whole program
  };
  // Parts that begin at a node, most recently used first.
  using Parts = std::list<std::unique_ptr<CompiledPart>>;

  Status FindPart(size_t begin, CompiledPart** out);
  Status TracePart(size_t begin, const FindOutside& outside, bool pin_conditions, Part* part);
  // `other`: of the same place, for other sizes; may be null.
  Status Compile(const CompiledGraphs* other, CompiledPart* part);
  Status RunPart(const CompiledPart& part);
  // A program of a single part has buffers of its own, and no debug layer that reports errors in data.
  bool IsWhole(const CompiledPart& part) const;
  Status RunPrepared(CompiledPart* part);
  void TakeResults(const CompiledPart& part,
                   const std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>>& buffers);
  Status EnsureDevice(RuntimeValue* value);
  std::vector<uint64_t> InputBytes(const CompiledPart& part) const;
  void Forget(size_t node);
  void ForgetWhole(const Part& part);

  // `refused`: DirectML's message, if it was tried.
  Status RunHostNode(size_t index, const std::string& refused = "");
  Status RunEvaluated(size_t index);
  // Sequences and optional values; `*known` is false for other operators.
  Status RunSequence(const ProgramNode& node, bool* known);
  Status RunSplitToSequence(const ProgramNode& node, RuntimeValue* out);
  Status RunConcatFromSequence(const ProgramNode& node, RuntimeValue* out);
  Status RunSequenceMap(const ProgramNode& node);
  Status RunScan(const ProgramNode& node);
  Status Scan(const ProgramNode& node, const Program& body, std::vector<RuntimeValue> inputs, size_t states,
              int64_t most, std::vector<RuntimeValue>* outputs);
  Status ScanBatch(const ProgramNode& node, const Program& body, std::vector<RuntimeValue> inputs,
                   size_t states, std::vector<RuntimeValue>* outputs);
  Status RunIf(const ProgramNode& node);
  Status RunLoop(const ProgramNode& node);
  // One iteration of a loop. Counts it, and fails if the run has reached its limit or `poll` stops it.
  Status RunIteration(const Program& body, std::vector<RuntimeValue> inputs,
                      std::vector<RuntimeValue>* outputs);
  Status RunBody(const Program& body, std::vector<RuntimeValue> inputs, std::vector<RuntimeValue>* outputs);
  Status HostInts(ValueId id, std::vector<int64_t>* out);
  RuntimeValue* ValueOf(ValueId id);

  const Program& program_;
  client::Session& session_;
  const DML_EXECUTION_FLAGS flags_;
  const std::unique_ptr<OperatorMaker> maker_;
  ProgramRunner* around_ = nullptr;  // of a body: the runner of the node that it is of
  uint64_t iterations_ = 0;          // of this run, in all bodies; the outermost runner counts
  std::map<size_t, Parts> parts_;
  std::unique_ptr<CompiledPart> empty_part_;  // the latest part without nodes, which is not cached
  std::map<const Program*, std::unique_ptr<ProgramRunner>> bodies_;
  std::vector<RuntimeValue> values_;
  bool values_are_empty_ = false;
  bool timed_ = false;
  std::optional<double> device_seconds_;
  std::function<Status()> poll_;                     // may be empty
  std::function<void(size_t)> progress_;             // may be empty
  std::function<void(const std::string&)> explain_;  // may be empty
};

// The collected output of a body that never ran: no elements along `axis`, along others the sizes that the
// body declares, or 0.
Status NothingOf(const Program& body, size_t output, size_t axis, Tensor* out);

}  // namespace anydml::onnx
