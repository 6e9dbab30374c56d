// Launches planned copies.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "ops/device/copies.h"
#include "ops/device/cuda/kernel_chain.cuh"

namespace anydml {

// `fill`: the bits of an element of PlacedCopy::kFill.
void LaunchCopies(const DeviceCopies& copies, const KernelArguments& arguments, uint64_t fill,
                  KernelChain* chain);

}  // namespace anydml
