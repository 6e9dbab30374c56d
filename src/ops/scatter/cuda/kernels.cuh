// The kernels of scatter on a device, and what they are given. algorithms.cu puts them together.
#pragma once

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_copy.cuh"
#include "ops/scatter/cuda/claims.cuh"

namespace anydml {

struct ClearParameters {
  uint4* words;  // the whole of the claims
  uint64_t count;
};
void LaunchClear(KernelChain* chain, const ClearParameters& parameters, uint32_t multiprocessors);

// Claims and the copy of the input have nothing to do with each other, and one waits for the
// cache while the other waits for memory: blocks of both kinds run side by side.
struct PrepareParameters {
  DeviceTuples tuples;
  ClaimTable claims;
  DeviceCopy copy;
  uint64_t claim_blocks;  // the launch finds these
  uint64_t copy_blocks;
};
void LaunchPrepare(KernelChain* chain, bool claims, PrepareParameters parameters);

// Every position that has not lost writes its slice. Slices are walked through in units.
struct WriteParameters {
  DeviceTuples tuples;
  ClaimTable claims;
  const std::byte* updates;
  std::byte* output;
  DataErrorNote* note;
  uint32_t unit_bytes;
  FastDivisor slice_units;
  bool contiguous;  // slices are, in updates and output
  DeviceNest<2> slice;
  uint32_t units;  // of all slices
};
void LaunchWrite(KernelChain* chain, const WriteParameters& parameters);
// Only the note, for kernels that cannot know when all positions have been seen.
void LaunchNote(KernelChain* chain, const WriteParameters& parameters);

// For contiguous slices: every slot takes its slice from the update that holds it, or from the
// input. What is replaced is neither read nor written twice. The first slots were copied while
// claims were made, so that there was something to do meanwhile: updates of those are written.
struct GatherParameters {
  WriteParameters write;  // claims are kDirect
  const std::byte* input;
  DeviceNest<2> slots;    // input and output, in bytes
  uint32_t units;         // of all slots
  uint32_t copied_slots;  // the first ones
  uint64_t write_blocks;  // the launch finds this
};
void LaunchGather(KernelChain* chain, GatherParameters parameters);

// Everything in one block, claims in its own memory: for problems that wait for nothing but
// latencies.
struct SmallParameters {
  DeviceCopy copy;
  WriteParameters write;  // claims.entries and so on are the block's
};
inline constexpr uint32_t kSmallEntries = 4096;
inline constexpr uint32_t kSmallPositions = kSmallEntries / 2;
void LaunchSmall(KernelChain* chain, const SmallParameters& parameters);

}  // namespace anydml
