// The work on a pooling's windows in units that threads share.
#pragma once

#include <algorithm>

#include "ops/common/nest_parts.h"
#include "ops/pooling/problem.h"

namespace anydml::pooling {

// The number of parts of `units` for the threads; pooling is bandwidth-bound.
inline uint32_t PartsOf(const PoolingShape& shape, DataType type, uint64_t units, uint32_t threads) {
  const uint64_t bytes = (shape.Inputs() + shape.Windows()) * BitSize(type) / 8;
  return static_cast<uint32_t>(std::min<uint64_t>(units, PartsForBytes(bytes, threads)));
}

// Calls body(part, begin, end) with the units [begin, end) of each part.
template <typename Body>
void ForParts(Executor* executor, uint64_t units, uint32_t parts, Body&& body) {
  ParallelFor(executor, parts, [&](uint32_t part) {
    body(part, PartBegin(units, part, parts), PartBegin(units, part + 1, parts));
  });
}

}  // namespace anydml::pooling
