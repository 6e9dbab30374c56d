// Graph inputs and outputs that a client may bind to the same bytes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/plan/memory_plan.h"
#include "graph/run/kernel.h"

namespace anydml {

// The output's writer runs after every reader of the input, or is its last reader.
struct SharedBytes {
  uint32_t input = 0;
  uint32_t output = 0;
  std::unique_ptr<GraphNode> writer;  // set if it also reads the input and has to run in place
};

// Pairs of equal size in the graph before passes. A pass may let one step do the reads and writes of several
// nodes, but what the nodes allow must remain allowed.
std::vector<SharedBytes> FindSharedBytes(const Graph& graph);

// A graph after its passes, with GraphFacts' ends of inputs and begins of outputs.
struct OrderedGraph {
  const Graph& graph;
  std::span<const uint32_t> input_ends;
  std::span<const uint32_t> output_begins;
};

// Adds copies for pairs that the steps no longer allow, and records them in `out`.
Status CopySharedInputs(const OrderedGraph& ordered, const LowerContext& context,
                        std::vector<SharedBytes>* shared, LoweredOperator* out,
                        std::vector<GraphKernel::CopiedInput>* copies);

// The indices of the copies' lifetimes among these. An input is copied at most once, since outputs do not
// overlap.
std::vector<size_t> AddLifetimes(std::span<const GraphKernel::CopiedInput> copies,
                                 std::span<const uint32_t> input_ends, std::vector<Lifetime>* lifetimes);

// For diagnostics.
std::string Explain(const GraphKernel::CopiedInput& copy);

}  // namespace anydml
