// The innermost part of a channels-last convolution: a tile of several output pixels times several vectors of
// output channels, which stays in vector registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace anydml {

inline constexpr uint32_t kMaxTilePixels = 14;
inline constexpr uint32_t kMaxTileVectors = 4;

// The steps after a sum is complete. Limits: clamp to [low, high] and make NaNs canonical.
struct PixelFinish {
  struct Limits {
    float low, high;
  };
  std::optional<Limits> clips;       // applied first
  std::optional<Limits> normalizes;  // (sum - mean) * factor + bias of its channel, then the limits
  std::optional<Limits> adds;        // adds a number of another tensor, then applies the limits
  // FLOAT16 is stored, and added to the sum rounded to FLOAT16; there is no normalisation then.
  bool to_halves = false;
};

struct PixelTile {
  // Contiguous numbers of a pixel: the input channels of a tap, or of several.
  struct Run {
    uint64_t offset;  // from the pixel's first number, modulo 2^64
    uint64_t steps;
    uint64_t skipped;  // steps before it that have weights but no run
  };

  uintptr_t inputs[kMaxTilePixels];  // base address of each output pixel's taps; possibly not an element's
  float* sums[kMaxTilePixels];       // of the pixel's output channels
  const Run* runs;
  uint32_t run_count;
  // The weights of the tile's channels, in whole vectors, for every step of all runs and for skipped steps.
  const float* weights;
  // For tiles that pack: the source of the weights, a row for every step, and the target, whole vectors; the
  // last one has `last` numbers unless that is 0.
  struct Packing {
    const float* rows = nullptr;
    uint64_t stride = 0;
    uint32_t last = 0;
    float* to = nullptr;
  } packing;
  // Each step prefetches a cache line, and the next one the line `ahead_step` bytes further. After each run,
  // ahead_skip bytes are skipped.
  uintptr_t ahead;
  uint64_t ahead_step, ahead_skip = 0;
  // Prefetches nothing of use: an L1-resident line, so that the prefetch costs no more than an instruction.
  void AskForNothing() {
    ahead = reinterpret_cast<uintptr_t>(this);
    ahead_step = ahead_skip = 0;
  }
  const float* start;             // initial values of sums; null: the current sums
  const float* starts = nullptr;  // if not null: instead, a number for each pixel
  uint32_t last_channels;         // in the last vector, if it is partial; 0: all
  const PixelFinish* finish;      // null: sums are incomplete
  const float* normal;            // means of the tile's channels, then factors, then biases, whole vectors
  uint64_t normal_stride;         // between these three
  const void* added[kMaxTilePixels];
  uint16_t* halves[kMaxTilePixels];  // target of FLOAT16 results
};

struct PixelTiles {
  uint32_t lanes;                    // per vector
  uint32_t vectors;                  // of the widest tile
  uint32_t pixels[kMaxTileVectors];  // of the largest tile with this many vectors, [vectors - 1]
  // Adds inputs times weights to sums, one step after the other: the same bits for all tile sizes.
  using Add = void(const PixelTile& tile);
  Add* add[kMaxTilePixels][kMaxTileVectors];  // [pixels - 1][vectors - 1]
  // The largest tiles, which read weights from rows that may be far apart, and pack them for other tiles;
  // null without vectors.
  Add* pack_and_add[kMaxTileVectors];  // [vectors - 1]
  // Copies rows of whole vectors, the last of which has `last` numbers unless that is 0, from `from_stride`
  // apart to consecutive ones; the rest of the last vector is 0.
  using Gather = void(const float* from, uint64_t from_stride, uint64_t rows, uint32_t vectors, uint32_t last,
                      float* to);
  Gather* gather;
  // Interleaves three planes, as of images, to pixels.
  using Interleave = void(const float* const* planes, uint64_t count, float* to);
  Interleave* interleave;
};

// The tiles for this processor.
const PixelTiles& ConvolutionPixelTiles();

}  // namespace anydml
