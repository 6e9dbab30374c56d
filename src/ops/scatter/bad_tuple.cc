#include <algorithm>

#include "base/dispatch.h"
#include "base/status.h"
#include "ops/common/coordinates.h"
#include "ops/scatter/problem.h"

namespace anydml {
namespace {

bool InRange(const ScatterProblem& p, int64_t value, uint64_t size) {
  if (p.indices.type == DataType::kUInt64 || value >= 0) return static_cast<uint64_t>(value) < size;
  return p.wraps && value >= -static_cast<int64_t>(size);
}

std::string ValueToString(const ScatterProblem& p, int64_t value) {
  return p.indices.type == DataType::kUInt64 ? StrCat(static_cast<uint64_t>(value)) : StrCat(value);
}

}  // namespace

std::string DescribeBadTuple(const ScatterProblem& p, const int64_t* values, Dimensions at) {
  const bool nd = p.kind == ScatterProblem::Kind::kNd;
  const uint32_t last = p.indices.rank - 1;
  std::string position;
  for (uint32_t d = 0; d < p.indices.rank; ++d) {
    position += nd && d == last ? std::string(":") : std::to_string(at[d]);
    if (d < last) position += ",";
  }
  std::string list;
  uint32_t bad = p.tuple_size();
  for (uint32_t c = 0; c < p.tuple_size(); ++c) {
    list += StrCat(c == 0 ? "" : ",", ValueToString(p, values[c]));
    if (bad == p.tuple_size() && !InRange(p, values[c], p.output.sizes[p.target_dimension(c)])) bad = c;
  }
  bad = std::min(bad, p.tuple_size() - 1);  // none, if the indices were changed meanwhile
  const uint32_t dimension = p.target_dimension(bad);
  const uint64_t size = p.output.sizes[dimension];
  const std::string low = p.wraps ? StrCat("-", size) : "0";
  const std::string dropped = "; updates with an index out of range are dropped";
  if (!nd) {
    return StrCat("SCATTER_ELEMENTS: IndicesTensor[", position, "] is ", list,
                  " but InputTensor.Sizes[Axis=", dimension, "] is ", size, "; it must be in [", low, ", ",
                  size - 1, "]", dropped);
  }
  return StrCat("SCATTER_ND: the tuple IndicesTensor[", position, "] is {", list, "} but InputTensor.Sizes[",
                dimension, "] is ", size, "; its component ", bad, " must be in [", low, ", ", size - 1, "]",
                dropped);
}

std::string DescribeBadTuple(const ScatterProblem& problem, const std::byte* indices, Dimensions at) {
  int64_t values[kMaxDimensions] = {};
  DispatchByIndexType(problem.indices.type, [&]<typename Index>() {
    for (uint32_t c = 0; c < problem.tuple_size(); ++c) {
      if (problem.kind == ScatterProblem::Kind::kNd) at[problem.indices.rank - 1] = c;
      values[c] = static_cast<int64_t>(Load<Index>(indices, ElementOffset(problem.indices, at)));
    }
  });
  return DescribeBadTuple(problem, values, at);
}

}  // namespace anydml
