// The kernels of scatter on a device. algorithms.cu puts them together.
#pragma once

#include "ops/device/cuda/copy.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/scatter/cuda/claims.cuh"

namespace anydml {

void Launch(const ScatterLaunch<ClearParameters>& launch, KernelChain* chain);
void Launch(const ScatterLaunch<PrepareParameters>& launch, KernelChain* chain);
void Launch(const ScatterLaunch<WriteParameters>& launch, KernelChain* chain);
void Launch(const ScatterLaunch<ScatterGatherParameters>& launch, KernelChain* chain);
void Launch(const ScatterLaunch<SmallParameters>& launch, KernelChain* chain);
// Writes only the note, for kernels that cannot know when all positions have been seen.
void LaunchNote(KernelChain* chain, const WriteParameters& parameters);

}  // namespace anydml
