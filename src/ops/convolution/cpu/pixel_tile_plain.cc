// Tiles of pixels without Highway.
#include "ops/convolution/cpu/pixel_tile.h"

#if !ANYDML_HAVE_HIGHWAY
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ops/numbers/convert_rows.h"

namespace anydml {
namespace {

constexpr uint32_t kChannels = 8;

template <uint32_t kPixels>
void AddTile(const PixelTile& tile) {
  const uint32_t used = tile.last_channels == 0 ? kChannels : tile.last_channels;
  float sums[kPixels][kChannels] = {};
  for (uint32_t i = 0; i < kPixels; ++i) {
    if (tile.starts != nullptr) {
      std::fill_n(sums[i], used, tile.starts[i]);
    } else {
      std::copy_n(tile.start != nullptr ? tile.start : tile.sums[i], used, sums[i]);
    }
  }
  const float* weights = tile.weights;
  for (uint32_t r = 0; r < tile.run_count; ++r) {
    const uint64_t offset = tile.runs[r].offset * sizeof(float);
    weights += tile.runs[r].skipped * kChannels;
    for (uint64_t step = 0; step < tile.runs[r].steps; ++step, weights += kChannels) {
      for (uint32_t i = 0; i < kPixels; ++i) {
        const float x = reinterpret_cast<const float*>(tile.inputs[i] + offset)[step];
        for (uint32_t c = 0; c < kChannels; ++c) sums[i][c] += x * weights[c];
      }
    }
  }
  const auto clip = [](float x, const PixelFinish::Limits& limits) {
    const float least = x <= limits.low ? limits.low : x;
    return std::isnan(x) ? std::numeric_limits<float>::quiet_NaN()
                         : (least >= limits.high ? limits.high : least);
  };
  const PixelFinish* const finish = tile.finish;
  for (uint32_t i = 0; i < kPixels; ++i) {
    for (uint32_t c = 0; c < used && finish != nullptr; ++c) {
      float& sum = sums[i][c];
      if (finish->clips) sum = clip(sum, *finish->clips);
      if (finish->normalizes) {
        const float* const mean = tile.normal + c;
        sum = (sum - mean[0]) * mean[tile.normal_stride] + mean[2 * tile.normal_stride];
        sum = clip(sum, *finish->normalizes);
      }
      if (finish->adds && finish->to_halves) {
        const Half added = static_cast<const Half*>(tile.added[i])[c];
        sum = clip(ToFloat(ToHalf(sum)) + ToFloat(added), *finish->adds);
      } else if (finish->adds) {
        sum = clip(sum + static_cast<const float*>(tile.added[i])[c], *finish->adds);
      }
    }
    if (finish != nullptr && finish->to_halves) {
      FloatsToHalves(sums[i], tile.halves[i], used);
    } else {
      std::copy_n(sums[i], used, tile.sums[i]);
    }
  }
}

void Gather(const float* from, uint64_t from_stride, uint64_t rows, uint32_t, uint32_t last, float* to) {
  const uint32_t used = last == 0 ? kChannels : last;
  for (uint64_t row = 0; row < rows; ++row, from += from_stride, to += kChannels) {
    std::fill_n(std::copy_n(from, used, to), kChannels - used, 0.0f);
  }
}

void Interleave(const float* const* planes, uint64_t count, float* to) {
  for (uint64_t i = 0; i < count; ++i) {
    for (uint32_t c = 0; c < 3; ++c) to[3 * i + c] = planes[c][i];
  }
}

}  // namespace

const PixelTiles& ConvolutionPixelTiles() {
  static constexpr PixelTiles kTiles = {
      kChannels, 1,       {4},        {{&AddTile<1>}, {&AddTile<2>}, {&AddTile<3>}, {&AddTile<4>}},
      {},        &Gather, &Interleave};
  return kTiles;
}

}  // namespace anydml
#endif
