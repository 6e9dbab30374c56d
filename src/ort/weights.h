// Constants with a lifetime of their own: mapped from their file, or copied once.
#pragma once

#include <map>
#include <string>

#include "ort/read_graph.h"

namespace anydml::ort {

class Weights {
 public:
  Weights(const Api& api, const OrtGraph* graph) : api_(api), graph_(graph) {}

  Status Take(const GraphValue& value, onnx::Tensor* out);

 private:
  // Sets `*found` if the elements are in a file beside the model.
  Status Map(const GraphValue& value, onnx::Tensor* out, bool* found);

  const Api& api_;
  const OrtGraph* const graph_;
  std::map<std::string, onnx::Blob> files_;
};

}  // namespace anydml::ort
