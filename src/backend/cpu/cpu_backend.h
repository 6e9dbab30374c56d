// The host's processors as an adapter: memory is host memory; kernels run on the queue's thread and may
// spread over more threads.
#pragma once

#include "backend/backend.h"

namespace anydml {

// The one CPU backend; lives as long as the process.
Backend* GetCpuBackend();

}  // namespace anydml
