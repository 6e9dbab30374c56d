#include "base/dispatch.h"
#include "base/status.h"
#include "ops/common/coordinates.h"
#include "ops/gather/problem.h"

namespace anydml {
namespace {

bool InRange(const GatherProblem& p, int64_t value, uint64_t size) {
  if (p.indices.type == DataType::kUInt64 || value >= 0) return static_cast<uint64_t>(value) < size;
  return p.wraps && value >= -static_cast<int64_t>(size);
}

std::string ValueToString(const GatherProblem& p, int64_t value) {
  return p.indices.type == DataType::kUInt64 ? StrCat(static_cast<uint64_t>(value)) : StrCat(value);
}

}  // namespace

std::string DescribeBadIndex(const GatherProblem& p, const int64_t* values, const Dimensions& at) {
  const bool nd = p.kind == GatherProblem::Kind::kNd;
  const uint32_t last = p.indices.rank - 1;
  std::string position;
  for (uint32_t d = 0; d <= last; ++d) {
    position += nd && d == last ? std::string(":") : std::to_string(at[d]);
    if (d < last) position += ",";
  }
  std::string list;
  uint32_t bad = 0;  // the last one, if the indices were changed meanwhile
  bool found = false;
  for (uint32_t c = 0; c < p.tuple_size(); ++c) {
    list += StrCat(c == 0 ? "" : ",", ValueToString(p, values[c]));
    if (!found) bad = c;
    found |= !InRange(p, values[c], p.input.sizes[p.source_dimension(c)]);
  }
  const uint32_t dimension = p.source_dimension(bad);
  const uint64_t size = p.input.sizes[dimension];
  const std::string low = p.wraps ? StrCat("-", size) : "0";
  const std::string clamped = "; indices out of range are clamped";
  if (!nd) {
    return StrCat(p.name, ": IndicesTensor[", position, "] is ", list,
                  " but InputTensor.Sizes[Axis=", dimension, "] is ", size, "; it must be in [", low, ", ",
                  size - 1, "]", clamped);
  }
  return StrCat(p.name, ": the tuple IndicesTensor[", position, "] is {", list, "} but InputTensor.Sizes[",
                dimension, "] is ", size, "; its component ", bad, " must be in [", low, ", ", size - 1, "]",
                clamped);
}

std::string DescribeBadIndex(const GatherProblem& problem, const std::byte* indices, Dimensions at) {
  int64_t values[kMaxDimensions] = {};
  DispatchByIndexType(problem.indices.type, [&]<typename Index>() {
    for (uint32_t c = 0; c < problem.tuple_size(); ++c) {
      if (problem.kind == GatherProblem::Kind::kNd) at[problem.indices.rank - 1] = c;
      values[c] = static_cast<int64_t>(Load<Index>(indices, ElementOffset(problem.indices, at)));
    }
  });
  return DescribeBadIndex(problem, values, at);
}

}  // namespace anydml
