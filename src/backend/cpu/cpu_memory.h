// Host memory in pages that are committed when first touched.
#pragma once

#include "backend/backend.h"

namespace anydml {

// At least 64 KiB aligned, zero-filled. Sizes above `limit` fail with kOutOfMemory.
Status AllocateCpuMemory(uint64_t bytes, uint64_t limit, std::shared_ptr<Memory>* memory);

}  // namespace anydml
