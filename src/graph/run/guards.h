// Puts the memory of one part of a graph between inaccessible pages, to find kernels that access memory
// outside their tensors: ANYDML_GRAPH_GUARDS=1.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace anydml {

// Copies the buffers in `memory` to places between two inaccessible pages, ending at the second one; copies
// the contents back on destruction. Overlapping buffers share a copy.
class GuardedPart {
 public:
  // Replaces the data pointer of each buffer; `buffers` outside `memory` are left alone.
  GuardedPart(const Buffer& memory, std::vector<Buffer*> buffers);
  ~GuardedPart();
  GuardedPart(const GuardedPart&) = delete;
  GuardedPart& operator=(const GuardedPart&) = delete;

 private:
  struct Copy {
    std::byte* original;
    uint64_t bytes;
    std::byte* pages;  // including the guard pages
    uint64_t pages_bytes;
    std::byte* data;
  };
  std::vector<Copy> copies_;
};

}  // namespace anydml
