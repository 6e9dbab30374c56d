// From index tuples to places in the output, on a device.
#pragma once

#include "kernel/kernel.h"
#include "ops/scatter/plan.h"

namespace anydml {

struct ScatterTarget {
  bool in_range;
  uint32_t slot;
  uint64_t updates;  // first byte of the slice
  uint64_t output;   // and of its target
};

// Index `at` as in memory. Nothing waits for it until it is extended, so a thread can have several loads in
// flight.
__device__ inline uint64_t LoadRawIndex(const DeviceTuples& tuples, uint64_t at) {
  if (tuples.wide) return __ldg(reinterpret_cast<const unsigned long long*>(tuples.indices) + at);
  return __ldg(reinterpret_cast<const uint32_t*>(tuples.indices) + at);
}

__device__ inline int64_t Extended(const DeviceTuples& tuples, uint64_t raw) {
  const bool narrow_signed = !tuples.wide && tuples.is_signed;
  return narrow_signed ? int64_t{static_cast<int32_t>(raw)} : static_cast<int64_t>(raw);
}

__device__ inline int64_t LoadIndex(const DeviceTuples& tuples, uint64_t at) {
  return Extended(tuples, LoadRawIndex(tuples, at));
}

// The offsets of a position in tuples.nest, and the first index of its tuple.
struct TupleStart {
  uint64_t at[4];
  uint64_t raw_index;
};
__device__ inline TupleStart LoadTupleStart(const DeviceTuples& tuples, uint32_t position) {
  TupleStart start;
  tuples.nest.OffsetsOf(position, start.at);
  start.raw_index = LoadRawIndex(tuples, start.at[DeviceTuples::kIndices] + tuples.tuple[0].index_offset);
  return start;
}

// Reads the rest of the tuple and checks it. The places are meaningless if it is out of range.
__device__ inline ScatterTarget TargetOf(const DeviceTuples& tuples, const TupleStart& start) {
  const uint64_t(&at)[4] = start.at;
  ScatterTarget target = {true, static_cast<uint32_t>(at[DeviceTuples::kSlot]), at[DeviceTuples::kUpdates],
                          at[DeviceTuples::kOutput]};
  for (uint32_t c = 0; c < tuples.tuple_size; ++c) {
    const DeviceTuples::Component& component = tuples.tuple[c];
    const int64_t value = c == 0 ? Extended(tuples, start.raw_index)
                                 : LoadIndex(tuples, at[DeviceTuples::kIndices] + component.index_offset);
    // Modulo 2^64 this wraps those in [-size, -1] and leaves all other negative ones, and large unsigned
    // ones, far above any size.
    const uint64_t index = static_cast<uint64_t>(value) + (value < 0 ? component.wrap : 0);
    target.in_range &= index < component.size;
    target.slot += static_cast<uint32_t>(index) * component.slot_stride;
    target.output += index * component.output_stride;
  }
  return target;
}

__device__ inline ScatterTarget ReadTarget(const DeviceTuples& tuples, uint32_t position) {
  return TargetOf(tuples, LoadTupleStart(tuples, position));
}

// The first byte of the slice of `position` in the updates.
__device__ inline uint64_t UpdatesOffset(const DeviceTuples& tuples, uint32_t position) {
  uint64_t at[4];
  tuples.nest.OffsetsOf(position, at);
  return at[DeviceTuples::kUpdates];
}

// The lowest position out of range, kept as the maximum of its complement, so that cleared memory means that
// there is none. All lanes of a warp must call it.
__device__ inline void KeepFirstBad(bool bad, uint32_t position, uint32_t* first_bad) {
  if (__ballot_sync(~0u, bad) == 0) return;
  const uint32_t first = __reduce_max_sync(~0u, bad ? ~position : 0);
  if (threadIdx.x % 32 == 0) atomicMax(first_bad, first);
}

// For one thread, after all have called KeepFirstBad.
__device__ inline void WriteNote(const DeviceTuples& tuples, uint32_t first_bad, DataErrorNote* note) {
  if (first_bad == 0) return;
  const uint32_t position = ~first_bad;
  uint64_t at[4];
  tuples.nest.OffsetsOf(position, at);
  for (uint32_t c = 0; c < tuples.tuple_size; ++c) {
    note->values[c] = LoadIndex(tuples, at[DeviceTuples::kIndices] + tuples.tuple[c].index_offset);
  }
  note->position = position;
  __threadfence_system();
}

}  // namespace anydml
