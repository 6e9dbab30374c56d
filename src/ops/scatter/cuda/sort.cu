// Sorts updates by bin: the first half of tiles.cuh.
#include "ops/device/cuda/block_scan.cuh"
#include "ops/scatter/cuda/tiles.cuh"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 1024;
constexpr uint32_t kPerThread = kSortedPositions / kThreads;
constexpr uint32_t kNoSlot = ~uint32_t{0};  // larger than any slot

// Memory of a sorter. Counts per bin, then the begins of bins, follow it.
template <typename Element>
struct SortMemory {
  union {
    struct {  // first: which positions lose to a later one of the same sorter
      uint32_t latest[kSortedPositions];
      uint32_t slots[kSortedPositions];
    };
    TileItem<Element> items[kSortedPositions];  // then: the remaining ones, sorted
  };
  uint32_t warp_sums[kThreads / 32];
  uint32_t first_bad;

  __device__ uint32_t* counts() { return reinterpret_cast<uint32_t*>(this + 1); }
};

// Arrays of a thread have index i * kThreads + threadIdx.x of the sorter's positions at [i].
__device__ uint64_t PositionOf(uint32_t i) {
  return uint64_t{blockIdx.x} * kSortedPositions + i * kThreads + threadIdx.x;
}

// The slots and values of a thread's positions. All loads are in flight before the first is waited for;
// offsets are then recomputed, because keeping them takes too many registers.
template <typename Element>
__device__ void ReadUpdates(const TilesParameters& p, const DeviceTuples& tuples, uint32_t* first_bad,
                            uint32_t (&slots)[kPerThread], Element (&values)[kPerThread]) {
  uint64_t raw_indices[kPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    if (PositionOf(i) >= p.tuples.positions) continue;
    raw_indices[i] = LoadTupleStart(tuples, static_cast<uint32_t>(PositionOf(i))).raw_index;
  }
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    if (PositionOf(i) >= p.tuples.positions) continue;
    const uint64_t at = UpdatesOffset(tuples, static_cast<uint32_t>(PositionOf(i)));
    values[i] = __ldcs(reinterpret_cast<const Element*>(p.updates + at));
  }
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    const auto position = static_cast<uint32_t>(PositionOf(i));
    const bool exists = PositionOf(i) < p.tuples.positions;
    ScatterTarget target = {};
    if (exists) {
      TupleStart start;
      tuples.nest.OffsetsOf(position, start.at);
      start.raw_index = raw_indices[i];
      target = TargetOf(tuples, start);
    }
    slots[i] = target.in_range ? target.slot : kNoSlot;
    if (p.note != nullptr) KeepFirstBad(exists && !target.in_range, position, first_bad);
  }
}

// The common case. Finding targets is a large part of a sorter's work, and small if the compiler knows these
// parameters.
bool IsPlain(const DeviceTuples& tuples) { return tuples.tuple_size == 1 && tuples.nest.rank == 1; }
__device__ DeviceTuples Plain(DeviceTuples tuples) {
  tuples.tuple_size = 1;
  tuples.nest.rank = 1;
  return tuples;
}

// Drops most of those that a later position of the same sorter replaces anyway: with many updates of few
// targets, tiles would have long lists.
template <typename Element>
__device__ void DropReplaced(SortMemory<Element>& memory, uint32_t (&slots)[kPerThread]) {
  const auto entry = [](uint32_t slot) { return slot * 0x9E3779B9u >> (32 - kSortedBits); };
  for (uint32_t i = threadIdx.x; i < kSortedPositions; i += kThreads) memory.latest[i] = 0;
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    const uint32_t number = i * kThreads + threadIdx.x;
    memory.slots[number] = slots[i];
    if (slots[i] != kNoSlot) atomicMax(&memory.latest[entry(slots[i])], number);
  }
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    if (slots[i] == kNoSlot) continue;
    const uint32_t latest = memory.latest[entry(slots[i])];
    if (latest > i * kThreads + threadIdx.x && memory.slots[latest] == slots[i]) slots[i] = kNoSlot;
  }
}

// For whole blocks. Returns whether a bin is so full that dropping again is worthwhile.
__device__ bool CountPerBin(const TilesParameters& p, const uint32_t (&slots)[kPerThread], uint32_t* counts,
                            uint32_t (&ranks)[kPerThread]) {
  constexpr uint32_t kCrowd = 128;
  for (uint32_t b = threadIdx.x; b < p.bins; b += kThreads) counts[b] = 0;
  __syncthreads();
  bool crowded = false;
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    if (slots[i] == kNoSlot) continue;
    ranks[i] = atomicAdd(&counts[slots[i] >> p.bin_shift], 1);
    crowded |= ranks[i] >= kCrowd;
  }
  return __syncthreads_or(crowded);
}

// Turns counts per bin into begins of bins. For whole blocks; returns the number of items.
__device__ uint32_t SumCounts(uint32_t* counts, uint32_t bins, uint32_t (&warp_sums)[kThreads / 32]) {
  uint32_t all = 0;
  for (uint32_t done = 0; done < bins; done += kThreads) {
    const uint32_t b = done + threadIdx.x;
    uint32_t total;
    const uint32_t before = SumBefore<kThreads>(b < bins ? counts[b] : 0, warp_sums, &total);
    if (b < bins) counts[b] = all + before;
    all += total;
    __syncthreads();
  }
  return all;
}

template <typename Element, bool kPlain>
__global__ void __launch_bounds__(kThreads) SortUpdates(const __grid_constant__ TilesParameters p) {
  extern __shared__ __align__(16) std::byte shared[];
  auto& memory = *reinterpret_cast<SortMemory<Element>*>(shared);
  uint32_t* const counts = memory.counts();
  LetNextStart();
  if (threadIdx.x == 0) memory.first_bad = 0;
  __syncthreads();
  uint32_t slots[kPerThread], ranks[kPerThread];
  Element values[kPerThread];
  if constexpr (kPlain) {
    ReadUpdates(p, Plain(p.tuples), &memory.first_bad, slots, values);
  } else {
    ReadUpdates(p, p.tuples, &memory.first_bad, slots, values);
  }
  if (CountPerBin(p, slots, counts, ranks)) {
    DropReplaced(memory, slots);
    CountPerBin(p, slots, counts, ranks);
  }
  const uint32_t total = SumCounts(counts, p.bins, memory.warp_sums);
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    const uint32_t bin = slots[i] >> p.bin_shift;
    const uint32_t number = i * kThreads + threadIdx.x;
    if (slots[i] == kNoSlot) continue;
    memory.items[counts[bin] + ranks[i]] = {values[i],
                                            (slots[i] - (bin << p.bin_shift)) << kSortedBits | number};
  }
  uint16_t* const begins = p.begins + blockIdx.x * (uint64_t{p.bins} + 1);
  for (uint32_t b = threadIdx.x; b < p.bins; b += kThreads) begins[b] = static_cast<uint16_t>(counts[b]);
  if (threadIdx.x == 0) begins[p.bins] = static_cast<uint16_t>(total);
  if (threadIdx.x == 0) p.first_bad[blockIdx.x] = memory.first_bad;
  __syncthreads();
  auto* const list = reinterpret_cast<TileItem<Element>*>(p.lists) + uint64_t{blockIdx.x} * kSortedPositions;
  for (uint32_t i = threadIdx.x; i < total; i += kThreads) list[i] = memory.items[i];
}

}  // namespace

void LaunchSort(KernelChain* chain, uint32_t element_bytes, const TilesParameters& p) {
  DispatchByUnit(element_bytes, [&]<typename Element>() {
    if constexpr (sizeof(Element) <= sizeof(uint64_t)) {
      const uint64_t bytes = sizeof(SortMemory<Element>) + p.bins * sizeof(uint32_t);
      const auto kernel = IsPlain(p.tuples) ? SortUpdates<Element, true> : SortUpdates<Element, false>;
      chain->Launch(kernel, p.sorters, kThreads, p, static_cast<uint32_t>(bytes));
    }
  });
}

}  // namespace anydml
