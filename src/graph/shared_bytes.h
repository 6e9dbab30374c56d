// Graph inputs and outputs that a client may bind to the same bytes.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace anydml {

// The writer of the output waits for every reader of the input, or is it.
struct SharedBytes {
  uint32_t input = 0;
  uint32_t output = 0;
  std::optional<GraphNode> writer = std::nullopt;  // which reads the input, too, and has to run in place
};

// Those of the same size in a graph that no pass has changed. Passes may let one step read and write what
// several nodes did, which must not take from clients what the nodes would allow.
std::vector<SharedBytes> FindSharedBytes(const Graph& graph);

// Whether the writer, if it is a reader, runs in place.
bool MayShareBytes(SharedBytes& shared, const LowerContext& context);

// Copies a value of so many bytes, a multiple of 4.
GraphNode MakeByteCopy(std::string name, uint64_t bytes);

}  // namespace anydml
