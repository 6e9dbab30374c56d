#include "ops/scatter/cuda_tiles.cuh"

#include <bit>

namespace anydml {
namespace {

constexpr uint32_t kSortThreads = 1024;
constexpr uint32_t kSortPerThread = kSortedPositions / kSortThreads;
constexpr uint32_t kMaxBins = kSortThreads;
constexpr uint32_t kWriteThreads = 256;
constexpr uint32_t kMinBinShift = 13;  // a bin is at least a tile

// Slots of one tile: their claims, and the elements in a thread's registers, leave room for
// several blocks.
template <typename Element>
constexpr uint32_t kTileSlots = sizeof(Element) == 8 ? 4096 : 8192;

constexpr uint32_t kNoSlot = ~uint32_t{0};  // there are fewer

// Memory of a sorter.
struct SortMemory {
  union {
    struct {  // first: which positions lose to a later one of the same sorter
      uint32_t latest[kSortedPositions];
      uint32_t slots[kSortedPositions];
    };
    uint64_t items[kSortedPositions];  // then: all that are left, in order
  };
  uint32_t counts[kMaxBins];  // per bin, then where they begin
  uint32_t warp_sums[kSortThreads / 32];
};

__device__ uint32_t LatestEntry(uint32_t slot) { return slot * 0x9E3779B9u >> (32 - 13); }
static_assert(kSortedPositions == 1 << 13);

// The sum of the values of all threads before this one; `total` is that of all. Whole blocks.
__device__ uint32_t SumBefore(uint32_t value, uint32_t* warp_sums, uint32_t* total) {
  const uint32_t lane = threadIdx.x % 32;
  const auto sum_up = [lane](uint32_t sum) {
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, sum, step);
      if (lane >= step) sum += other;
    }
    return sum;
  };
  const uint32_t sum = sum_up(value);
  if (lane == 31) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) warp_sums[lane] = sum_up(warp_sums[lane]);
  __syncthreads();
  *total = warp_sums[kSortThreads / 32 - 1];
  return sum - value + (threadIdx.x < 32 ? 0 : warp_sums[threadIdx.x / 32 - 1]);
}

// Reads the slots of a sorter's positions: number i * kSortThreads + threadIdx.x at slots[i].
__device__ void ReadSlots(const TilesParameters& p, uint64_t first, uint32_t (&slots)[kSortPerThread]) {
#pragma unroll
  for (uint32_t i = 0; i < kSortPerThread; ++i) {
    const uint64_t position = first + i * kSortThreads + threadIdx.x;
    ScatterTarget target = {};
    const bool exists = position < p.tuples.positions;
    if (exists) target = ReadTarget(p.tuples, static_cast<uint32_t>(position));
    slots[i] = target.in_range ? target.slot : kNoSlot;
    if (p.note != nullptr) {
      KeepFirstBad(exists && !target.in_range, static_cast<uint32_t>(position), p.first_bad);
    }
  }
}

// Drops most of those that a later position of the same sorter replaces anyway: where many
// have few targets, tiles would have long lists to go through.
__device__ void DropReplaced(SortMemory& memory, uint32_t (&slots)[kSortPerThread]) {
#pragma unroll
  for (uint32_t i = 0; i < kSortPerThread; ++i) {
    const uint32_t number = i * kSortThreads + threadIdx.x;
    memory.slots[number] = slots[i];
    if (slots[i] != kNoSlot) atomicMax(&memory.latest[LatestEntry(slots[i])], number);
  }
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kSortPerThread; ++i) {
    if (slots[i] == kNoSlot) continue;
    const uint32_t latest = memory.latest[LatestEntry(slots[i])];
    if (latest > i * kSortThreads + threadIdx.x && memory.slots[latest] == slots[i]) slots[i] = kNoSlot;
  }
}

__global__ void __launch_bounds__(kSortThreads) SortPositions(const __grid_constant__ TilesParameters p) {
  extern __shared__ __align__(16) std::byte shared[];
  SortMemory& memory = *reinterpret_cast<SortMemory*>(shared);
  LetNextStart();
  const uint64_t first = uint64_t{blockIdx.x} * kSortedPositions;
  for (uint32_t i = threadIdx.x; i < kSortedPositions; i += kSortThreads) memory.latest[i] = 0;
  memory.counts[threadIdx.x] = 0;
  WaitForPrevious();
  uint32_t slots[kSortPerThread], ranks[kSortPerThread];
  ReadSlots(p, first, slots);
  __syncthreads();
  DropReplaced(memory, slots);
#pragma unroll
  for (uint32_t i = 0; i < kSortPerThread; ++i) {
    if (slots[i] != kNoSlot) ranks[i] = atomicAdd(&memory.counts[slots[i] >> p.bin_shift], 1);
  }
  __syncthreads();
  uint32_t total;
  const uint32_t begin = SumBefore(memory.counts[threadIdx.x], memory.warp_sums, &total);
  memory.counts[threadIdx.x] = begin;
  if (threadIdx.x < p.bins) p.begins[uint64_t{threadIdx.x} * p.sorters + blockIdx.x] = begin;
  if (threadIdx.x == 0) p.begins[uint64_t{p.bins} * p.sorters + blockIdx.x] = total;
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kSortPerThread; ++i) {
    if (slots[i] == kNoSlot) continue;
    const uint64_t position = first + i * kSortThreads + threadIdx.x;
    memory.items[memory.counts[slots[i] >> p.bin_shift] + ranks[i]] = uint64_t{slots[i]} << 32 | position;
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < total; i += kSortThreads) p.lists[first + i] = memory.items[i];
}

// A bin's parts of the lists of as many sorters as a block has threads.
struct BinParts {
  uint32_t begins[kWriteThreads];
  uint32_t ends[kWriteThreads];
};

// The claims of a tile's slots, which begin at `first`, in the block's own memory. Eight lanes
// read one part of the bin: it mostly has about as many items.
template <uint32_t kSlots>
__device__ void ReadClaims(const TilesParameters& p, uint32_t first, BinParts& parts, uint32_t* claims) {
  constexpr uint32_t kLanes = 8;
  constexpr uint32_t kStep = kWriteThreads / kLanes;
  const uint64_t bin = first >> p.bin_shift;
  const auto claim = [&](uint64_t item) {
    const uint32_t slot = static_cast<uint32_t>(item >> 32) - first;
    if (slot < kSlots) atomicMax(&claims[slot], static_cast<uint32_t>(item) + 1);
  };
  for (uint32_t done = 0; done < p.sorters; done += kWriteThreads) {
    const uint32_t sorter = done + threadIdx.x;
    const bool exists = sorter < p.sorters;
    parts.begins[threadIdx.x] = exists ? __ldcg(&p.begins[bin * p.sorters + sorter]) : 0;
    parts.ends[threadIdx.x] = exists ? __ldcg(&p.begins[(bin + 1) * p.sorters + sorter]) : 0;
    __syncthreads();
    uint64_t items[kLanes];
#pragma unroll
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t part = threadIdx.x / kLanes + i * kStep;
      const uint32_t at = parts.begins[part] + threadIdx.x % kLanes;
      items[i] = ~uint64_t{0};
      if (at < parts.ends[part]) items[i] = __ldcg(&p.lists[uint64_t{done + part} * kSortedPositions + at]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kLanes; ++i) {
      claim(items[i]);
      const uint32_t part = threadIdx.x / kLanes + i * kStep;
      const uint64_t* list = p.lists + uint64_t{done + part} * kSortedPositions;
      for (uint32_t at = parts.begins[part] + threadIdx.x % kLanes + kLanes; at < parts.ends[part];
           at += kLanes) {
        claim(__ldcg(&list[at]));
      }
    }
    __syncthreads();
  }
}

template <typename Element>
__global__ void __launch_bounds__(kWriteThreads) WriteTiles(const __grid_constant__ TilesParameters p) {
  constexpr uint32_t kSlots = kTileSlots<Element>;
  constexpr uint32_t kElements = kMaxUnitBytes / sizeof(Element);  // of a unit
  constexpr uint32_t kUnits = kSlots / kElements / kWriteThreads;  // of a thread
  struct alignas(kMaxUnitBytes) Unit {
    Element elements[kElements];
  };
  __shared__ alignas(kMaxUnitBytes) uint32_t claims[kSlots];
  __shared__ BinParts parts;
  const uint32_t first = blockIdx.x * kSlots;
  const auto* input = reinterpret_cast<const Element*>(p.input) + first;
  auto* output = reinterpret_cast<Element*>(p.output) + first;
  const uint32_t slots = min(kSlots, p.slots - first);
  Unit units[kUnits];
#pragma unroll
  for (uint32_t i = 0; i < kUnits; ++i) {
    const uint32_t slot = (i * kWriteThreads + threadIdx.x) * kElements;
    if (slot + kElements <= slots) {
      *reinterpret_cast<uint4*>(&units[i]) = __ldcs(reinterpret_cast<const uint4*>(input + slot));
    }
  }
  for (uint32_t i = threadIdx.x; i < kSlots / 4; i += kWriteThreads) {
    reinterpret_cast<uint4*>(claims)[i] = uint4{0, 0, 0, 0};
  }
  WaitForPrevious();
  __syncthreads();
  ReadClaims<kSlots>(p, first, parts, claims);
  const auto update = [&](uint32_t slot, Element* element) {
    const uint32_t claim = claims[slot];
    if (claim != 0) {
      *element = *reinterpret_cast<const Element*>(p.updates + UpdatesOffset(p.tuples, claim - 1));
    }
  };
#pragma unroll
  for (uint32_t i = 0; i < kUnits; ++i) {
    const uint32_t slot = (i * kWriteThreads + threadIdx.x) * kElements;
    if (slot + kElements > slots) continue;
#pragma unroll
    for (uint32_t e = 0; e < kElements; ++e) update(slot + e, &units[i].elements[e]);
    __stcs(reinterpret_cast<uint4*>(output + slot), *reinterpret_cast<const uint4*>(&units[i]));
  }
  // What is left of the last tile is less than a unit.
  if (const uint32_t slot = slots / kElements * kElements + threadIdx.x; slot < slots) {
    Element element = input[slot];
    update(slot, &element);
    output[slot] = element;
  }
  if (p.note != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    WriteNote(p.tuples, LoadAfterClaims(p.first_bad), p.note);
  }
}

uint64_t BeginsBytes(const TilesParameters& p) {
  return ((uint64_t{p.bins} + 1) * p.sorters * sizeof(uint32_t) + 15) / 16 * 16;
}

}  // namespace

TilesParameters PlanTiles(const DeviceTuples& tuples, uint64_t slots) {
  TilesParameters p = {};
  p.tuples = tuples;
  p.slots = static_cast<uint32_t>(slots);
  p.bin_shift = kMinBinShift;
  while ((slots - 1) >> p.bin_shift >= kMaxBins) ++p.bin_shift;
  p.bins = static_cast<uint32_t>((slots - 1) >> p.bin_shift) + 1;
  p.sorters = static_cast<uint32_t>((uint64_t{tuples.positions} + kSortedPositions - 1) / kSortedPositions);
  return p;
}

uint64_t TilesTemporaryBytes(const TilesParameters& p) {
  return kTilesClearedBytes + BeginsBytes(p) + uint64_t{p.sorters} * kSortedPositions * sizeof(uint64_t);
}

void LaunchTiles(KernelChain* chain, uint32_t element_bytes, TilesParameters p, std::byte* temporary) {
  p.first_bad = reinterpret_cast<uint32_t*>(temporary);
  p.begins = reinterpret_cast<uint32_t*>(temporary + kTilesClearedBytes);
  p.lists = reinterpret_cast<uint64_t*>(temporary + kTilesClearedBytes + BeginsBytes(p));
  chain->Launch(SortPositions, p.sorters, kSortThreads, p, sizeof(SortMemory));
  DispatchByUnit(element_bytes, [&]<typename Unit>() {
    if constexpr (sizeof(Unit) <= sizeof(uint64_t)) {
      const uint64_t tiles = (uint64_t{p.slots} + kTileSlots<Unit> - 1) / kTileSlots<Unit>;
      chain->Launch(WriteTiles<Unit>, tiles, kWriteThreads, p);
    }
  });
}

}  // namespace anydml
