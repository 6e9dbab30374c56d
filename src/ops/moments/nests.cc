#include "ops/moments/problem.h"
#include "ops/moments/window_sums.h"

namespace anydml {

namespace {

uint64_t Product(const TensorDesc& tensor, const DimensionSet& reduced, bool of_reduced) {
  uint64_t product = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d) product *= reduced[d] == of_reduced ? tensor.sizes[d] : 1;
  return product;
}

}  // namespace

uint64_t KeptElements(const TensorDesc& tensor, const DimensionSet& reduced) {
  return Product(tensor, reduced, false);
}

uint64_t ReducedElements(const TensorDesc& tensor, const DimensionSet& reduced) {
  return Product(tensor, reduced, true);
}

LoopNest<4> KeptNest(const MomentsProblem& problem) {
  const TensorDesc& input = problem.input;
  std::array<uint64_t, kMaxDimensions> result_strides{};
  uint64_t results = 1;
  for (uint32_t d = input.rank; d-- > 0;) {
    if (problem.reduced[d]) continue;
    result_strides[d] = results;
    results *= input.sizes[d];
  }
  LoopNest<4> nest;
  for (uint32_t d = 0; d < input.rank; ++d) {
    if (problem.reduced[d]) continue;
    nest.Append(input.sizes[d], {input.strides[d], problem.has_gradient() ? problem.gradient.strides[d] : 0,
                                 problem.has_gradient() ? problem.center.strides[d] : 0, result_strides[d]});
  }
  return SortedByStride(nest, 0);
}

LoopNest<2> ReducedNest(const MomentsProblem& problem) {
  LoopNest<2> nest;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    if (!problem.reduced[d]) continue;
    nest.Append(problem.input.sizes[d],
                {problem.input.strides[d], problem.has_gradient() ? problem.gradient.strides[d] : 0});
  }
  return SortedByStride(nest, 0);
}

bool SetsAreNeighbours(const LoopNest<4>& kept, const LoopNest<2>& reduced) {
  if (kept.rank == 0) return false;
  if (reduced.rank == 0) return true;
  return kept.loops[kept.rank - 1].strides[0] < reduced.loops[reduced.rank - 1].strides[0];
}

}  // namespace anydml
