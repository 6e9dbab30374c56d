// A model in onnxruntime with the plugin and without: the same success, and results that agree.
#pragma once

#include <memory>
#include <string>

#include "ort/runtime_for_tests.h"

namespace anydml::ort {

// The plugin is registered as long as it lives.
class Comparison {
 public:
  // Null where there is no onnxruntime.
  static std::unique_ptr<Comparison> Create(std::string* why_not);
  ~Comparison();
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  // How a model is made harder for the plugin than it is.
  enum class Known { kSizes, kRanks, kTypes };
  static std::string Name(Known known);
  // Of inputs, as far as they are `known`; of outputs nothing.
  static onnx::Model With(const onnx::Model& model, Known known);

  struct Outcome {
    std::string difference;  // "" where both agree
    std::string refused;     // why onnxruntime alone does not run it
    bool claimed = false;    // AnyDML runs all of its nodes
  };
  // The plugin has to be able to run what it claims: there is no fallback.
  Outcome Run(const onnx::Model& model, const Inputs& inputs) const;

 private:
  explicit Comparison(const Runtime* runtime) : runtime_(runtime) {}

  const Runtime* const runtime_;
  std::string device_;
};

// What is wrong with `ours`: floats may differ a little, 8-bit numbers, which are rounded, by 1.
std::string Difference(const Results& ours, const Results& theirs);

}  // namespace anydml::ort
