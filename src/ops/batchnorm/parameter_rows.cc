#include "ops/batchnorm/parameter_rows.h"

#include "base/status.h"

namespace anydml {
namespace {

uint64_t StrideOf(const TensorDesc& tensor, uint32_t d) {
  return tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
}

// Finds the rows and the strides of their elements; false, with a reason, if there are none.
bool FindRows(const BatchNormProblem& problem, BatchNormRows* found, LoopNest<6>::Offsets* strides,
              std::string* why_not) {
  constexpr size_t kLoadAndStore = 2;
  if (problem.kind != BatchNormProblem::kInference ||
      problem.finish.program.instructions.size() > kLoadAndStore) {
    *why_not = "computes no sums and no activations";
    return false;
  }
  LoopNest<6> rows;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    rows.Append(problem.input.sizes[d],
                {problem.input.strides[d], problem.outputs[0].strides[d], StrideOf(*problem.mean, d),
                 StrideOf(*problem.variance, d), StrideOf(problem.scale, d), StrideOf(*problem.bias, d)});
  }
  rows = SortedByStride(rows, 1);
  const auto row = TakeInnermost(&rows);
  *found = {rows, row.size};
  *strides = row.strides;
  return true;
}

}  // namespace

std::optional<BatchNormRows> RowsOf(const BatchNormProblem& problem, uint64_t shortest,
                                    std::string* why_not) {
  BatchNormRows rows;
  LoopNest<6>::Offsets strides;
  if (!FindRows(problem, &rows, &strides, why_not)) return std::nullopt;
  if (strides != LoopNest<6>::Offsets{1, 1, 0, 0, 0, 0} || rows.length < shortest) {
    *why_not = StrCat("there are no rows of ", shortest, " or more neighbours with the same parameters");
    return std::nullopt;
  }
  return rows;
}

std::optional<BatchNormRows> ChannelRowsOf(const BatchNormProblem& problem, uint64_t shortest,
                                           std::string* why_not) {
  BatchNormRows rows;
  LoopNest<6>::Offsets strides;
  if (!FindRows(problem, &rows, &strides, why_not)) return std::nullopt;
  constexpr uint64_t kMostChannels = 1 << 16;  // their parameters are prepared by one thread
  bool same = strides == LoopNest<6>::Offsets{1, 1, 1, 1, 1, 1} && rows.length >= shortest &&
              rows.length <= kMostChannels;
  const auto last = OffsetsOf(rows.rows, Iterations(rows.rows) - 1);
  same = same && last[2] == 0 && last[3] == 0 && last[4] == 0 && last[5] == 0;
  if (!same) {
    *why_not = StrCat("there are no rows of ", shortest, " to ", kMostChannels,
                      " neighbours with the same parameters");
    return std::nullopt;
  }
  return rows;
}

}  // namespace anydml
