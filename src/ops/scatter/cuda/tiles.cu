#include "ops/scatter/cuda/tiles.cuh"

#include "ops/device/cuda/block_scan.cuh"
#include "ops/device/cuda/bulk_copy.cuh"

namespace anydml {
namespace {

constexpr uint32_t kTileThreads = 256;
constexpr uint32_t kTileItems = 8;  // items that a thread has at a time
constexpr uint32_t kMinBinShift = 13;

// Three blocks fit into a multiprocessor, each with 32 KiB in flight.
template <typename Element>
constexpr uint32_t kTileSlots = sizeof(Element) == 8 ? 4096 : 8192;
static_assert(kTileSlots<uint8_t> <= 1 << kMinBinShift);

// A bin's parts of the lists of as many sorters as a block has threads.
struct BinParts {
  uint32_t before[kTileThreads];  // items in the previous parts
  uint32_t starts[kTileThreads];  // in all lists, minus those before: item i is at starts + i
  uint32_t warp_sums[kTileThreads / 32];
};

template <typename Element>
struct TileMemory {
  alignas(128) Element tile[kTileSlots<Element>];
  alignas(16) uint32_t claims[kTileSlots<Element>];  // see ClaimTable
  BinParts parts;
  BulkBarrier loaded;
};

// A thread's items. They are not used before all loads are in flight.
template <typename Element>
struct Held {
  TileItem<Element> items[kTileItems];
  uint32_t at[kTileItems];  // in the lists

  // In the bin; for no item beyond all.
  __device__ uint32_t slot(uint32_t i) const { return items[i].where >> kSortedBits; }
  // Lists have kSortedPositions each: the rest of `at` is the index of the sorter.
  __device__ uint32_t claim(uint32_t i) const {
    constexpr uint32_t kLow = kSortedPositions - 1;
    return ((at[i] & ~kLow) | (items[i].where & kLow)) + 1;
  }
};

// Finds the parts of this block's bin in the lists of sorters from `first` on. For whole blocks; returns the
// total number of items.
__device__ uint32_t ReadParts(const TilesParameters& p, uint32_t first, BinParts& parts) {
  const uint32_t sorter = first + threadIdx.x;
  uint32_t begin = 0, end = 0;
  if (sorter < p.sorters) {
    const uint16_t* begins = p.begins + sorter * (uint64_t{p.bins} + 1) + blockIdx.x;
    begin = begins[0];
    end = begins[1];
  }
  uint32_t total;
  const uint32_t before = SumBefore<kTileThreads>(end - begin, parts.warp_sums, &total);
  parts.before[threadIdx.x] = before;
  parts.starts[threadIdx.x] = sorter * kSortedPositions + begin - before;
  __syncthreads();
  return total;
}

// Loads those of the parts' `total` items from `done` on, as many as a block can have.
template <typename Element>
__device__ void ReadItems(const TilesParameters& p, const BinParts& parts, uint32_t done, uint32_t total,
                          Held<Element>& held) {
#pragma unroll
  for (uint32_t i = 0; i < kTileItems; ++i) {
    const uint32_t number = done + i * kTileThreads + threadIdx.x;
    held.items[i].where = ~0u;
    if (number >= total) continue;
    uint32_t part = 0;
    for (uint32_t step = kTileThreads / 2; step > 0; step /= 2) {
      if (parts.before[part + step] <= number) part += step;
    }
    held.at[i] = parts.starts[part] + number;
    held.items[i] = reinterpret_cast<const TileItem<Element>*>(p.lists)[held.at[i]];
  }
}

// Puts those of the loaded items into the tile, which begins at slot `first` of the bin, that are the latest
// of their slots so far. For whole blocks.
template <typename Element>
__device__ void Apply(const Held<Element>& held, uint32_t first, TileMemory<Element>& memory) {
#pragma unroll
  for (uint32_t i = 0; i < kTileItems; ++i) {
    const uint32_t slot = held.slot(i) - first;
    if (slot < kTileSlots<Element>) atomicMax(&memory.claims[slot], held.claim(i));
  }
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < kTileItems; ++i) {
    const uint32_t slot = held.slot(i) - first;
    if (slot >= kTileSlots<Element> || memory.claims[slot] != held.claim(i)) continue;
    memory.tile[slot] = held.items[i].value;
  }
  __syncthreads();
}

template <typename Element>
__device__ void ClearClaims(TileMemory<Element>& memory) {
  for (uint32_t i = threadIdx.x; i < kTileSlots<Element> / 4; i += kTileThreads) {
    reinterpret_cast<uint4*>(memory.claims)[i] = uint4{0, 0, 0, 0};
  }
}

// By a single warp, when all sorters are done.
__device__ void WriteNoteOfSorters(const TilesParameters& p) {
  uint32_t first_bad = 0;
  for (uint32_t s = threadIdx.x; s < p.sorters; s += 32) first_bad = max(first_bad, p.first_bad[s]);
  first_bad = __reduce_max_sync(~0u, first_bad);
  if (threadIdx.x == 0) WriteNote(p.tuples, first_bad, p.note);
}

// A tile on its way from the input to the output.
template <typename Element>
struct TileCopy {
  const Element* input;
  Element* output;
  uint32_t bulk;  // slots; the last tile may have a few more
  uint32_t slots;

  __device__ TileCopy(const TilesParameters& p, uint64_t first)
      : input(reinterpret_cast<const Element*>(p.input) + first),
        output(reinterpret_cast<Element*>(p.output) + first),
        slots(static_cast<uint32_t>(min(uint64_t{kTileSlots<Element>}, p.slots - first))) {
    constexpr uint32_t kTogether = kBulkBytes / sizeof(Element);
    bulk = slots / kTogether * kTogether;
  }

  __device__ void Load(TileMemory<Element>& memory) const {
    if (threadIdx.x == 0) memory.loaded.Load(memory.tile, input, bulk * sizeof(Element));
    if (bulk + threadIdx.x < slots) memory.tile[bulk + threadIdx.x] = input[bulk + threadIdx.x];
  }

  __device__ void Store(const TileMemory<Element>& memory) const {
    if (threadIdx.x == 0) BulkStore(output, memory.tile, bulk * sizeof(Element));
    if (bulk + threadIdx.x < slots) output[bulk + threadIdx.x] = memory.tile[bulk + threadIdx.x];
  }
};

// The items of a block's bin, for one tile after the other. Usually all fit.
template <typename Element>
struct BinItems {
  Held<Element> held;
  uint32_t total = 0;
  bool all_held = false;

  // For the tile of load `load`, which begins at slot `first` of the bin. For whole blocks.
  __device__ void ApplyTo(const TilesParameters& p, TileMemory<Element>& memory, uint32_t load,
                          uint32_t first) {
    constexpr uint32_t kAtOnce = kTileThreads * kTileItems;
    bool clear = false;
    for (uint32_t sorter = 0; sorter < p.sorters; sorter += kTileThreads) {
      if (!all_held) total = ReadParts(p, sorter, memory.parts);
      for (uint32_t done = 0; done < total; done += kAtOnce) {
        if (!all_held) ReadItems(p, memory.parts, done, total, held);
        if (!clear) {  // only now, while loads of items are in flight
          ClearClaims(memory);
          memory.loaded.Wait(load);
          __syncthreads();
          clear = true;
        }
        Apply(held, first, memory);
      }
    }
    all_held = p.sorters <= kTileThreads && total <= kAtOnce;
  }
};

template <typename Element>
__global__ void __launch_bounds__(kTileThreads, 3) WriteTiles(const __grid_constant__ TilesParameters p) {
  extern __shared__ __align__(128) std::byte shared[];
  auto& memory = *reinterpret_cast<TileMemory<Element>*>(shared);
  if (threadIdx.x == 0) memory.loaded.Initialize();
  __syncthreads();
  const uint64_t bin_first = uint64_t{blockIdx.x} << p.bin_shift;
  const uint64_t bin_end = min(uint64_t{p.slots}, bin_first + (uint64_t{1} << p.bin_shift));
  BinItems<Element> items;
  uint32_t tiles = 0;
  for (uint64_t first = bin_first; first < bin_end; first += kTileSlots<Element>, ++tiles) {
    const TileCopy<Element> copy(p, first);
    copy.Load(memory);
    if (tiles == 0) WaitForPrevious();
    items.ApplyTo(p, memory, tiles, static_cast<uint32_t>(first - bin_first));
    memory.loaded.Wait(tiles);
    BeforeBulkStore();
    __syncthreads();
    copy.Store(memory);
    __syncthreads();  // the next tile takes its place
  }
  if (p.note != nullptr && blockIdx.x == 0 && threadIdx.x < 32) WriteNoteOfSorters(p);
}

// Sets the parts of temporary memory; returns their end.
std::byte* PlaceParts(uint32_t element_bytes, std::byte* memory, TilesParameters* p) {
  const uint64_t item_bytes = element_bytes == 8 ? sizeof(TileItem<uint64_t>) : sizeof(TileItem<uint32_t>);
  p->lists = memory;
  memory += uint64_t{p->sorters} * kSortedPositions * item_bytes;
  p->first_bad = reinterpret_cast<uint32_t*>(memory);
  memory += uint64_t{p->sorters} * sizeof(uint32_t);
  p->begins = reinterpret_cast<uint16_t*>(memory);
  return memory + p->sorters * (uint64_t{p->bins} + 1) * sizeof(uint16_t);
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

uint64_t TilesTemporaryBytes(const TilesParameters& parameters, uint32_t element_bytes) {
  TilesParameters p = parameters;
  return AddressOf(PlaceParts(element_bytes, nullptr, &p));
}

void LaunchTiles(KernelChain* chain, uint32_t element_bytes, TilesParameters p, std::byte* temporary) {
  PlaceParts(element_bytes, temporary, &p);
  LaunchSort(chain, element_bytes, p);
  DispatchByUnit(element_bytes, [&]<typename Element>() {
    if constexpr (sizeof(Element) <= sizeof(uint64_t)) {
      chain->Launch(WriteTiles<Element>, p.bins, kTileThreads, p, sizeof(TileMemory<Element>));
    }
  });
}

}  // namespace anydml
