#include "ops/mvn/contiguous_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kShortest = 16;

uint64_t StrideOf(const std::optional<TensorDesc>& tensor, uint32_t d) {
  return tensor && tensor->sizes[d] != 1 ? tensor->strides[d] : 0;
}

}  // namespace

std::optional<MvnRows> RowsOf(const MvnProblem& problem, uint64_t longest, std::string* why_not) {
  if (problem.p != 0 || problem.has_activation) {
    *why_not = "computes no norms and no activations";
    return {};
  }
  MvnRows result;
  LoopNest<4> inside;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    auto& nest = problem.reduced[d] ? inside : result.rows;
    nest.Append(problem.input.sizes[d], {problem.input.strides[d], problem.output.strides[d],
                                         StrideOf(problem.scale, d), StrideOf(problem.bias, d)});
  }
  inside = SortedByStride(inside, 0);
  const auto row = TakeInnermost(&inside);
  if (inside.rank > 0 || row.strides[0] != 1 || row.strides[1] != 1 || row.strides[2] > 1 ||
      row.strides[3] > 1) {
    *why_not = "sets are not rows of neighbours";
    return {};
  }
  if (row.size < kShortest || row.size > longest) {
    *why_not = StrCat("rows have ", row.size, " elements, not ", kShortest, " to ", longest);
    return {};
  }
  result.length = row.size;
  result.has_scale = problem.scale.has_value();
  result.has_bias = problem.bias.has_value();
  result.scale_along_row = row.strides[2] == 1;
  result.bias_along_row = row.strides[3] == 1;
  return result;
}

}  // namespace anydml
