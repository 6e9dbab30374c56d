#include <algorithm>

#include "base/status.h"
#include "ops/common/coordinates.h"
#include "ops/common/dispatch.h"
#include "ops/scatter/problem.h"

namespace anydml {
namespace {

template <typename Index>
bool InRange(Index index, uint64_t size, bool wraps) {
  if (index >= 0) return static_cast<uint64_t>(index) < size;
  return wraps && static_cast<int64_t>(index) >= -static_cast<int64_t>(size);
}

template <typename Index>
std::string Describe(const ScatterProblem& p, const std::byte* indices, Dimensions at) {
  const bool nd = p.kind == ScatterProblem::Kind::kNd;
  const uint32_t last = p.indices.rank - 1;
  std::string position;
  for (uint32_t d = 0; d < p.indices.rank; ++d) {
    position += nd && d == last ? std::string(":") : std::to_string(at[d]);
    if (d < last) position += ",";
  }
  std::string values;
  uint32_t bad = p.tuple_size();
  for (uint32_t c = 0; c < p.tuple_size(); ++c) {
    if (nd) at[last] = c;
    const auto index = Load<Index>(indices, ElementOffset(p.indices, at));
    values += StrCat(c == 0 ? "" : ",", index);
    if (bad == p.tuple_size() && !InRange(index, p.output.sizes[p.target_dimension(c)], p.wraps)) bad = c;
  }
  bad = std::min(bad, p.tuple_size() - 1);  // none, if somebody wrote to the indices meanwhile
  const uint32_t dimension = p.target_dimension(bad);
  const uint64_t size = p.output.sizes[dimension];
  const std::string low = p.wraps ? StrCat("-", size) : "0";
  const std::string dropped = "; updates with an index out of range are dropped";
  if (!nd) {
    return StrCat("SCATTER_ELEMENTS: IndicesTensor[", position, "] is ", values,
                  " but InputTensor.Sizes[Axis=", dimension, "] is ", size, "; it must be in [", low, ", ",
                  size - 1, "]", dropped);
  }
  return StrCat("SCATTER_ND: the tuple IndicesTensor[", position, "] is {", values,
                "} but InputTensor.Sizes[", dimension, "] is ", size, "; its component ", bad,
                " must be in [", low, ", ", size - 1, "]", dropped);
}

}  // namespace

std::string DescribeBadTuple(const ScatterProblem& problem, const std::byte* indices, Dimensions at) {
  return DispatchByIndexType(problem.indices.type,
                             [&]<typename Index>() { return Describe<Index>(problem, indices, at); });
}

}  // namespace anydml
