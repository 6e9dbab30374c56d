#include "ops/convolution/cpu/pixel_tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/element/cpu/rows.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/convolution/cpu/pixel_tile.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// A tile takes most of the vector registers. NEON multiplies by a lane of a vector, so that four channels of
// each pixel are in registers, too. Vectors of unknown length cannot be elements of arrays, so that each has
// a name: pixels i, channels 0 to 2.
#undef ANYDML_TILE_PIXELS
#undef ANYDML_TILE_VECTORS
#if HWY_TARGET == HWY_NEON
#define ANYDML_TILE_PIXELS 8
#define ANYDML_TILE_VECTORS 2
#elif HWY_ARCH_ARM || HWY_TARGET <= HWY_AVX3
#define ANYDML_TILE_PIXELS 8
#define ANYDML_TILE_VECTORS 3
#else
#define ANYDML_TILE_PIXELS 6
#define ANYDML_TILE_VECTORS 2
#endif
#undef ANYDML_PIXELS
#define ANYDML_PIXELS(V) V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7)

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using TileTag = hn::ScalableTag<float>;
using TileVector = hn::Vec<TileTag>;

constexpr uint32_t kTilePixels = ANYDML_TILE_PIXELS, kTileVectors = ANYDML_TILE_VECTORS;

#include "ops/element/cpu/clip_vectors-inl.h"
#include "ops/element/cpu/half_vectors-inl.h"

// Whether memory of the other lanes is left alone by instructions with masks.
#undef ANYDML_MASKS
#define ANYDML_MASKS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)

// The first `some` lanes, or all of them where that is 0.
HWY_INLINE TileVector LoadLanes(TileTag d, const float* from, uint32_t some) {
  if (HWY_LIKELY(some == 0)) return hn::LoadU(d, from);
#if ANYDML_MASKS
  return hn::MaskedLoad(hn::FirstN(d, some), d, from);
#else
  alignas(64) float lanes[hn::MaxLanes(TileTag())] = {};
  std::memcpy(lanes, from, some * sizeof(float));
  return hn::LoadU(d, lanes);
#endif
}

HWY_INLINE void StoreLanes(TileTag d, TileVector value, float* to, uint32_t some) {
  if (HWY_LIKELY(some == 0)) return hn::StoreU(value, d, to);
#if ANYDML_MASKS
  hn::BlendedStore(value, hn::FirstN(d, some), d, to);
#else
  alignas(64) float lanes[hn::MaxLanes(TileTag())];
  hn::StoreU(value, d, lanes);
  std::memcpy(to, lanes, some * sizeof(float));
#endif
}

HWY_INLINE void StoreLanes(TileTag d, TileVector value, uint16_t* to, uint32_t some) {
  const hn::Rebind<uint16_t, TileTag> dh;
  if (HWY_LIKELY(some == 0)) return hn::StoreU(ToHalves(d, value), dh, to);
  alignas(64) uint16_t lanes[hn::MaxLanes(TileTag())];
  hn::StoreU(ToHalves(d, value), dh, lanes);
  std::memcpy(to, lanes, some * sizeof(uint16_t));
}

template <uint32_t kPixels, uint32_t kVectors>
void AddTile(const PixelTile& tile) {
  static_assert(kVectors <= 3);
  const TileTag d;
  const size_t lanes = hn::Lanes(d);
  // Lanes of each vector that are not whole.
  const uint32_t part0 = kVectors == 1 ? tile.last_channels : 0,
                 part1 = kVectors == 2 ? tile.last_channels : 0,
                 part2 = kVectors == 3 ? tile.last_channels : 0;
#define ANYDML_BEGIN_SUMS(i)                                                                       \
  auto c##i##0 = hn::Zero(d), c##i##1 = c##i##0, c##i##2 = c##i##0;                                \
  if constexpr (kPixels > (i)) {                                                                   \
    const float* const from = tile.start != nullptr ? tile.start : tile.sums[i];                   \
    c##i##0 = LoadLanes(d, from, tile.start != nullptr ? 0 : part0);                               \
    if (kVectors > 1) c##i##1 = LoadLanes(d, from + lanes, tile.start != nullptr ? 0 : part1);     \
    if (kVectors > 2) c##i##2 = LoadLanes(d, from + 2 * lanes, tile.start != nullptr ? 0 : part2); \
  }
#define ANYDML_ADD_PRODUCTS(i, number)                      \
  if constexpr (kPixels > (i)) {                            \
    const auto x = number;                                  \
    c##i##0 = hn::MulAdd(x, w0, c##i##0);                   \
    if (kVectors > 1) c##i##1 = hn::MulAdd(x, w1, c##i##1); \
    if (kVectors > 2) c##i##2 = hn::MulAdd(x, w2, c##i##2); \
  }
#define ANYDML_LOAD_WEIGHTS                                                     \
  const auto w0 = hn::LoadU(d, w);                                              \
  [[maybe_unused]] const auto w1 = kVectors > 1 ? hn::LoadU(d, w + lanes) : w0; \
  [[maybe_unused]] const auto w2 = kVectors > 2 ? hn::LoadU(d, w + 2 * lanes) : w0;
#define ANYDML_PIXEL(i)                                   \
  [[maybe_unused]] const float* HWY_RESTRICT const p##i = \
      reinterpret_cast<const float*>(tile.inputs[kPixels > (i) ? (i) : 0] + offset);
#define ANYDML_STEP(i) ANYDML_ADD_PRODUCTS(i, hn::Set(d, p##i[step]))

  ANYDML_PIXELS(ANYDML_BEGIN_SUMS)
  const float* HWY_RESTRICT w = tile.weights;
  for (uint32_t r = 0; r < tile.run_count; ++r) {
    const uint64_t offset = tile.runs[r].offset * sizeof(float);
    const uint64_t steps = tile.runs[r].steps;
    ANYDML_PIXELS(ANYDML_PIXEL)
    uint64_t step = 0;
#if HWY_TARGET == HWY_NEON
#define ANYDML_FOUR(i) \
  [[maybe_unused]] const auto x##i = kPixels > (i) ? hn::LoadU(d, p##i + step) : hn::Zero(d);
#define ANYDML_LANE0(i) ANYDML_ADD_PRODUCTS(i, hn::Broadcast<0>(x##i))
#define ANYDML_LANE1(i) ANYDML_ADD_PRODUCTS(i, hn::Broadcast<1>(x##i))
#define ANYDML_LANE2(i) ANYDML_ADD_PRODUCTS(i, hn::Broadcast<2>(x##i))
#define ANYDML_LANE3(i) ANYDML_ADD_PRODUCTS(i, hn::Broadcast<3>(x##i))
#define ANYDML_STEP_OF_FOUR(lane)    \
  {                                  \
    ANYDML_LOAD_WEIGHTS              \
    ANYDML_PIXELS(ANYDML_LANE##lane) \
    w += kVectors * lanes;           \
  }
    for (; step + 4 <= steps; step += 4) {
      ANYDML_PIXELS(ANYDML_FOUR)
      ANYDML_STEP_OF_FOUR(0)
      ANYDML_STEP_OF_FOUR(1)
      ANYDML_STEP_OF_FOUR(2)
      ANYDML_STEP_OF_FOUR(3)
    }
#endif
    for (; step < steps; ++step) {
      ANYDML_LOAD_WEIGHTS
      ANYDML_PIXELS(ANYDML_STEP)
      w += kVectors * lanes;
    }
  }
#define ANYDML_CLIP(i)                                             \
  if constexpr (kPixels > (i)) {                                   \
    c##i##0 = ClipVector(d, c##i##0, low, high);                   \
    if (kVectors > 1) c##i##1 = ClipVector(d, c##i##1, low, high); \
    if (kVectors > 2) c##i##2 = ClipVector(d, c##i##2, low, high); \
  }
#define ANYDML_STORE(i, to)                                               \
  if constexpr (kPixels > (i)) {                                          \
    StoreLanes(d, c##i##0, (to)[i], part0);                               \
    if (kVectors > 1) StoreLanes(d, c##i##1, (to)[i] + lanes, part1);     \
    if (kVectors > 2) StoreLanes(d, c##i##2, (to)[i] + 2 * lanes, part2); \
  }
#define ANYDML_STORE_SUMS(i) ANYDML_STORE(i, tile.sums)
#define ANYDML_STORE_HALVES(i) ANYDML_STORE(i, tile.halves)
  if (tile.clips) {
    const auto low = hn::Set(d, tile.low), high = hn::Set(d, tile.high);
    ANYDML_PIXELS(ANYDML_CLIP)
  }
  if (tile.to_halves) {
    ANYDML_PIXELS(ANYDML_STORE_HALVES)
  } else {
    ANYDML_PIXELS(ANYDML_STORE_SUMS)
  }
#undef ANYDML_BEGIN_SUMS
#undef ANYDML_ADD_PRODUCTS
#undef ANYDML_LOAD_WEIGHTS
#undef ANYDML_PIXEL
#undef ANYDML_STEP
#undef ANYDML_FOUR
#undef ANYDML_LANE0
#undef ANYDML_LANE1
#undef ANYDML_LANE2
#undef ANYDML_LANE3
#undef ANYDML_STEP_OF_FOUR
#undef ANYDML_CLIP
#undef ANYDML_STORE
#undef ANYDML_STORE_SUMS
#undef ANYDML_STORE_HALVES
}

template <uint32_t kPixels>
void FillTiles(PixelTiles* tiles) {
  tiles->add[kPixels - 1][0] = &AddTile<kPixels, 1>;
  tiles->add[kPixels - 1][1] = &AddTile<kPixels, 2>;
  if constexpr (kTileVectors > 2) tiles->add[kPixels - 1][2] = &AddTile<kPixels, 3>;
  if constexpr (kPixels > 1) FillTiles<kPixels - 1>(tiles);
}

PixelTiles FindTiles() {
  PixelTiles tiles = {static_cast<uint32_t>(hn::Lanes(TileTag())), kTilePixels, kTileVectors, {}};
  FillTiles<kTilePixels>(&tiles);
  return tiles;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindTiles);
}  // namespace

const PixelTiles& ConvolutionPixelTiles() {
  static const PixelTiles tiles = HWY_DYNAMIC_DISPATCH(FindTiles)();
  return tiles;
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
namespace {

constexpr uint32_t kChannels = 8;

template <uint32_t kPixels>
void AddTile(const PixelTile& tile) {
  const uint32_t used = tile.last_channels == 0 ? kChannels : tile.last_channels;
  float sums[kPixels][kChannels] = {};
  for (uint32_t i = 0; i < kPixels; ++i) {
    std::copy_n(tile.start != nullptr ? tile.start : tile.sums[i], used, sums[i]);
  }
  const float* weights = tile.weights;
  for (uint32_t r = 0; r < tile.run_count; ++r) {
    const uint64_t offset = tile.runs[r].offset * sizeof(float);
    for (uint64_t step = 0; step < tile.runs[r].steps; ++step, weights += kChannels) {
      for (uint32_t i = 0; i < kPixels; ++i) {
        const float x = reinterpret_cast<const float*>(tile.inputs[i] + offset)[step];
        for (uint32_t c = 0; c < kChannels; ++c) sums[i][c] += x * weights[c];
      }
    }
  }
  for (uint32_t i = 0; i < kPixels; ++i) {
    for (uint32_t c = 0; c < used && tile.clips; ++c) {
      const float sum = sums[i][c], least = sum <= tile.low ? tile.low : sum;
      sums[i][c] = std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN()
                                   : (least >= tile.high ? tile.high : least);
    }
    if (tile.to_halves) {
      FloatsToHalves(sums[i], tile.halves[i], used);
    } else {
      std::copy_n(sums[i], used, tile.sums[i]);
    }
  }
}

}  // namespace

const PixelTiles& ConvolutionPixelTiles() {
  static constexpr PixelTiles kTiles = {
      kChannels, 4, 1, {{&AddTile<1>}, {&AddTile<2>}, {&AddTile<3>}, {&AddTile<4>}}};
  return kTiles;
}

}  // namespace anydml
#endif
