// A valid graph: nodes in an order in which they can run, and the values that flow between them. Passes
// rewrite it; lowering makes one kernel of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/description.h"
#include "graph/run/row_blocks.h"
#include "ops/attention/problem.h"
#include "ops/convolution/tail.h"
#include "ops/element/problem.h"
#include "ops/integer_product/problem.h"

namespace anydml {

inline constexpr uint32_t kNoValue = ~uint32_t{0};

// Bytes that nodes read and write; the nodes' tensors give the layout.
struct GraphValue {
  enum class Home {
    kInput,      // bound by the client
    kConstant,   // known when the graph is compiled
    kOutput,     // written by a node, bound by the client; other nodes may read it there
    kTemporary,  // written by a node
    kPrepared,   // written by Graph::preparations at initialisation
  };
  Home home = Home::kTemporary;
  uint32_t index = 0;  // of the graph input or output
  uint64_t bytes = 0;
  std::vector<std::byte> constant = {};
};

// A node's tensor begins `offset` bytes into the value.
struct GraphOperand {
  uint32_t value = kNoValue;  // kNoValue: an optional tensor that is absent
  uint64_t offset = 0;

  bool present() const { return value != kNoValue; }
};

struct GraphOperator {
  const Operator* op;
  OperatorDesc desc;
  std::optional<ByteLimits> limits = std::nullopt;  // of QUANTIZED_LINEAR_CONVOLUTION's output
  // Only for CONVOLUTION. The node then has the inputs of ConvolutionTail::Input after its own.
  std::optional<ConvolutionTailDesc> tail = std::nullopt;
};

struct GraphNode {
  std::string name;  // node 3 "conv1" (CONVOLUTION), for messages
  std::variant<GraphOperator, ElementProblem, AttentionProblem, RowBlocks> work;
  std::vector<GraphOperand> inputs;  // in binding order
  std::vector<GraphOperand> outputs;

  const GraphOperator* op() const { return std::get_if<GraphOperator>(&work); }
  GraphOperator* op() { return std::get_if<GraphOperator>(&work); }
  const ElementProblem* elements() const { return std::get_if<ElementProblem>(&work); }
  ElementProblem* elements() { return std::get_if<ElementProblem>(&work); }
};

struct GraphInput {
  bool connected = false;
  bool owned = false;  // OWNED_BY_DML
  uint64_t bytes = 0;  // the largest that a node needs
  uint32_t alignment = 0;
  uint32_t element_bytes = 1;
};

struct GraphOutput {
  bool connected = false;
  uint64_t bytes = 0;
  uint32_t alignment = 0;
  uint32_t element_bytes = 1;
};

struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;
  std::vector<GraphValue> values;
  std::vector<GraphNode> nodes;  // in an order in which they can run
  // Run once, at initialisation: they read constants and OWNED_BY_DML inputs and write kPrepared values.
  std::vector<GraphNode> preparations;
  std::vector<std::string> log;  // what the passes did, one line each, for diagnostics
  std::vector<std::string> warnings;
};

// Checks everything about the description that a node alone cannot check (checked_graph.h); messages begin
// with the node or the edge.
Status BuildGraph(GraphDescription description, Graph* graph);

// A part of BuildGraph (attention_cache.cc).
Status ConnectPresentOutputs(Graph* graph);

// A step of the lowered graph, for diagnostics.
struct GraphStep {
  struct Tensor {
    bool present = false;
    GraphValue::Home home = GraphValue::Home::kTemporary;
    uint32_t index = 0;  // index of the graph input or output; otherwise of the value
    uint64_t bytes = 0;
  };
  std::string name;
  std::string implementation;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};

// Facts about a lowered graph besides its kernel.
struct GraphFacts {
  std::vector<GraphStep> steps;  // in order, for diagnostics
  // An output may be bound to the bytes of an input whose last reader runs before the output's first writer.
  // If they are the same step, LoweredOperator::in_place has the pair.
  std::vector<uint32_t> input_ends;     // the step after the last reader; kNoStep: the input must not change
  std::vector<uint32_t> output_begins;  // the first writer

  static constexpr uint32_t kNoStep = ~uint32_t{0};
};

// Makes one kernel for the graph; its inputs and outputs are the graph's. `without`: passes to skip, as for
// RunPasses. `facts` may be null.
Status LowerGraph(Graph graph, const LowerContext& context, std::string_view without, LoweredOperator* out,
                  GraphFacts* facts = nullptr);

}  // namespace anydml
