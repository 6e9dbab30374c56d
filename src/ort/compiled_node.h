// A group of nodes that onnxruntime has fused into one, as a program of the importer.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "onnx/run/runner.h"
#include "ort/cpu_session.h"
#include "ort/read_graph.h"

namespace anydml::ort {

// Shared by the nodes of one onnxruntime session; one run at a time uses it.
struct Device {
  std::mutex mutex;
  std::unique_ptr<client::Session> session;
  bool has_memory = false;  // onnxruntime's tensors are in the device's memory
  DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE;
  bool has_fallback = true;  // what it cannot run is run by onnxruntime's CPU provider
  const OrtLogger* logger = nullptr;
};

// onnxruntime calls it through the struct at its beginning.
class CompiledNode : public OrtNodeComputeInfo {
 public:
  // Copies constants, which onnxruntime frees. `device` must outlive it.
  static Status Create(const Api& api, const OrtGraph* graph, const OrtNode* fused, Device* device,
                       std::unique_ptr<CompiledNode>* out);

 private:
  CompiledNode(const Api& api, Device* device);
  Status TakeModel(const OrtGraph* graph, const OrtNode* fused);
  // Compiles for these sizes unless that has been done before.
  Status Run(OrtKernelContext* context);
  Status RunGroup(OrtKernelContext* context);
  Status ReadInputs(const OrtKernelContext* context, std::vector<onnx::RuntimeValue>* out);
  // What `runner_` could not do, for the reason `why`.
  Status RunOnCpu(const Status& why, std::vector<onnx::RuntimeValue>* inputs,
                  std::vector<onnx::RuntimeValue>* outputs);
  // Writes to onnxruntime's memory; complete after the device's next execution.
  Status WriteOutput(OrtKernelContext* context, size_t index, onnx::RuntimeValue* value);
  Status WriteToDevice(onnx::RuntimeValue* value, void* memory);
  bool IsOnDevice(const OrtValue* value) const;

  const Api api_;
  Device& device_;
  onnx::Model model_;
  std::unique_ptr<onnx::Program> program_;
  std::unique_ptr<onnx::ProgramRunner> runner_;
  std::vector<size_t> input_positions_;  // positions of the program's inputs among the fused node's
  std::unique_ptr<CpuSession> cpu_;      // as soon as it is needed
  // Sizes of inputs for which only the CPU session gave results, the latest last.
  std::deque<std::vector<onnx::Shape>> cpu_sizes_;
};

}  // namespace anydml::ort
