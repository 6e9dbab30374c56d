// BATCH_NORMALIZATION, BATCH_NORMALIZATION_TRAINING and their gradients: normalisation by a given mean and
// variance, or by those of all elements that share an element of Scale.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/moments/steps.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> BatchNormOperators();

struct BatchNormProblem {
  static constexpr std::string_view kFamily = "batch_norm";

  enum Kind : uint8_t { kInference, kGradient, kTraining, kTrainingGradient } kind = kInference;
  TensorDesc input;
  TensorDesc scale;                          // sizes of 1 broadcast, here and in the next ones
  std::optional<TensorDesc> mean, variance;  // if they are inputs
  std::optional<TensorDesc> bias;
  std::optional<TensorDesc> added;     // FusedAddTensor
  std::optional<TensorDesc> gradient;  // InputGradientTensor
  float epsilon = 0;
  // Output, OutputMean, OutputVariance; or the gradients with respect to input, scale and bias.
  std::vector<TensorDesc> outputs;

  ElementProblem finish;  // the activation and the store: from packed FLOAT32 numbers to output 0
  StepList steps;         // the whole computation
};

Exactness BatchNormBound(const BatchNormProblem& problem);

// The dimensions over which a statistic is taken: those in which `parameter` broadcasts.
DimensionSet ReducedBy(const TensorDesc& parameter);

// Binding indices of inputs.
namespace batch_norm {
struct Inputs {
  uint32_t mean, variance, scale, bias, added, gradient;
};
constexpr Inputs InputsOf(BatchNormProblem::Kind kind) {
  switch (kind) {
    case BatchNormProblem::kInference:
      return {.mean = 1, .variance = 2, .scale = 3, .bias = 4, .added = 0, .gradient = 0};
    case BatchNormProblem::kTraining:
      return {.mean = 0, .variance = 0, .scale = 1, .bias = 2, .added = 3, .gradient = 0};
    default:
      return {.mean = 2, .variance = 3, .scale = 4, .bias = 0, .added = 0, .gradient = 1};
  }
}
}  // namespace batch_norm

std::unique_ptr<const Kernel> CreateBatchNormRows(const BatchNormProblem& problem,
                                                  const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateBatchNormRowsCuda(const BatchNormProblem& problem,
                                                      const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateBatchNormSteps(const BatchNormProblem& problem,
                                                   const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateBatchNormReference(const BatchNormProblem& problem,
                                                       const LowerContext& context, std::string* why_not);

}  // namespace anydml
