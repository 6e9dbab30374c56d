// How depthwise_ring.cuh cuts images into blocks.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise.cuh"
#include "ops/convolution/cuda/product_cut.h"

namespace anydml {

// Channels and columns per thread; most threads per block; fewest blocks per multiprocessor.
inline constexpr uint32_t kRingVector = 4, kRingColumns = 4, kRingThreads = 256, kRingBlocks = 2;
inline constexpr uint32_t kMostRingRows = 6;  // in shared memory; more were slower
inline constexpr uint64_t kMostRingBytes = 100 << 10;

// Rows of FLOAT16 images are contiguous, and blocks have at least eight columns of them, because each reads
// two more.
inline bool HasDepthwiseRing(const ConvolutionShape& s) {
  return HasDepthwiseTiles(s, sizeof(__half)) && s.input.spatial[kMaxSpatial - 1] == s.outer[1] &&
         s.outer[1] / kRingVector * 2 <= kRingThreads;
}

struct RingCut {
  uint32_t parts, columns;  // parts of a row, and columns of each
  uint32_t bands, band;     // bands of an image, and rows of each
  uint32_t rows;            // of the input, in shared memory at a time
  uint32_t threads, shared_bytes;

  RingCut(const ConvolutionShape& s, uint64_t multiprocessors) {
    constexpr uint32_t kBand = 14, kLeastBand = 2;
    const uint32_t all_columns = s.windows[kMaxSpatial - 1].output,
                   all_rows = s.windows[kMaxSpatial - 2].output;
    const auto vectors = static_cast<uint32_t>(s.outer[1] / kRingVector);
    const auto divide = [](uint64_t a, uint64_t b) { return static_cast<uint32_t>(DivideUp(a, b)); };
    parts = divide(all_columns, kRingThreads / vectors * kRingColumns);
    bands = divide(all_rows, kBand);
    const auto is_few = [&] { return s.outer[0] * parts * bands < multiprocessors * kRingBlocks; };
    while (is_few() && bands * kLeastBand < all_rows)
      bands = std::min(bands * 2, divide(all_rows, kLeastBand));
    while (is_few() && all_columns > 2 * kRingColumns * parts) parts *= 2;
    columns = divide(all_columns, parts);
    parts = divide(all_columns, columns);
    band = divide(all_rows, bands);
    bands = divide(all_rows, band);
    const uint64_t pixel = s.outer[1] * sizeof(__half), line = (columns + 2) * pixel;
    rows = static_cast<uint32_t>(
        std::min<uint64_t>({band + 2, kMostRingRows, (kMostRingBytes - kRingColumns * pixel) / line}));
    threads = divide(vectors * divide(columns, kRingColumns), 32) * 32;
    // A thread's last columns may be after the end of a row; they are not used.
    shared_bytes = static_cast<uint32_t>(rows * line + kRingColumns * pixel);
  }
};

}  // namespace anydml
