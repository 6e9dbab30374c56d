// The innermost part of a convolution whose channels are neighbours in memory: a tile of some output pixels
// times some vectors of output channels, which stays in vector registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace anydml {

inline constexpr uint32_t kMaxTilePixels = 14;
inline constexpr uint32_t kMaxTileVectors = 4;

// What becomes of sums that are complete. Limits: not below `low` nor above `high`, NaNs become the usual
// one.
struct PixelFinish {
  struct Limits {
    float low, high;
  };
  std::optional<Limits> clips;       // first
  std::optional<Limits> normalizes;  // (sum - mean) * factor + bias of its channel, then the limits
  std::optional<Limits> adds;        // a number of another tensor, then the limits
  // FLOAT16 is stored, and added to what is rounded to it before; nothing is normalized then.
  bool to_halves = false;
};

struct PixelTile {
  // Numbers of a pixel that are neighbours: the input channels of a tap, or of several.
  struct Run {
    uint64_t offset;  // from the pixel's first, modulo 2^64
    uint64_t steps;
    uint64_t skipped;  // steps before it that have weights and no run
  };

  uintptr_t
      inputs[kMaxTilePixels];   // address that each output pixel's taps count from; perhaps of no element
  float* sums[kMaxTilePixels];  // of its output channels
  const Run* runs;
  uint32_t run_count;
  // For every step of all runs, and those skipped, the weights of the tile's channels, whole vectors.
  const float* weights;
  // Of tiles that pack: where weights come from, a row for every step, and where they go, whole vectors, of
  // which `last` numbers of the last one are there, if that is not 0.
  struct Packing {
    const float* rows = nullptr;
    uint64_t stride = 0;
    uint32_t last = 0;
    float* to = nullptr;
  } packing;
  // Each step asks for a line of memory that is wanted soon, and the next one for what is so many bytes
  // behind. After each run so many are skipped.
  uintptr_t ahead;
  uint64_t ahead_step, ahead_skip = 0;
  // For nothing: a line that is as near as can be, so that asking costs no more than an instruction.
  void AskForNothing() {
    ahead = reinterpret_cast<uintptr_t>(this);
    ahead_step = ahead_skip = 0;
  }
  const float* start;             // what sums begin with; null: with what they are
  const float* starts = nullptr;  // if not null: a number for each pixel, instead
  uint32_t last_channels;         // of the last vector, where it is not whole; 0: all
  const PixelFinish* finish;      // null: sums are not complete
  const float* normal;            // means of the tile's channels, then factors, then biases, whole vectors
  uint64_t normal_stride;         // between those three
  const void* added[kMaxTilePixels];
  uint16_t* halves[kMaxTilePixels];  // where FLOAT16 goes
};

struct PixelTiles {
  uint32_t lanes;                    // of a vector
  uint32_t vectors;                  // of the widest tile
  uint32_t pixels[kMaxTileVectors];  // of the largest tile of so many vectors, [vectors - 1]
  // Sums plus inputs times weights, one step after the other: the same bits whatever the tiles are.
  using Add = void(const PixelTile& tile);
  Add* add[kMaxTilePixels][kMaxTileVectors];  // [pixels - 1][vectors - 1]
  // The largest tiles, which read weights from rows that may be far apart, and pack them for others; null
  // without vectors.
  Add* pack_and_add[kMaxTileVectors];  // [vectors - 1]
  // Rows of whole vectors, and `last` numbers of the last one, if that is not 0, `from_stride` apart, one
  // behind the other; the rest of the last one is 0.
  using Gather = void(const float* from, uint64_t from_stride, uint64_t rows, uint32_t vectors, uint32_t last,
                      float* to);
  Gather* gather;
  // Three planes, as images have them, become pixels.
  using Interleave = void(const float* const* planes, uint64_t count, float* to);
  Interleave* interleave;
};

// For this processor.
const PixelTiles& ConvolutionPixelTiles();

}  // namespace anydml
