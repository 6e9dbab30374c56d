// The host's processors as an adapter: memory is host memory, kernels run where
// the queue's thread is (and may spread over more threads themselves).
#pragma once

#include "backend/backend.h"

namespace anydml {

// The one CPU backend; lives as long as the process.
Backend* GetCpuBackend();

}  // namespace anydml
