// Sharing a run between threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernel/kernel.h"

namespace anydml {

// Calls body(i) once for every i below `count`, on the executor's threads when there is one.
template <typename Body>
void ParallelFor(Executor* executor, uint32_t count, Body&& body) {
  if (executor == nullptr || count <= 1) {
    for (uint32_t i = 0; i < count; ++i) body(i);
    return;
  }
  using Function = std::remove_reference_t<Body>;
  executor->Run(
      count, [](void* context, uint32_t i) { (*static_cast<Function*>(context))(i); },
      const_cast<std::remove_const_t<Function>*>(&body));
}

// The begin of part `part` of `parts` nearly equal, contiguous parts of [0, total);
// part `parts` begins at the end.
inline uint64_t PartBegin(uint64_t total, uint32_t part, uint32_t parts) {
  return total / parts * part + total % parts * part / parts;
}

}  // namespace anydml
