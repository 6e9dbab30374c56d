// Decides which of several updates of one slot wins. All claim it first; the latest position holds it in the
// end, and all others are marked as lost.
#pragma once

#include "ops/scatter/cuda/targets.cuh"

namespace anydml {

__device__ inline uint32_t* DirectEntries(const ClaimTable& table) {
  return static_cast<uint32_t*>(table.entries);
}

// Bypasses L1, which may hold the contents before the claims.
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

// The first entry of the search for a slot. Every bit of the slot counts, so that strides of the output do
// not become runs in the table.
__device__ inline uint32_t HashedEntry(const ClaimTable& table, uint32_t slot) {
  slot = (slot ^ (slot >> 16)) * 0x7FEB352Du;
  slot = (slot ^ (slot >> 15)) * 0x846CA68Bu;
  return (slot ^ (slot >> 16)) & (table.count - 1);
}

// The step of a search depends on the slot: otherwise, occupied entries would grow into long runs, and all
// threads would wait for the slowest of a million searches.
__device__ inline void ClaimHashed(const ClaimTable& table, uint32_t slot, uint32_t claim) {
  auto* const entries = static_cast<unsigned long long*>(table.entries);
  const unsigned long long wanted = static_cast<uint64_t>(slot) << 32 | claim;
  const uint32_t step = slot * 0x9E3779B9u >> 8 | 1;  // odd, so that it reaches every entry
  for (uint32_t at = HashedEntry(table, slot);; at = (at + step) & (table.count - 1)) {
    unsigned long long found = atomicCAS(&entries[at], 0ull, wanted);
    if (found == 0) return;
    if (found >> 32 != slot) continue;
    if (found < wanted) found = atomicMax(&entries[at], wanted);
    MarkLost(table, static_cast<uint32_t>(found), claim);
    return;
  }
}

// Runs of equal targets, which would all wait for the same entry, become one claim per warp: tests whether
// the next, later position has the same target as this one.
__device__ inline bool LosesToNext(const ClaimTable& table, const ScatterTarget& target, uint32_t position) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t next_slot = __shfl_down_sync(~0u, target.slot, 1);
  const bool next_claims = __shfl_down_sync(~0u, target.in_range, 1) && lane != 31;
  const bool loses = target.in_range && next_claims && next_slot == target.slot;
  const uint32_t losers = __ballot_sync(~0u, loses);
  if (losers != 0 && lane == 0 && table.lost != nullptr) atomicOr(&table.lost[position / 32], losers);
  return loses;
}

// Claims for `position`, if it exists. All lanes of a warp must call it, with consecutive positions from a
// multiple of 32 on.
__device__ inline void ClaimPosition(const ClaimTable& table, const DeviceTuples& tuples, uint64_t position) {
  const auto number = static_cast<uint32_t>(position);
  const bool exists = position < tuples.positions;
  ScatterTarget target = {};
  if (exists) target = ReadTarget(tuples, number);
  if (table.first_bad != nullptr) KeepFirstBad(exists && !target.in_range, number, table.first_bad);
  if (table.kind == ClaimTable::Kind::kNone) return;
  const bool loses = LosesToNext(table, target, number);
  if (!target.in_range || loses) return;
  if (table.kind == ClaimTable::Kind::kDirect) {
    ClaimDirect(table, target.slot, number + 1);
  } else {
    ClaimHashed(table, target.slot, number + 1);
  }
}

}  // namespace anydml
