#include "ops/convolution/cpu/pixel_parts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/convolution/cpu/pixels.h"

namespace anydml {
namespace {

// Per thread: with fewer, it costs more than it saves.
constexpr uint64_t kPixelProductsPerThread = uint64_t{1} << 17;
constexpr uint64_t kPartsPerThread = 4, kMostCuts = 64;
// The cost of reading the weights of a block of channels, in pixels: if they are in a near cache, in a
// distant one, or must be transposed.
constexpr uint64_t kSomePixels = 8, kManyPixels = 24, kTurnedPixels = 32;
// The cost of a part's end: threads of unequal speed wait for each other this long.
constexpr double kUneven = 0.5;
// The relative cost of pixels that only one thread uses, so that they need not come from other threads'
// caches.
constexpr double kOwnPixels = 0.85;

uint64_t CutInto(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

}  // namespace

uint64_t PixelsOfLines(const ConvolutionShape& shape, uint64_t tile, uint64_t element_bytes) {
  constexpr uint64_t kLineBytes = 64, kManyPixels = 2048;
  const uint64_t line = kLineBytes / element_bytes, both = std::lcm(tile, line);
  const bool has_lines = shape.output.channel % line == 0 && shape.Positions() % line == 0;
  const bool has_many = shape.outer[0] * shape.Positions() >= kManyPixels && both <= kMaxBlockPixels / 4;
  return has_lines && has_many ? both : tile;
}

PixelParts CutPixels(const ConvolutionShape& shape, uint64_t channel_blocks, uint64_t tile,
                     PartWeights weights, uint32_t threads) {
  const bool turned = weights == PartWeights::kTurned;
  const uint64_t all_pixels = turned                          ? kMaxBlockPixels
                              : weights == PartWeights::kMany ? kMaxBlockPixels / 2
                                                              : kMaxBlockPixels / 4;
  const uint64_t reading = turned ? kTurnedPixels : weights == PartWeights::kMany ? kManyPixels : kSomePixels;
  const uint64_t positions = shape.outer[0] * shape.Positions();
  const double products = static_cast<double>(shape.Elements()) * static_cast<double>(shape.Steps());
  const auto useful = static_cast<uint64_t>(std::clamp<double>(
      products / static_cast<double>(kPixelProductsPerThread), 1, static_cast<double>(threads)));
  const uint64_t most_pixels = all_pixels / tile * tile;
  const uint64_t least_blocks = CutInto(positions, most_pixels), tiles = CutInto(positions, tile);
  const uint64_t more = useful == 1 ? 0 : std::min(kPartsPerThread * useful, kMostCuts);
  PixelParts parts;
  double least = std::numeric_limits<double>::max();
  for (uint64_t channels = 1; channels <= std::min(channel_blocks, more + 1); ++channels) {
    for (uint64_t blocks = least_blocks;
         blocks == least_blocks || blocks <= std::min(tiles, least_blocks + more); ++blocks) {
      const uint64_t pixels = CutInto(CutInto(positions, blocks), tile) * tile;
      const uint64_t work = (pixels + reading) * CutInto(channel_blocks, channels);
      const uint64_t pixel_blocks = CutInto(positions, pixels) * shape.outer[1];
      const uint64_t rounds = CutInto(pixel_blocks * channels, useful);
      double time = (static_cast<double>(rounds) + kUneven) * static_cast<double>(work);
      if (pixel_blocks >= useful && !turned) time *= kOwnPixels;
      if (time >= least) continue;
      least = time;
      parts.pixels = pixels;
      parts.channel_parts = channels;
    }
  }
  parts.count = CutInto(positions, parts.pixels) * shape.outer[1] * parts.channel_parts;
  parts.workers = static_cast<uint32_t>(std::min(parts.count, useful));
  return parts;
}

}  // namespace anydml
