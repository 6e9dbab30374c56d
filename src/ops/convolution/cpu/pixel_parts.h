// How threads share a convolution by tiles of pixels.
#pragma once

#include <cstdint>

#include "ops/convolution/problem.h"

namespace anydml {

// A part is some pixels times some blocks of channels, of a group. Parts of the same pixels follow each
// other.
struct PixelParts {
  uint64_t pixels = 1;         // of a part, at most
  uint64_t channel_parts = 1;  // of the same pixels
  uint64_t count = 1;
  uint32_t workers = 1;  // of which each gets a part
};

// What decides how large parts should be.
enum class PartWeights : uint8_t {
  kFew,    // they are near
  kMany,   // a part should have many pixels
  kTurned  // by each part, from the filter tensor
};

// Of outputs in planes: pixels, some whole tiles, that are whole lines of memory, too, where planes have such
// and many pixels. Else stores of vectors into the planes of a part would have parts of two lines.
uint64_t PixelsOfLines(const ConvolutionShape& shape, uint64_t tile, uint64_t element_bytes);

// Of all ways to cut it the one that ends first, if workers take parts one after the other. `tile`: parts
// have a multiple of so many pixels.
PixelParts CutPixels(const ConvolutionShape& shape, uint64_t channel_blocks, uint64_t tile,
                     PartWeights weights, uint32_t threads);

}  // namespace anydml
