// Many scalar updates. Writing them one by one costs more than copying a large output: a million random
// accesses take 20 microseconds on an H200 if they hit the cache and 50 if they do not. So updates are first
// sorted by part of the output, in large independent blocks; then every tile of the output is read, updated
// and written once.
#pragma once

#include "ops/scatter/cuda/kernels.cuh"

namespace anydml {

struct TilesParameters {
  DeviceTuples tuples;
  const std::byte* input;
  const std::byte* updates;
  std::byte* output;
  DataErrorNote* note;
  uint32_t slots;
  uint32_t bin_shift;  // slots >> bin_shift is the index of the bin
  uint32_t bins;
  uint32_t sorters;  // blocks that sort updates

  // In temporary memory:
  std::byte* lists;     // TileItem; kSortedPositions for each sorter
  uint32_t* first_bad;  // of each sorter, see KeepFirstBad
  uint16_t* begins;     // of bin b in the list of sorter s, at [s * (bins + 1) + b]; b up to `bins`
};

inline constexpr uint32_t kSortedBits = 13;
inline constexpr uint32_t kSortedPositions = 1 << kSortedBits;
inline constexpr uint32_t kMaxBins = 16384;  // so that a slot in its bin has at most 18 bits

// An update on its way from a sorter to a tile. It carries its value, because reading that from the updates
// later would be a random access.
template <typename Element>
struct alignas(sizeof(Element) == 8 ? 16 : 8) TileItem {
  Element value;
  uint32_t where;  // slot in the bin << kSortedBits | position among those of the sorter
};

// Slots are contiguous in input and output, in the order of their numbers.
TilesParameters PlanTiles(const DeviceTuples& tuples, uint64_t slots);
uint64_t TilesTemporaryBytes(const TilesParameters& parameters, uint32_t element_bytes);
// Input and output, which may be the same memory, are aligned to units.
void LaunchTiles(KernelChain* chain, uint32_t element_bytes, TilesParameters parameters,
                 std::byte* temporary);

// The first half of LaunchTiles.
void LaunchSort(KernelChain* chain, uint32_t element_bytes, const TilesParameters& parameters);

}  // namespace anydml
