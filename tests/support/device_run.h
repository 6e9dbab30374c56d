// Runs a kernel of a GPU's backend on host buffers, for tests.
#pragma once

#include <span>

#include "backend/backend.h"

namespace anydml::testing {

// The first GPU of this kind ("cuda"); null if there is none.
Backend* FindGpu(std::string_view kind);

// Copies the blocks to the device, runs the kernel (or initialises it) with `arguments`, whose buffers are in
// the blocks, and copies the blocks back. Preserves alignment to 16 bytes, no more.
Status RunOnDevice(Backend& backend, const Kernel& kernel, bool initialize, std::span<const Buffer> blocks,
                   const KernelArguments& arguments);

}  // namespace anydml::testing
