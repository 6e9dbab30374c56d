// Tiles of a product in blocks, and where panels for them are.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "ops/element/cpu/rows.h"
#include "ops/gemm/cpu/blocked.h"
#include "ops/gemm/cpu/blocking.h"

namespace anydml::blocking {

// Fewer tiles than these do not last until what comes next is there.
inline constexpr uint64_t kTilesToAsk = 3;

// Wraps.
inline void Add(int32_t sum, bool accumulate, int32_t* to) {
  const uint32_t before = accumulate ? static_cast<uint32_t>(*to) : 0;
  *to = static_cast<int32_t>(before + static_cast<uint32_t>(sum));
}
inline void Add(float sum, bool accumulate, float* to) { *to = accumulate ? *to + sum : sum; }

// One tile, of rows of A that are packed (a stride of 0) or where they lie; at the borders of a part, or
// where sums are converted, through memory of a whole one.
template <typename Sum>
void RunTile(const MicroKernel& kernel, const MicroKernel::Rows& a, const float* b, uint64_t steps,
             uint64_t rows, uint64_t columns, Sum* to, uint64_t stride, bool accumulate,
             const MicroKernel::Ahead& ahead) {
  constexpr bool kIntegers = !std::is_same_v<Sum, float>;
  const bool converts = kIntegers && !kernel.bytes;
  const uint64_t vectors = (columns + kernel.lanes - 1) / kernel.lanes;
  const auto run = [&](float* sums, uint64_t sums_stride, bool adds) {
    if (a.stride != 0) {
      kernel.in_place[rows - 1][vectors - 1](a, b, kernel.columns, steps, sums, sums_stride, adds, ahead);
      return;
    }
    const auto packed = vectors * kernel.lanes == kernel.columns ? kernel.run : kernel.narrow[vectors - 1];
    packed(a.first, b, kernel.columns, steps, sums, sums_stride, adds, ahead);
  };
  if (!converts && (rows == kernel.rows || a.stride != 0) && columns == vectors * kernel.lanes) {
    run(reinterpret_cast<float*>(to), stride, accumulate);
    return;
  }
  alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
  run(whole, kernel.columns, false);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) {
      const float sum = whole[i * kernel.columns + j];
      if constexpr (kIntegers) {
        // Sums of floats are whole numbers.
        Add(converts ? static_cast<int32_t>(sum) : std::bit_cast<int32_t>(sum), accumulate,
            &to[i * stride + j]);
      } else {
        Add(sum, accumulate, &to[i * stride + j]);
      }
    }
  }
}

// Some panels with some of their steps.
struct Panels {
  const float* first;
  uint64_t stride;  // from one to the next
};

// What is read after some tiles. Each of them asks for a share.
struct Next {
  const float* first;
  uint64_t floats;

  MicroKernel::Ahead OfTile(uint64_t tile, uint64_t tiles, uint64_t steps) const {
    if (tiles < kTilesToAsk) return {first, 0};
    const uint64_t of_step = std::min(kLine, (floats + tiles * steps - 1) / (tiles * steps));
    const uint64_t done = tile * steps * of_step;
    return done < floats ? MicroKernel::Ahead{first + done, of_step * sizeof(float)}
                         : MicroKernel::Ahead{first, 0};
  }
};

// Steps of B where they lie, and rows of A, one behind the other. Tiles ask for what comes next, each for a
// line of every step of B, then for lines of A.
struct NextSteps {
  const std::byte* first = nullptr;  // null: nothing
  uint64_t stride = 0, width = 0;    // bytes
  const std::byte* rows = nullptr;
  uint64_t bytes_of_rows = 0;

  MicroKernel::Ahead OfTile(uint64_t tile, uint64_t steps) const {
    constexpr uint64_t kLineBytes = kLine * sizeof(float);
    if (first == nullptr) return {nullptr, 0};
    const uint64_t before = reinterpret_cast<uintptr_t>(first) % kLineBytes;
    const uint64_t most_before = stride % kLineBytes == 0 ? before : kLineBytes - 1;
    const uint64_t lines = (most_before + width + kLineBytes - 1) / kLineBytes;
    if (tile < lines) return {first + tile * kLineBytes, stride};
    const uint64_t at = (tile - lines) * steps * kLineBytes;
    return at < bytes_of_rows ? MicroKernel::Ahead{rows + at, kLineBytes} : MicroKernel::Ahead{first, 0};
  }
};

struct PanelRange {
  uint64_t first, count;  // elements
  uint64_t step, steps;
  uint64_t k;  // steps of all
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
