// A product of overlapping windows with filters: the part of the images that a block's windows see (its
// patch) is loaded into shared memory once, 64 channels at a time; only filters are loaded tap by tap.
#pragma once

#include <algorithm>

#include "ops/convolution/cuda/window_product.cuh"

namespace anydml {

inline constexpr uint32_t kPatchChannels = 64;

// Images' rows, with padding, are numbered consecutively; a patch is the range of rows that a tile's windows
// see.
struct PatchProduct {
  WindowProduct product;  // steps_per_split: of all taps of chunks of kPatchChannels
  FastDivisor width;      // of a patch's rows
  FastDivisor rows;       // of an image with its padding
  uint32_t images;
  FastDivisor pixels;  // of a patch
  uint32_t all_taps;   // more than one
  uint32_t chunks;     // of channels
  uint32_t per_split;  // chunks
  // The input's channels are not contiguous: they are gathered on the way to shared memory. Only for one
  // chunk per split.
  bool is_apart;
  uint32_t channel_stride;
};

struct PatchTile {
  uint32_t rows, columns;
  uint32_t threads;
  uint32_t filter_bytes;  // in shared memory
  uint32_t least_bytes;   // of shared memory
  double rate;
  void (*kernel)(PatchProduct);

  // One patch is used while the next arrives.
  uint32_t SharedBytes(uint32_t pixels, uint32_t chunks) const {
    const uint32_t bytes = filter_bytes + pixels * (kPatchChannels * 2 + 4) + 16 +
                           (chunks > 1 ? pixels * kPatchChannels * 2 : 0);
    return bytes > least_bytes ? bytes : least_bytes;
  }
};

std::span<const PatchTile> HalfPatchTiles();

// Whether tiles within images are hardly more numerous than tiles across all positions.
inline bool HasTilesOfImages(const ConvolutionShape& s, uint32_t rows) {
  const uint64_t positions = s.Positions(), padded = (positions + rows - 1) / rows * rows;
  return padded - positions <= positions / 16;
}

// The most pixels of the patch of `rows` positions; 0: the convolution has no patches.
inline uint64_t PatchPixels(const ConvolutionShape& s, uint32_t rows) {
  const ConvolutionWindow &z = s.windows[0], &y = s.windows[1], &x = s.windows[2];
  if (s.backward || z.input != 1 || z.output != 1 || z.taps != 1 || z.start_padding != 0) return 0;
  constexpr uint32_t kFar = 1 << 12;
  for (const ConvolutionWindow& w : {y, x}) {
    if (w.stride != 1 || w.dilation > kFar || w.start_padding > kFar || w.reached != w.output) return 0;
  }
  if (s.Taps() < 2) return 0;
  const uint64_t reach = uint64_t{y.taps - 1} * y.dilation, positions = uint64_t{x.output} * y.output;
  const uint64_t lines = (uint64_t{rows} + x.output - 2) / x.output + 1;
  const uint64_t ends =
      HasTilesOfImages(s, rows) ? 0 : std::min((uint64_t{rows} + positions - 2) / positions, s.outer[0] - 1);
  return (lines + (ends + 1) * reach) * (x.output + uint64_t{x.taps - 1} * x.dilation);
}

}  // namespace anydml
