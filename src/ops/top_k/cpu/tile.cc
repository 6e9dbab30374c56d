#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/cpu/tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "ops/top_k/cpu/tile.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of sequences at a time, so that each cache line is used completely while it is there.
template <typename Bits>
void FillStrided(const Bits* HWY_RESTRICT data, uint64_t row_stride, uint64_t stride, uint64_t rows,
                 uint64_t begin, uint64_t n, Bits* HWY_RESTRICT tile) {
  constexpr uint64_t kBlock = 16;
  for (uint64_t i = begin; i < n; i += kBlock) {
    const uint64_t end = std::min(i + kBlock, n);
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t j = i; j < end; ++j) tile[r * n + j] = data[r * row_stride + j * stride];
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Contiguous sequences, 4 x 4 elements of 32 bits at a time.
uint64_t FillTransposed(const uint32_t* HWY_RESTRICT data, uint64_t stride, uint64_t rows, uint64_t n,
                        uint32_t* HWY_RESTRICT tile) {
  const hn::FixedTag<uint32_t, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto pair = [&](auto low_or_high) HWY_ATTR { return hn::BitCast(d64, low_or_high); };
  uint64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const uint32_t* const from = data + i * stride;
    for (uint64_t r = 0; r + 4 <= rows; r += 4) {
      const auto a = hn::LoadU(d, from + r);
      const auto b = hn::LoadU(d, from + r + stride);
      const auto c = hn::LoadU(d, from + r + 2 * stride);
      const auto e = hn::LoadU(d, from + r + 3 * stride);
      const auto ab_low = pair(hn::InterleaveLower(d, a, b));
      const auto ab_high = pair(hn::InterleaveUpper(d, a, b));
      const auto ce_low = pair(hn::InterleaveLower(d, c, e));
      const auto ce_high = pair(hn::InterleaveUpper(d, c, e));
      uint32_t* const to = tile + r * n + i;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low)), d, to + n);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high)), d, to + 2 * n);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high)), d, to + 3 * n);
    }
  }
  return i;
}
#endif

template <typename Bits>
void Fill(const Bits* data, uint64_t row_stride, uint64_t stride, uint64_t rows, uint64_t n, Bits* tile) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(Bits) == 4) {
    if (row_stride == 1 && rows >= 4) {
      const uint64_t done = FillTransposed(data, stride, rows, n, tile);
      FillStrided(data, 1, stride, rows, done, n, tile);
      const uint64_t whole = rows / 4 * 4;
      FillStrided(data + whole, 1, stride, rows - whole, 0, n, tile + whole * n);
      return;
    }
  }
#endif
  FillStrided(data, row_stride, stride, rows, 0, n, tile);
}

#define ANYDML_FILL(bits)                                                                          \
  void Fill##bits(const uint##bits##_t* data, uint64_t row_stride, uint64_t stride, uint64_t rows, \
                  uint64_t n, uint##bits##_t* tile) {                                              \
    Fill(data, row_stride, stride, rows, n, tile);                                                 \
  }
ANYDML_FILL(8)
ANYDML_FILL(16)
ANYDML_FILL(32)
ANYDML_FILL(64)
#undef ANYDML_FILL

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

uint64_t TileRows(uint64_t n, uint64_t element_bytes, uint64_t neighbours) {
  constexpr uint64_t kNear = uint64_t{256} << 10;
  constexpr uint64_t kMost = uint64_t{8} << 20;
  const uint64_t line = 64 / element_bytes;
  uint64_t rows = std::clamp(kNear / (n * element_bytes) / line * line, line, 4 * line);
  rows = std::min(rows, std::max<uint64_t>(1, kMost / (n * element_bytes)));
  return std::min(rows, neighbours);
}

#define ANYDML_FILL(bits)                                                                                    \
  HWY_EXPORT(Fill##bits);                                                                                    \
  template <>                                                                                                \
  void FillTile(const uint##bits##_t* data, uint64_t row_stride, uint64_t stride, uint64_t rows, uint64_t n, \
                uint##bits##_t* tile) {                                                                      \
    HWY_DYNAMIC_DISPATCH(Fill##bits)(data, row_stride, stride, rows, n, tile);                               \
  }
ANYDML_FILL(8)
ANYDML_FILL(16)
ANYDML_FILL(32)
ANYDML_FILL(64)
#undef ANYDML_FILL

}  // namespace anydml
#endif
