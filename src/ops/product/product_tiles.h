// The tiles of a product's blocks, and the places of their panels.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "ops/numbers/convert_rows.h"
#include "ops/product/blocked.h"
#include "ops/product/blocking.h"

namespace anydml::blocking {

// Fewer tiles finish before prefetched data arrives.
inline constexpr uint64_t kTilesToAsk = 3;

// Wraps.
inline void Add(int32_t sum, bool accumulate, int32_t* to) {
  const uint32_t before = accumulate ? static_cast<uint32_t>(*to) : 0;
  *to = static_cast<int32_t>(before + static_cast<uint32_t>(sum));
}
inline void Add(float sum, bool accumulate, float* to) { *to = accumulate ? *to + sum : sum; }

// One tile, whose rows of A are packed (stride 0) or in place.
struct ProductTile {
  MicroKernel::Rows a;
  const float* b;
  uint64_t steps;
  uint64_t rows, columns, vectors;  // `vectors` is as many as cover the columns

  bool IsWhole(const MicroKernel& kernel) const {
    return (rows == kernel.rows || a.stride != 0) && columns == vectors * kernel.lanes;
  }
  void Run(const MicroKernel& kernel, float* sums, uint64_t stride, bool accumulate,
           const MicroKernel::Ahead& ahead) const {
    if (a.stride != 0) {
      kernel.in_place[rows - 1][vectors - 1](a, b, kernel.columns, steps, sums, stride, accumulate, ahead);
      return;
    }
    const auto packed = vectors * kernel.lanes == kernel.columns ? kernel.run : kernel.narrow[vectors - 1];
    packed(a.first, b, kernel.columns, steps, sums, stride, accumulate, ahead);
  }
};

// At the borders of a part, or if sums are converted: through a buffer for a whole tile.
template <typename Sum>
[[gnu::noinline]] void RunBorderTile(const MicroKernel& kernel, const ProductTile& tile, Sum* to,
                                     uint64_t stride, bool accumulate, const MicroKernel::Ahead& ahead) {
  constexpr bool kIntegers = !std::is_same_v<Sum, float>;
  alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
  tile.Run(kernel, whole, kernel.columns, false, ahead);
  for (uint64_t i = 0; i < tile.rows; ++i) {
    for (uint64_t j = 0; j < tile.columns; ++j) {
      const float sum = whole[i * kernel.columns + j];
      if constexpr (kIntegers) {
        // float sums are integers here
        Add(kernel.bytes ? std::bit_cast<int32_t>(sum) : static_cast<int32_t>(sum), accumulate,
            &to[i * stride + j]);
      } else {
        Add(sum, accumulate, &to[i * stride + j]);
      }
    }
  }
}

template <typename Sum>
inline void RunTile(const MicroKernel& kernel, const ProductTile& tile, Sum* to, uint64_t stride,
                    bool accumulate, const MicroKernel::Ahead& ahead) {
  const bool converts = !std::is_same_v<Sum, float> && !kernel.bytes;
  if (!converts && tile.IsWhole(kernel)) {
    tile.Run(kernel, reinterpret_cast<float*>(to), stride, accumulate, ahead);
  } else {
    RunBorderTile(kernel, tile, to, stride, accumulate, ahead);
  }
}

// Several panels with some of their steps.
struct Panels {
  const float* first;
  uint64_t stride;  // between panels
};

// Tiles always prefetch; prefetching data that is `near` costs no more than an instruction.
inline MicroKernel::Ahead AskForNothing(const void* near) { return {near, 0}; }

// The data that is read after several tiles of `steps` steps each; every tile prefetches a share.
class Next {
 public:
  Next(const float* first, uint64_t floats, uint64_t tiles, uint64_t steps)
      : first_(first),
        floats_(tiles < kTilesToAsk ? 0 : floats),
        of_step_(std::min(kLine, (floats + tiles * steps - 1) / (tiles * steps))),
        of_tile_(steps * of_step_) {}

  MicroKernel::Ahead OfTile(uint64_t tile) const {
    const uint64_t done = tile * of_tile_;
    return done < floats_ ? MicroKernel::Ahead{first_ + done, of_step_ * sizeof(float)} : AskForNothing(this);
  }

 private:
  const float* first_;
  uint64_t floats_;
  uint64_t of_step_, of_tile_;
};

// Steps of B and rows of A in place, one after the other. Tiles prefetch the next ones: a cache line of every
// step of B, then lines of A.
struct NextSteps {
  const std::byte* first = nullptr;  // null: nothing
  uint64_t stride = 0, width = 0;    // bytes
  const std::byte* rows = nullptr;
  uint64_t bytes_of_rows = 0;

  MicroKernel::Ahead OfTile(uint64_t tile, uint64_t steps) const {
    constexpr uint64_t kLineBytes = kLine * sizeof(float);
    if (first == nullptr) return AskForNothing(this);
    const uint64_t before = reinterpret_cast<uintptr_t>(first) % kLineBytes;
    const uint64_t most_before = stride % kLineBytes == 0 ? before : kLineBytes - 1;
    const uint64_t lines = (most_before + width + kLineBytes - 1) / kLineBytes;
    if (tile < lines) return {first + tile * kLineBytes, stride};
    const uint64_t at = (tile - lines) * steps * kLineBytes;
    return at < bytes_of_rows ? MicroKernel::Ahead{rows + at, kLineBytes} : AskForNothing(this);
  }
};

struct PanelRange {
  uint64_t first, count;  // elements
  uint64_t step, steps;
  uint64_t k;  // total number of steps
};

inline Panels Find(const ProductOperand& operand, const PanelRange& range, uint32_t width, float* scratch) {
  if (operand.packed != nullptr) {
    return {operand.packed + range.first * range.k + range.step * width, range.k * width};
  }
  if (operand.packed_halves != nullptr) {
    const uint64_t some = range.steps * width;
    for (uint64_t e = 0; e < range.count; e += width) {
      const uint16_t* const panel = operand.packed_halves + (range.first + e) * range.k + range.step * width;
      HalvesToFloats(panel, scratch + e * range.steps, some);
    }
    return {scratch, some};
  }
  operand.source->Pack(range.first, range.count, range.step, range.steps, width, scratch);
  return {scratch, range.steps * width};
}

}  // namespace anydml::blocking
