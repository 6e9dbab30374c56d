// Many scalars. To write them one by one costs more than to copy a large output: a million
// accesses to random places take 20 microseconds of an H200 when the cache has them and 50 when
// it does not. So updates are put in order by part of the output first, in large blocks that need
// no help from each other; then every tile of the output is read, updated and written once.
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
  uint32_t bin_shift;  // slots >> bin_shift is the number of the bin
  uint32_t bins;
  uint32_t sorters;  // blocks that put updates in order

  // In temporary memory:
  std::byte* lists;     // TileItem; kSortedPositions for each sorter
  uint32_t* first_bad;  // of each sorter, see KeepFirstBad
  uint16_t* begins;     // of bin b in the list of sorter s, at [s * (bins + 1) + b]; b up to `bins`
};

inline constexpr uint32_t kSortedBits = 13;
inline constexpr uint32_t kSortedPositions = 1 << kSortedBits;
inline constexpr uint32_t kMaxBins = 16384;  // so that a slot in its bin has at most 18 bits

// An update on its way from a sorter to a tile. It takes its value along: reading it from the
// updates in the end would be a random access.
template <typename Element>
struct alignas(sizeof(Element) == 8 ? 16 : 8) TileItem {
  Element value;
  uint32_t where;  // slot in the bin << kSortedBits | position among those of the sorter
};

// Slots are neighbours in input and output, in the order of their numbers.
TilesParameters PlanTiles(const DeviceTuples& tuples, uint64_t slots);
uint64_t TilesTemporaryBytes(const TilesParameters& parameters, uint32_t element_bytes);
// Input and output, which may be the same memory, are aligned to units.
void LaunchTiles(KernelChain* chain, uint32_t element_bytes, TilesParameters parameters,
                 std::byte* temporary);

// The first half of LaunchTiles.
void LaunchSort(KernelChain* chain, uint32_t element_bytes, const TilesParameters& parameters);

}  // namespace anydml
