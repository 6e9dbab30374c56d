#include "ops/batchnorm/rows.h"

#include "base/status.h"

namespace anydml {
namespace {

uint64_t StrideOf(const TensorDesc& tensor, uint32_t d) {
  return tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
}

}  // namespace

std::optional<BatchNormRows> RowsOf(const BatchNormProblem& problem, uint64_t shortest,
                                    std::string* why_not) {
  constexpr size_t kLoadAndStore = 2;
  if (problem.kind != BatchNormProblem::kInference ||
      problem.finish.program.instructions.size() > kLoadAndStore) {
    *why_not = "computes no sums and no activations";
    return std::nullopt;
  }
  LoopNest<6> rows;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    rows.Append(problem.input.sizes[d],
                {problem.input.strides[d], problem.outputs[0].strides[d], StrideOf(*problem.mean, d),
                 StrideOf(*problem.variance, d), StrideOf(problem.scale, d), StrideOf(*problem.bias, d)});
  }
  rows = SortedByStride(rows, 1);
  const auto row = TakeInnermost(&rows);
  if (row.strides != LoopNest<6>::Offsets{1, 1, 0, 0, 0, 0} || row.size < shortest) {
    *why_not = StrCat("there are no rows of ", shortest, " or more neighbours with the same parameters");
    return std::nullopt;
  }
  return BatchNormRows{rows, row.size};
}

}  // namespace anydml
