// Memory of one part of a graph between pages that nobody may touch, for finding kernels that leave their
// tensors: ANYDML_GRAPH_GUARDS=1.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace anydml {

// Puts buffers that lie in `memory` into copies that end where a page does that kills whoever touches it, and
// start behind another one; gives the contents back when it goes. Buffers that overlap share a copy.
class GuardedPart {
 public:
  // Replaces the data of each; `buffers` may hold others, too.
  GuardedPart(const Buffer& memory, std::vector<Buffer*> buffers);
  ~GuardedPart();
  GuardedPart(const GuardedPart&) = delete;
  GuardedPart& operator=(const GuardedPart&) = delete;

 private:
  struct Copy {
    std::byte* original;
    uint64_t bytes;
    std::byte* pages;  // with the guards
    uint64_t pages_bytes;
    std::byte* data;
  };
  std::vector<Copy> copies_;
};

}  // namespace anydml
