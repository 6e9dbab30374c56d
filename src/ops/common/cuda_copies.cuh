// Launches planned copies.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/device/copies.h"

namespace anydml {

// `fill`: the bits of an element of PlacedCopy::kFill.
void LaunchCopies(const DeviceCopies& copies, const KernelArguments& arguments, uint64_t fill,
                  KernelChain* chain);

}  // namespace anydml
