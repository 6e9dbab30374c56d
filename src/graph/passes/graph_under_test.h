// A graph with data, and its results on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/operator_runner.h"

namespace anydml::testing {

// a b, of which b may be transposed.
inline OperatorDesc Product(const TensorDesc& a, const TensorDesc& b, const TensorDesc& output,
                            bool transposes_b = false) {
  return MakeDesc("GEMM", {{"ATensor", a},
                           {"BTensor", b},
                           {"OutputTensor", output},
                           {"TransA", uint32_t{0}},
                           {"TransB", uint32_t{transposes_b}},
                           {"Alpha", 1.0f},
                           {"Beta", 0.0f}});
}

struct GraphUnderTest {
  Graph graph;
  std::vector<Bytes> inputs;

  uint32_t Input(const Bytes& bytes) {
    graph.values.push_back({.home = GraphValue::Home::kInput,
                            .index = static_cast<uint32_t>(inputs.size()),
                            .bytes = bytes.size()});
    graph.inputs.push_back({.connected = true, .bytes = bytes.size()});
    inputs.push_back(bytes);
    return static_cast<uint32_t>(graph.values.size() - 1);
  }
  // OWNED_BY_DML: the tensors of its readers must say so, too.
  uint32_t Owned(const Bytes& bytes) {
    const uint32_t value = Input(bytes);
    graph.inputs.back().owned = true;
    return value;
  }
  // The values of its outputs.
  std::vector<uint32_t> Node(const OperatorDesc& desc, const std::vector<uint32_t>& inputs_of_node) {
    GraphNode node;
    node.name = StrCat("node ", graph.nodes.size(), " (", desc.schema->name, ")");
    node.work = GraphOperator{FindImplementation(desc.schema->type), desc};
    for (const uint32_t value : inputs_of_node) node.inputs.push_back({value});
    std::vector<uint32_t> values;
    for (const TensorDesc* tensor : desc.outputs()) {
      values.push_back(tensor == nullptr ? kNoValue : static_cast<uint32_t>(graph.values.size()));
      if (tensor != nullptr) graph.values.push_back({.bytes = tensor->total_bytes});
      node.outputs.push_back({values.back()});
    }
    graph.nodes.push_back(std::move(node));
    return values;
  }
  uint32_t Constant(const Bytes& bytes) {
    GraphValue value = {.home = GraphValue::Home::kConstant, .bytes = bytes.size()};
    value.constant.resize(bytes.size());
    std::memcpy(value.constant.data(), bytes.data(), bytes.size());
    graph.values.push_back(std::move(value));
    return static_cast<uint32_t>(graph.values.size() - 1);
  }
  void Output(uint32_t value) {
    graph.values[value].home = GraphValue::Home::kOutput;
    graph.values[value].index = static_cast<uint32_t>(graph.outputs.size());
    graph.outputs.push_back({.connected = true, .bytes = graph.values[value].bytes});
  }
};

struct Result {
  std::vector<Bytes> outputs;
  std::string made_of;
  std::string explanation;
};

// Fills the persistent memory for a run with these arguments from the OWNED_BY_DML inputs.
inline void Initialize(const Kernel& kernel, const KernelArguments& run,
                       const std::vector<GraphInput>& graph_inputs = {}) {
  if (kernel.persistent_bytes() == 0) return;
  for (const Kernel::PersistentData& data : kernel.persistent_data()) {
    std::copy(data.bytes.begin(), data.bytes.end(), run.persistent.data + data.offset);
  }
  const uint64_t bytes = kernel.initialization_temporary_bytes();
  std::vector<std::max_align_t> temporary(bytes / sizeof(std::max_align_t) + 1);
  std::vector<Buffer> inputs(run.inputs.size());
  const std::vector<Buffer> outputs(run.outputs.size());
  for (size_t i = 0; i < graph_inputs.size(); ++i) {
    if (graph_inputs[i].owned) inputs[i] = run.inputs[i];
  }
  KernelArguments arguments = {.inputs = inputs, .outputs = outputs};
  arguments.temporary = {reinterpret_cast<std::byte*>(temporary.data()), bytes};
  arguments.persistent = run.persistent;
  const Status status = kernel.Initialize(arguments);
  EXPECT_TRUE(status.ok()) << status.message();
}

inline Result RunGraph(const GraphUnderTest& test, const char* without, const LowerContext& context = {}) {
  LoweredOperator lowered;
  const Status status = LowerGraph(test.graph, context, without, &lowered);
  EXPECT_TRUE(status.ok()) << status.message();
  if (!status.ok()) return {};
  Result result = {{}, lowered.kernel->made_of(), lowered.explanation};
  for (const GraphOutput& output : test.graph.outputs) result.outputs.emplace_back(output.bytes, kGap);
  std::vector<Bytes> inputs = test.inputs;
  std::vector<Buffer> in, out;
  const auto buffer = [](Bytes& bytes) {
    return Buffer{reinterpret_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  for (Bytes& bytes : inputs) in.push_back(buffer(bytes));
  for (Bytes& bytes : result.outputs) out.push_back(buffer(bytes));
  std::vector<std::max_align_t> temporary(lowered.kernel->temporary_bytes() / sizeof(std::max_align_t) + 1);
  KernelArguments arguments = {.inputs = in, .outputs = out};
  arguments.temporary = {reinterpret_cast<std::byte*>(temporary.data()), lowered.kernel->temporary_bytes()};
  const uint64_t persistent_bytes = lowered.kernel->persistent_bytes();
  std::vector<std::max_align_t> persistent(persistent_bytes / sizeof(std::max_align_t) + 1);
  arguments.persistent = {reinterpret_cast<std::byte*>(persistent.data()), persistent_bytes};
  Initialize(*lowered.kernel, arguments, test.graph.inputs);
  for (uint32_t i = 0; i < in.size(); ++i) {
    if (test.graph.inputs[i].owned && lowered.kernel->packs_input(i)) in[i] = {};
  }
  const Status run = lowered.kernel->Run(arguments);
  EXPECT_TRUE(run.ok()) << run.message();
  return result;
}

}  // namespace anydml::testing
