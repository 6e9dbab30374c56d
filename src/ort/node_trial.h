// Decides whether the importer supports a node: lowers the node alone, with the sizes that onnxruntime has
// inferred, and with guesses for unknown sizes.
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

  // Fails with the reason if the node cannot be lowered with any of the sizes tried.
  Status Run();

 private:
  using Shapes = std::map<std::string, onnx::Shape>;             // of inputs that are not constants
  using Elements = std::map<onnx::ValueId, const onnx::Tensor>;  // of inputs whose elements are needed

  Status TryRank(size_t rank);
  std::vector<int64_t> SizesInNode() const;
  Status TrySizes(const Shapes& shapes);
  Status TryElements(const Shapes& shapes);
  // `needed`: the values whose elements lowering requires.
  Status Lower(const Shapes& shapes, const Elements& elements, std::vector<onnx::ValueId>* needed);

  const uint32_t feature_level_;
  size_t& budget_;
  onnx::Model model_;
  std::unique_ptr<onnx::Program> program_;
};

}  // namespace anydml::ort
