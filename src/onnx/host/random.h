// Random numbers as NumPy draws them from a seed, with which ONNX's tests were made.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "onnx/model/node_facts.h"

namespace anydml::onnx {

// Whether a model has such operators, so that its results cannot be predicted.
bool DrawsNumbers(const GraphProto& graph);

class RandomNumbers {
 public:
  // Uses the attribute "seed"; without it every call differs, but in the same way in every process.
  explicit RandomNumbers(const NodeFacts& node);

  double Uniform();  // 0 <= x < 1
  double Normal();   // around 0, with a deviation of 1

 private:
  std::mt19937 generator_;
  std::optional<double> next_;  // they are drawn in pairs
};

}  // namespace anydml::onnx
