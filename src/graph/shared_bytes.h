// Graph inputs and outputs that a client may bind to the same bytes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"
#include "graph/memory_plan.h"

namespace anydml {

// The writer of the output waits for every reader of the input, or is it.
struct SharedBytes {
  uint32_t input = 0;
  uint32_t output = 0;
  std::unique_ptr<GraphNode> writer;  // where it reads the input, too, and has to run in place
};

// Those of the same size in a graph that no pass has changed. Passes may let one step read and write what
// several nodes did, which must not take from clients what the nodes would allow.
std::vector<SharedBytes> FindSharedBytes(const Graph& graph);

// A graph behind its passes, with the ends and begins of GraphFacts.
struct OrderedGraph {
  const Graph& graph;
  std::span<const uint32_t> input_ends;
  std::span<const uint32_t> output_begins;
};

// Copies for those that the steps, and what `out` says of them, do not allow any more; they are told to
// `out`.
Status CopySharedInputs(const OrderedGraph& ordered, const LowerContext& context,
                        std::vector<SharedBytes>* shared, LoweredOperator* out,
                        std::vector<GraphKernel::CopiedInput>* copies);

// Where the copies' lifetimes are among these. An input is copied once at most: outputs do not overlap.
std::vector<size_t> AddLifetimes(std::span<const GraphKernel::CopiedInput> copies,
                                 std::span<const uint32_t> input_ends, std::vector<Lifetime>* lifetimes);

// For people.
std::string Explain(const GraphKernel::CopiedInput& copy);

}  // namespace anydml
