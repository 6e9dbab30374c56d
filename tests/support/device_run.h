// Running a kernel of a GPU's backend on buffers of the host, for tests.
#pragma once

#include <span>

#include "backend/backend.h"

namespace anydml::testing {

// The first GPU of this kind ("cuda"); null when there is none.
Backend* FindGpu(std::string_view kind);

// Copies the blocks to the device, runs the kernel (or initialises it) with `arguments`, whose buffers lie in
// the blocks, and copies the blocks back. Alignment to 16 bytes is kept, no more.
Status RunOnDevice(Backend& backend, const Kernel& kernel, bool initialize, std::span<const Buffer> blocks,
                   const KernelArguments& arguments);

}  // namespace anydml::testing
