// A compiled operator apart from its COM object. Recorded commands and initializers share it, so it refers to
// no COM object.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "kernel/work_estimate.h"
#include "ops/operator.h"

namespace anydml::dml {

struct TensorSlot {
  std::string name;     // "IndicesTensor", "InputTensors[2]"
  bool present = true;  // false: an optional tensor that the description omits
  bool owned = false;   // OWNED_BY_DML
  uint64_t bytes = 0;   // TotalTensorSizeInBytes
  uint32_t alignment = 0;
  uint32_t element_bytes = 1;
  bool ignored = false;            // of a graph: a binding has no effect
  bool packed = false;             // owned, and packed by the kernel
  uint64_t persistent_offset = 0;  // where initialisation copies an owned input that is not packed
};

struct Program {
  std::string name;  // "TOP_K1"
  LoweredOperator lowered;
  std::vector<TensorSlot> inputs;
  std::vector<TensorSlot> outputs;
  uint64_t temporary_bytes = 0;
  uint64_t initialization_temporary_bytes = 0;
  // The kernel's part comes first in the persistent resource, then the copied inputs.
  uint64_t kernel_persistent_bytes = 0;
  uint64_t persistent_bytes = 0;
  bool volatile_descriptors = false;
  uint64_t work_bytes = WorkEstimate::kUnknown;  // of a run on the CPU
  GraphFacts facts;                              // of a graph
  // Set on the queue's thread by the first initialisation; others are errors.
  std::atomic<bool> initialized{false};
};

// Whether the input and the output may be bound to the same region.
bool MayRunInPlace(const Program& program, uint32_t input, uint32_t output);

// Makes a program of a lowered operator: lays out the persistent resource.
Status MakeProgram(std::string name, std::vector<TensorSlot> inputs, std::vector<TensorSlot> outputs,
                   LoweredOperator lowered, std::shared_ptr<Program>* out);
// The same, with the bindings of a description.
Status MakeProgram(const OperatorDesc& desc, LoweredOperator lowered, std::shared_ptr<Program>* out);

// Lowers a validated description and makes a program of it.
Status CompileProgram(const OperatorDesc& desc, const Operator& implementation, const LowerContext& context,
                      std::shared_ptr<Program>* out);

// The same for a graph, which is checked here. `without`: see LowerGraph. `warnings`: for the debug layer,
// about valid graphs.
Status CompileGraphProgram(GraphDescription description, const LowerContext& context,
                           std::string_view without, std::shared_ptr<Program>* out,
                           std::vector<std::string>* warnings);

}  // namespace anydml::dml
