// Drawings of graphs: as lines of text, and in Graphviz's language.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/json/json_writer.h"

namespace anydml::client {

struct DrawnTensor {
  enum class Kind { kNone, kInput, kOutput, kBetween, kConstant };
  Kind kind = Kind::kNone;  // kNone: an optional tensor that is absent
  uint32_t index = 0;       // unique among tensors of the same kind
  std::string name;         // "filter"
  std::string what;         // "FLOAT32 [1,3,224,224]"
};

struct DrawnStep {
  std::string name;            // 'node 0 "conv" (CONVOLUTION)'
  std::string implementation;  // "cpu.tiles"; empty: unknown
  std::vector<DrawnTensor> inputs;
  std::vector<DrawnTensor> outputs;
};

// Steps in an order in which they can run: the writers of a tensor come before its readers.
struct DrawnGraph {
  std::string title;
  std::vector<DrawnStep> steps;
};

// The title, and a line per step: "  NAME, IMPLEMENTATION: x (16 bytes), y (8 bytes) -> z (16 bytes)".
std::string ListGraph(const DrawnGraph& graph);

// One drawing with a frame for each graph.
std::string GraphsToDot(std::span<const DrawnGraph> graphs);

// An array: [{"name", "implementation" if known, "inputs", "outputs": [NAME or null]}]
void WriteGraph(const DrawnGraph& graph, JsonWriter* json);

}  // namespace anydml::client
