// How threads share a convolution by tiles of pixels.
#pragma once

#include <cstdint>

#include "ops/convolution/problem.h"

namespace anydml {

// A part is some pixels times some blocks of channels, of a group. Parts of the same pixels are consecutive.
struct PixelParts {
  uint64_t pixels = 1;         // most per part
  uint64_t channel_parts = 1;  // for the same pixels
  uint64_t count = 1;
  uint32_t workers = 1;  // each of which gets parts
};

// What determines a good size of parts.
enum class PartWeights : uint8_t {
  kFew,    // weights are in a near cache
  kMany,   // a part should have many pixels
  kTurned  // each part packs them from the filter tensor
};

// For outputs in planes: a number of pixels that is a multiple of the tile and, if planes are large enough,
// of a cache line. Otherwise a part's vector stores would write partial lines at both ends.
uint64_t PixelsOfLines(const ConvolutionShape& shape, uint64_t tile, uint64_t element_bytes);

// The division into parts that finishes first when workers take one part after another. `tile`: parts
// have a multiple of this many pixels.
PixelParts CutPixels(const ConvolutionShape& shape, uint64_t channel_blocks, uint64_t tile,
                     PartWeights weights, uint32_t threads);

}  // namespace anydml
