// Which of several updates of one slot wins: all claim it first, and the latest position holds
// it when all have.
#pragma once

#include "ops/scatter/cuda_targets.cuh"

namespace anydml {

// Entries are positions plus one; 0 is free, and all are 0 before the first claim.
struct ClaimTable {
  enum class Kind {
    kNone,    // no two positions have the same target
    kDirect,  // an entry per slot
    kHashed,  // open addressing, for few positions and many slots: stays in the cache
  };

  Kind kind = Kind::kNone;
  uint32_t count = 0;  // of entries; a power of two and at least twice the positions when hashed
  uint32_t* entries = nullptr;
  uint32_t* first_bad = nullptr;  // see KeepFirstBad; null when nobody wants to know
};

// Where the search for a slot begins. Every bit of the slot counts: strides of the output must
// not become runs in the table.
__device__ inline uint32_t HashedEntry(const ClaimTable& table, uint32_t slot) {
  slot = (slot ^ (slot >> 16)) * 0x7FEB352Du;
  slot = (slot ^ (slot >> 15)) * 0x846CA68Bu;
  return (slot ^ (slot >> 16)) & (table.count - 1);
}

// An entry is of the slot of whichever position is in it: keys are looked up in the indices,
// which costs something only where two slots meet. Even if somebody writes to the indices
// meanwhile there is a free entry at the end of every search.
__device__ inline void ClaimHashed(const ClaimTable& table, const DeviceTuples& tuples, uint32_t slot,
                                   uint32_t claim) {
  for (uint32_t at = HashedEntry(table, slot);; at = (at + 1) & (table.count - 1)) {
    const uint32_t found = atomicCAS(&table.entries[at], 0, claim);
    if (found == 0) return;
    if (ReadTarget(tuples, found - 1).slot == slot) {
      atomicMax(&table.entries[at], claim);
      return;
    }
  }
}

__device__ inline void Claim(const ClaimTable& table, const DeviceTuples& tuples, uint32_t slot,
                             uint32_t position) {
  if (table.kind == ClaimTable::Kind::kDirect) {
    atomicMax(&table.entries[slot], position + 1);
  } else if (table.kind == ClaimTable::Kind::kHashed) {
    ClaimHashed(table, tuples, slot, position + 1);
  }
}

// Past the L1 cache, which may hold what was there before the claims.
__device__ inline uint32_t LoadEntry(const ClaimTable& table, uint32_t at) {
  return *static_cast<const volatile uint32_t*>(&table.entries[at]);
}

// Whether `position` holds its slot, after all claims.
__device__ inline bool Holds(const ClaimTable& table, const DeviceTuples& tuples, uint32_t slot,
                             uint32_t position) {
  const uint32_t claim = position + 1;
  if (table.kind == ClaimTable::Kind::kNone) return true;
  if (table.kind == ClaimTable::Kind::kDirect) return LoadEntry(table, slot) == claim;
  for (uint32_t at = HashedEntry(table, slot);; at = (at + 1) & (table.count - 1)) {
    const uint32_t found = LoadEntry(table, at);
    if (found == claim) return true;
    if (found == 0 || ReadTarget(tuples, found - 1).slot == slot) return false;
  }
}

inline constexpr uint32_t kClaimsPerThread = 4;

// Claims for positions [first, first + blockDim.x * kClaimsPerThread). All threads of the block.
__device__ inline void ClaimBlock(const ClaimTable& table, const DeviceTuples& tuples, uint64_t first) {
  ScatterTarget targets[kClaimsPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kClaimsPerThread; ++i) {
    const uint64_t position = first + i * blockDim.x + threadIdx.x;
    targets[i] = {};
    if (position < tuples.positions) targets[i] = ReadTarget(tuples, static_cast<uint32_t>(position));
  }
#pragma unroll
  for (uint32_t i = 0; i < kClaimsPerThread; ++i) {
    const uint64_t position = first + i * blockDim.x + threadIdx.x;
    const auto number = static_cast<uint32_t>(position);
    const bool bad = position < tuples.positions && !targets[i].in_range;
    if (table.first_bad != nullptr) KeepFirstBad(bad, number, table.first_bad);
    // The next position is later: runs of equal targets, which would all wait for the same
    // entry, become one claim per warp.
    const uint32_t next_slot = __shfl_down_sync(~0u, targets[i].slot, 1);
    const bool next_claims = __shfl_down_sync(~0u, targets[i].in_range, 1) && threadIdx.x % 32 != 31;
    const bool loses = next_claims && next_slot == targets[i].slot;
    if (targets[i].in_range && !loses) Claim(table, tuples, targets[i].slot, number);
  }
}

}  // namespace anydml
