#include "ops/convolution/cpu/pixel_parts.h"

#include <algorithm>
#include <limits>

#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/cpu/pixels.h"

namespace anydml {
namespace {

// Of a thread: with fewer it costs more than it saves.
constexpr uint64_t kPixelProductsPerThread = uint64_t{1} << 17;
constexpr uint64_t kPartsPerThread = 4, kMostCuts = 64;

uint64_t CutInto(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

}  // namespace

PixelParts CutPixels(const ConvolutionShape& shape, uint64_t channel_blocks, bool large, uint32_t threads) {
  const uint64_t positions = shape.outer[0] * shape.Positions();
  const double products = static_cast<double>(shape.Elements()) * static_cast<double>(shape.Steps());
  const auto useful = static_cast<uint64_t>(std::clamp<double>(
      products / static_cast<double>(kPixelProductsPerThread), 1, static_cast<double>(threads)));
  const uint64_t least_blocks = CutInto(positions, large ? kMaxBlockPixels : kMaxBlockPixels / 2);
  const uint64_t tiles = CutInto(positions, kMaxTilePixels);
  // Reading the weights of a block of channels takes as long as some pixels do.
  const uint64_t pixels_of_weights = large ? 3 * kMaxTilePixels : kMaxTilePixels;
  const uint64_t more = useful == 1 ? 0 : std::min(kPartsPerThread * useful, kMostCuts);
  PixelParts parts;
  double least = std::numeric_limits<double>::max();
  for (uint64_t channels = 1; channels <= std::min(channel_blocks, more + 1); ++channels) {
    for (uint64_t blocks = least_blocks;
         blocks == least_blocks || blocks <= std::min(tiles, least_blocks + more); ++blocks) {
      const uint64_t pixels = CutInto(positions, blocks);
      const uint64_t work = (CutInto(pixels, kMaxTilePixels) * kMaxTilePixels + pixels_of_weights) *
                            CutInto(channel_blocks, channels);
      const uint64_t rounds = CutInto(CutInto(positions, pixels) * shape.outer[1] * channels, useful);
      // Small ones even out threads of unequal speed.
      const double time = (static_cast<double>(rounds) + 0.25) * static_cast<double>(work);
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
