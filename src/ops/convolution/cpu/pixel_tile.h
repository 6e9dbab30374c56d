// The innermost part of a convolution whose channels are neighbours in memory: a tile of some output pixels
// times some vectors of output channels, which stays in vector registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

inline constexpr uint32_t kMaxTilePixels = 8;
inline constexpr uint32_t kMaxTileVectors = 3;

struct PixelTile {
  // Numbers of a pixel that are neighbours: the input channels of a tap, or of several.
  struct Run {
    uint64_t offset;  // from the pixel's first, modulo 2^64
    uint64_t steps;
  };

  uintptr_t
      inputs[kMaxTilePixels];   // address that each output pixel's taps count from; perhaps of no element
  float* sums[kMaxTilePixels];  // of its output channels
  const Run* runs;
  uint32_t run_count;
  // For every step of all runs the weights of the tile's channels, whole vectors.
  const float* weights;
  const float* start;      // what sums begin with; null: with what they are
  uint32_t last_channels;  // of the last vector, where it is not whole; 0: all
  bool clips;              // at the end: not below `low` nor above `high`, NaNs become the usual one
  float low, high;
  bool to_halves;  // sums are complete, and go as FLOAT16 to:
  uint16_t* halves[kMaxTilePixels];
};

struct PixelTiles {
  uint32_t lanes;    // of a vector
  uint32_t pixels;   // of the largest tile
  uint32_t vectors;  // of the largest tile
  // Sums plus inputs times weights, one step after the other: the same bits whatever the tiles are.
  using Add = void(const PixelTile& tile);
  Add* add[kMaxTilePixels][kMaxTileVectors];  // [pixels - 1][vectors - 1]
};

// For this processor.
const PixelTiles& ConvolutionPixelTiles();

}  // namespace anydml
