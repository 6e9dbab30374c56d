// Whether the importer takes a node: it is lowered by itself, for the sizes that onnxruntime has inferred
// and, where there are none, for guesses.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/model/program.h"
#include "ort/read_graph.h"

namespace anydml::ort {

class NodeTrial {
 public:
  // How often the nodes of a graph are lowered in all. When it is used up, every further node is lowered once
  // for each rank: a large graph of nodes that are refused would take minutes otherwise.
  static constexpr size_t kMostLowerings = 20000;

  // `budget`: what is left of it.
  NodeTrial(const Api& api, const Graph& graph, const GraphNode& node, uint32_t feature_level,
            size_t* budget);

  // Fails with the reason if no sizes are found for which it can be lowered.
  Status Run();

 private:
  using Shapes = std::map<std::string, onnx::Shape>;             // of inputs that are no constants
  using Elements = std::map<onnx::ValueId, const onnx::Tensor>;  // of inputs that have to be known

  Status TryRank(size_t rank);
  std::vector<int64_t> SizesInNode() const;
  Status TrySizes(const Shapes& shapes);
  Status TryElements(const Shapes& shapes);
  // `needed` are those values whose elements it cannot be lowered without.
  Status Lower(const Shapes& shapes, const Elements& elements, std::vector<onnx::ValueId>* needed);

  const uint32_t feature_level_;
  size_t& budget_;
  onnx::Model model_;
  std::unique_ptr<onnx::Program> program_;
};

}  // namespace anydml::ort
