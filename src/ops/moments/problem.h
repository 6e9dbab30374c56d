// Sums over some dimensions of a tensor, of which normalisations and their gradients consist. No operator of
// its own: a step of theirs (steps.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "schema/tensor_desc.h"

namespace anydml {

enum class Moments : uint8_t {
  kMean,
  kMeanAndVariance,  // two results; the variance is the mean of the squared distances from the mean
  kMeanOfSquares,
  kSumOfMagnitudes,
  kSumOfSquares,
  kGradientSums,  // two results: the sum of the gradients, and of gradient * (input - center)
};

// What one pass through the elements of a set sums.
enum class MomentTerm : uint8_t {
  kElement,
  kMagnitude,
  kSquare,    // (element - center)^2
  kGradient,  // the element of the gradients
  kProduct,   // gradient * (element - center)
};

struct MomentPass {
  MomentTerm term;
  bool is_mean;  // the sum is divided by the number of elements
};

using DimensionSet = std::array<bool, kMaxDimensions>;

// Inputs: the input; for kGradientSums also the gradients, of the same sizes, and the centers, whose kept
// dimensions have those sizes. Outputs: per result a packed FLOAT32 tensor of the kept dimensions.
struct MomentsProblem {
  static constexpr std::string_view kFamily = "moments";

  Moments moments = Moments::kMean;
  TensorDesc input;
  DimensionSet reduced{};
  TensorDesc gradient;
  TensorDesc center;

  bool has_gradient() const { return moments == Moments::kGradientSums; }
  uint32_t passes() const {
    return moments == Moments::kMeanAndVariance || moments == Moments::kGradientSums ? 2 : 1;
  }
  MomentPass pass(uint32_t i) const {
    switch (moments) {
      case Moments::kMean:
        return {MomentTerm::kElement, true};
      case Moments::kMeanAndVariance:
        return {i == 0 ? MomentTerm::kElement : MomentTerm::kSquare, true};
      case Moments::kMeanOfSquares:
        return {MomentTerm::kSquare, true};
      case Moments::kSumOfMagnitudes:
        return {MomentTerm::kMagnitude, false};
      case Moments::kSumOfSquares:
        return {MomentTerm::kSquare, false};
      default:
        return {i == 0 ? MomentTerm::kGradient : MomentTerm::kProduct, false};
    }
  }
};

// The number of sets, and of elements in each.
uint64_t KeptElements(const TensorDesc& tensor, const DimensionSet& reduced);
uint64_t ReducedElements(const TensorDesc& tensor, const DimensionSet& reduced);

// The loops over the sets: offsets into input, gradients, centers, results. The input's smallest stride comes
// last.
LoopNest<4> KeptNest(const MomentsProblem& problem);
// The loops over a set: offsets into input and gradients, in the order of the input's memory.
LoopNest<2> ReducedNest(const MomentsProblem& problem);

// Whether neighbouring sets, rather than the elements of one set, are contiguous in memory.
bool SetsAreNeighbours(const LoopNest<4>& kept, const LoopNest<2>& reduced);

std::unique_ptr<const Kernel> CreateMomentsCpu(const MomentsProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateMomentsCuda(const MomentsProblem& problem, const LowerContext& context,
                                                std::string* why_not);

}  // namespace anydml
