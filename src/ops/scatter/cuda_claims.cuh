// Which of several updates of one slot wins. All claim it first; the latest position holds it
// in the end, and all others are marked as lost.
#pragma once

#include "ops/scatter/cuda_targets.cuh"

namespace anydml {

// All memory is 0 before the first claim. A claim is a position plus one.
struct ClaimTable {
  enum class Kind {
    kNone,    // no two positions have the same target
    kDirect,  // an entry per slot: the claim
    kHashed,  // open addressing, for few positions and many slots: slot and claim. Stays in the cache.
  };

  Kind kind = Kind::kNone;
  uint32_t count = 0;         // of entries; when hashed a power of two, at least twice the positions
  void* entries = nullptr;    // uint32_t, or uint64_t when hashed
  uint32_t* lost = nullptr;   // a bit per position; null when entries are all that is wanted
  uint32_t* first_bad = nullptr;  // see KeepFirstBad; null when nobody wants to know

  uint64_t entry_bytes() const { return kind == Kind::kHashed ? sizeof(uint64_t) : sizeof(uint32_t); }
};

inline uint64_t LostWords(uint64_t positions) { return (positions + 31) / 32; }

__device__ inline uint32_t* DirectEntries(const ClaimTable& table) {
  return static_cast<uint32_t*>(table.entries);
}

// Past the L1 cache, which may hold what was there before the claims.
__device__ inline uint32_t LoadAfterClaims(const uint32_t* word) {
  return *static_cast<const volatile uint32_t*>(word);
}

__device__ inline bool HasLost(const ClaimTable& table, uint32_t position) {
  return table.kind != ClaimTable::Kind::kNone &&
         (LoadAfterClaims(&table.lost[position / 32]) >> (position % 32) & 1) != 0;
}

// The earlier of two claims of a slot.
__device__ inline void MarkLost(const ClaimTable& table, uint32_t claim, uint32_t other) {
  const uint32_t position = min(claim, other) - 1;
  atomicOr(&table.lost[position / 32], 1u << (position % 32));
}

__device__ inline void ClaimDirect(const ClaimTable& table, uint32_t slot, uint32_t claim) {
  const uint32_t found = atomicMax(&DirectEntries(table)[slot], claim);
  if (found != 0 && table.lost != nullptr) MarkLost(table, found, claim);
}

// Where the search for a slot begins. Every bit of the slot counts: strides of the output must
// not become runs in the table.
__device__ inline uint32_t HashedEntry(const ClaimTable& table, uint32_t slot) {
  slot = (slot ^ (slot >> 16)) * 0x7FEB352Du;
  slot = (slot ^ (slot >> 15)) * 0x846CA68Bu;
  return (slot ^ (slot >> 16)) & (table.count - 1);
}

// A step in the search for a slot's entry, `found` being what a claim met there instead of 0.
// False when it goes on.
__device__ inline bool SettleHashed(const ClaimTable& table, unsigned long long* entry,
                                    unsigned long long found, unsigned long long wanted) {
  if (found == 0) return true;
  if (found >> 32 != wanted >> 32) return false;
  if (found < wanted) found = atomicMax(entry, wanted);
  MarkLost(table, static_cast<uint32_t>(found), static_cast<uint32_t>(wanted));
  return true;
}

// Claims for up to kCount positions, those with a bit in `pending`, side by side: most of the
// time is spent waiting for answers.
template <uint32_t kCount>
__device__ void ClaimHashed(const ClaimTable& table, const ScatterTarget (&targets)[kCount],
                            const uint32_t (&positions)[kCount], uint32_t pending) {
  auto* entries = static_cast<unsigned long long*>(table.entries);
  unsigned long long wanted[kCount], found[kCount];
  uint32_t at[kCount];
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    wanted[i] = static_cast<uint64_t>(targets[i].slot) << 32 | (positions[i] + 1);
    at[i] = HashedEntry(table, targets[i].slot);
  }
  while (pending != 0) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      if (pending >> i & 1) found[i] = atomicCAS(&entries[at[i]], 0ull, wanted[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      if ((pending >> i & 1) == 0) continue;
      if (SettleHashed(table, &entries[at[i]], found[i], wanted[i])) pending &= ~(1u << i);
      at[i] = (at[i] + 1) & (table.count - 1);
    }
  }
}

// Runs of equal targets, which would all wait for the same entry, become one claim per warp:
// whether the next position, which is later, has the same target as this one.
__device__ inline bool LosesToNext(const ClaimTable& table, const ScatterTarget& target, uint32_t position) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t next_slot = __shfl_down_sync(~0u, target.slot, 1);
  const bool next_claims = __shfl_down_sync(~0u, target.in_range, 1) && lane != 31;
  const bool loses = target.in_range && next_claims && next_slot == target.slot;
  const uint32_t losers = __ballot_sync(~0u, loses);
  if (losers != 0 && lane == 0 && table.lost != nullptr) atomicOr(&table.lost[position / 32], losers);
  return loses;
}

inline constexpr uint32_t kClaimsPerThread = 4;

// Claims for positions [first, first + blockDim.x * kClaimsPerThread). All threads of the block;
// `first` is a multiple of 32.
__device__ inline void ClaimBlock(const ClaimTable& table, const DeviceTuples& tuples, uint64_t first) {
  ScatterTarget targets[kClaimsPerThread];
  uint32_t positions[kClaimsPerThread];
  uint32_t pending = 0;
#pragma unroll
  for (uint32_t i = 0; i < kClaimsPerThread; ++i) {
    const uint64_t position = first + i * blockDim.x + threadIdx.x;
    positions[i] = static_cast<uint32_t>(position);
    targets[i] = {};
    if (position < tuples.positions) targets[i] = ReadTarget(tuples, positions[i]);
  }
#pragma unroll
  for (uint32_t i = 0; i < kClaimsPerThread; ++i) {
    const bool bad = !targets[i].in_range && first + i * blockDim.x + threadIdx.x < tuples.positions;
    if (table.first_bad != nullptr) KeepFirstBad(bad, positions[i], table.first_bad);
    if (table.kind == ClaimTable::Kind::kNone) continue;
    const bool loses = LosesToNext(table, targets[i], positions[i]);
    if (targets[i].in_range && !loses) pending |= 1u << i;
  }
  if (table.kind == ClaimTable::Kind::kHashed) {
    ClaimHashed(table, targets, positions, pending);
  } else if (table.kind == ClaimTable::Kind::kDirect) {
#pragma unroll
    for (uint32_t i = 0; i < kClaimsPerThread; ++i) {
      if (pending >> i & 1) ClaimDirect(table, targets[i].slot, positions[i] + 1);
    }
  }
}

}  // namespace anydml
