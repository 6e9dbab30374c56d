#include "ops/convolution/cpu/pixel_tile.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "ops/numbers/convert_rows.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/convolution/cpu/pixel_tile.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// A tile uses most vector registers. NEON multiplies by a lane of a vector, so four channels of each pixel
// are in registers, too. Vectors of unknown length cannot be array elements, so each has a name: pixel i,
// channels 0 to 3. The widest tiles have four vectors, the 64 channels of many networks, and need few pixels.
#undef ANYDML_TILE_PIXELS
#undef ANYDML_TILE_VECTORS
#undef ANYDML_PIXELS
#define ANYDML_PIXELS(V) V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7)
#if HWY_TARGET == HWY_NEON
#define ANYDML_TILE_PIXELS 8
#define ANYDML_TILE_VECTORS 2
#elif HWY_ARCH_ARM
#define ANYDML_TILE_PIXELS 8
#define ANYDML_TILE_VECTORS 4
#elif HWY_TARGET <= HWY_AVX3
#define ANYDML_TILE_PIXELS 14
#define ANYDML_TILE_VECTORS 4
#undef ANYDML_PIXELS
#define ANYDML_PIXELS(V) V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7) V(8) V(9) V(10) V(11) V(12) V(13)
#else
#define ANYDML_TILE_PIXELS 6
#define ANYDML_TILE_VECTORS 2
#endif

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using TileTag = hn::ScalableTag<float>;
using TileVector = hn::Vec<TileTag>;

constexpr uint32_t kTilePixels = ANYDML_TILE_PIXELS, kTileVectors = ANYDML_TILE_VECTORS;

#include "ops/numbers/clip_vectors-inl.h"
#include "ops/numbers/half_vectors-inl.h"
#include "ops/convolution/cpu/pixel_limits-inl.h"
#include "ops/numbers/add_product-inl.h"

// Whether masked instructions do not touch the memory of inactive lanes.
#undef ANYDML_MASKS
#define ANYDML_MASKS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)

// The first `some` lanes, or all if that is 0.
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
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(ToHalves(d, value), hn::FirstN(dh, some), dh, to);
#else
  alignas(64) uint16_t lanes[hn::MaxLanes(TileTag())];
  hn::StoreU(ToHalves(d, value), dh, lanes);
  std::memcpy(to, lanes, some * sizeof(uint16_t));
#endif
}

// Rounded after every step, as BATCH_NORMALIZATION is.
HWY_INLINE TileVector NormalizeVector(TileTag d, TileVector x, const float* mean, uint64_t stride) {
  const auto product = hn::Mul(hn::Sub(x, hn::LoadU(d, mean)), hn::LoadU(d, mean + stride));
  return hn::Add(product, hn::LoadU(d, mean + 2 * stride));
}

HWY_INLINE TileVector AddLanes(TileTag d, TileVector x, const float* from, uint32_t some) {
  return hn::Add(x, LoadLanes(d, from, some));
}

// Both are FLOAT16 then.
HWY_INLINE TileVector AddLanes(TileTag d, TileVector x, const uint16_t* from, uint32_t some) {
  alignas(64) uint16_t lanes[hn::MaxLanes(TileTag())] = {};
  if (HWY_UNLIKELY(some != 0))
    from = static_cast<uint16_t*>(std::memcpy(lanes, from, some * sizeof(uint16_t)));
  const auto added = LoadHalves(d, from);
  hn::StoreU(ToHalves(d, x), hn::Rebind<uint16_t, TileTag>(), lanes);
  return hn::Add(LoadHalves(d, lanes), added);
}

HWY_INLINE TileVector PackWeights(TileTag d, const float* from, uint32_t some, float* to) {
  const auto weights = LoadLanes(d, from, some);
  hn::StoreU(weights, d, to);
  return weights;
}

template <uint32_t kPixels, uint32_t kVectors, bool kPacks = false>
void AddTile(const PixelTile& tile) {
  static_assert(kVectors <= 4);
  const TileTag d;
  const size_t lanes = hn::Lanes(d);
  // Active lanes of partial vectors.
  const uint32_t part0 = kVectors == 1 ? tile.last_channels : 0,
                 part1 = kVectors == 2 ? tile.last_channels : 0,
                 part2 = kVectors == 3 ? tile.last_channels : 0,
                 part3 = kVectors == 4 ? tile.last_channels : 0;
#define ANYDML_BEGIN_SUMS(i)                                                                       \
  auto c##i##0 = hn::Zero(d), c##i##1 = c##i##0, c##i##2 = c##i##0, c##i##3 = c##i##0;             \
  if (kPixels > (i) && tile.starts != nullptr) {                                                   \
    c##i##0 = c##i##1 = c##i##2 = c##i##3 = hn::Set(d, tile.starts[i]);                            \
  } else if (kPixels > (i)) {                                                                      \
    const float* const from = tile.start != nullptr ? tile.start : tile.sums[i];                   \
    c##i##0 = LoadLanes(d, from, tile.start != nullptr ? 0 : part0);                               \
    if (kVectors > 1) c##i##1 = LoadLanes(d, from + lanes, tile.start != nullptr ? 0 : part1);     \
    if (kVectors > 2) c##i##2 = LoadLanes(d, from + 2 * lanes, tile.start != nullptr ? 0 : part2); \
    if (kVectors > 3) c##i##3 = LoadLanes(d, from + 3 * lanes, tile.start != nullptr ? 0 : part3); \
  }
#define ANYDML_ADD_PRODUCTS(i, number)                      \
  if constexpr (kPixels > (i)) {                            \
    const auto x = number;                                  \
    AddProduct(x, w0, c##i##0);                             \
    if constexpr (kVectors > 1) AddProduct(x, w1, c##i##1); \
    if constexpr (kVectors > 2) AddProduct(x, w2, c##i##2); \
    if constexpr (kVectors > 3) AddProduct(x, w3, c##i##3); \
  }
#define ANYDML_WEIGHTS(v)                                                                       \
  (kPacks ? PackWeights(d, row + (v)*lanes, kVectors == (v) + 1 ? row_last : 0, to + (v)*lanes) \
          : hn::LoadU(d, w + (v)*lanes))
#define ANYDML_LOAD_WEIGHTS                                               \
  const auto w0 = ANYDML_WEIGHTS(0);                                      \
  [[maybe_unused]] const auto w1 = kVectors > 1 ? ANYDML_WEIGHTS(1) : w0; \
  [[maybe_unused]] const auto w2 = kVectors > 2 ? ANYDML_WEIGHTS(2) : w0; \
  [[maybe_unused]] const auto w3 = kVectors > 3 ? ANYDML_WEIGHTS(3) : w0;
#define ANYDML_PIXEL(i)                                   \
  [[maybe_unused]] const float* HWY_RESTRICT const p##i = \
      reinterpret_cast<const float*>(tile.inputs[kPixels > (i) ? (i) : 0] + offset);
#define ANYDML_STEP(i) ANYDML_ADD_PRODUCTS(i, hn::Set(d, p##i[at]))

  ANYDML_PIXELS(ANYDML_BEGIN_SUMS)
  const float* HWY_RESTRICT w = tile.weights;
  [[maybe_unused]] const float* row = tile.packing.rows;
  [[maybe_unused]] float* to = tile.packing.to;
  [[maybe_unused]] const uint64_t row_stride = tile.packing.stride;
  [[maybe_unused]] const uint32_t row_last = tile.packing.last;
  [[maybe_unused]] uintptr_t ahead = tile.ahead;  // a prefetch address, possibly invalid
  [[maybe_unused]] const uint64_t ahead_step = tile.ahead_step, ahead_skip = tile.ahead_skip;
  // Four steps share the prefetch of a line; larger distances are prefetched step by step.
  const bool by_fours = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && !kPacks && ahead_step <= 16;
  for (uint32_t r = 0; r < tile.run_count; ++r) {
    // Steps by fours count up to 0; the remaining ones follow.
    const uint64_t fours = by_fours ? tile.runs[r].steps / 4 * 4 : 0;
    const uint64_t offset = (tile.runs[r].offset + fours) * sizeof(float);
    auto at = -static_cast<ptrdiff_t>(fours);
    const auto rest = static_cast<ptrdiff_t>(tile.runs[r].steps - fours);
    w += tile.runs[r].skipped * kVectors * lanes;
    ANYDML_PIXELS(ANYDML_PIXEL)
#if HWY_TARGET == HWY_NEON
#define ANYDML_FOUR(i) \
  [[maybe_unused]] const auto x##i = kPixels > (i) ? hn::LoadU(d, p##i + at) : hn::Zero(d);
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
    for (; !kPacks && at + 4 <= rest; at += 4) {
      ANYDML_PIXELS(ANYDML_FOUR)
      ANYDML_STEP_OF_FOUR(0)
      ANYDML_STEP_OF_FOUR(1)
      ANYDML_STEP_OF_FOUR(2)
      ANYDML_STEP_OF_FOUR(3)
    }
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Instructions other than multiply-adds compete with these, most of all if another thread shares the core:
// hence one index for all pixels, and one prefetch for four steps.
#define ANYDML_FOUR(i) ANYDML_ADD_PRODUCTS(i, hn::Set(d, p##i[at + kStep]))
#define ANYDML_STEP_OF_FOUR(number)     \
  {                                     \
    constexpr ptrdiff_t kStep = number; \
    ANYDML_LOAD_WEIGHTS                 \
    ANYDML_PIXELS(ANYDML_FOUR)          \
    w += kVectors * lanes;              \
  }
    for (; at != 0; at += 4) {
      asm("" : "+r"(at));  // keeps compilers from using a pointer per pixel
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
      ahead += 4 * ahead_step;
      ANYDML_STEP_OF_FOUR(0)
      ANYDML_STEP_OF_FOUR(1)
      ANYDML_STEP_OF_FOUR(2)
      ANYDML_STEP_OF_FOUR(3)
    }
#endif
    for (; at != rest; ++at) {
#if HWY_ARCH_X86  // into L2
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
      ahead += ahead_step;
#endif
      ANYDML_LOAD_WEIGHTS
      ANYDML_PIXELS(ANYDML_STEP)
      w += kVectors * lanes;
      if constexpr (kPacks) {
        row += row_stride;
        to += kVectors * lanes;
      }
    }
    ahead += ahead_skip;
  }
#define ANYDML_NORMALIZE(i)                                                                               \
  if constexpr (kPixels > (i)) {                                                                          \
    c##i##0 = NormalizeVector(d, c##i##0, tile.normal, tile.normal_stride);                               \
    if (kVectors > 1) c##i##1 = NormalizeVector(d, c##i##1, tile.normal + lanes, tile.normal_stride);     \
    if (kVectors > 2) c##i##2 = NormalizeVector(d, c##i##2, tile.normal + 2 * lanes, tile.normal_stride); \
    if (kVectors > 3) c##i##3 = NormalizeVector(d, c##i##3, tile.normal + 3 * lanes, tile.normal_stride); \
  }
#define ANYDML_ADD_OTHER(i, T)                                                 \
  if constexpr (kPixels > (i)) {                                               \
    const T* const from = static_cast<const T*>(tile.added[i]);                \
    c##i##0 = AddLanes(d, c##i##0, from, part0);                               \
    if (kVectors > 1) c##i##1 = AddLanes(d, c##i##1, from + lanes, part1);     \
    if (kVectors > 2) c##i##2 = AddLanes(d, c##i##2, from + 2 * lanes, part2); \
    if (kVectors > 3) c##i##3 = AddLanes(d, c##i##3, from + 3 * lanes, part3); \
  }
#define ANYDML_ADD_FLOATS(i) ANYDML_ADD_OTHER(i, float)
#define ANYDML_ADD_HALVES(i) ANYDML_ADD_OTHER(i, uint16_t)
#define ANYDML_STORE(i, to)                                               \
  if constexpr (kPixels > (i)) {                                          \
    StoreLanes(d, c##i##0, (to)[i], part0);                               \
    if (kVectors > 1) StoreLanes(d, c##i##1, (to)[i] + lanes, part1);     \
    if (kVectors > 2) StoreLanes(d, c##i##2, (to)[i] + 2 * lanes, part2); \
    if (kVectors > 3) StoreLanes(d, c##i##3, (to)[i] + 3 * lanes, part3); \
  }
#define ANYDML_STORE_SUMS(i) ANYDML_STORE(i, tile.sums)
#define ANYDML_STORE_HALVES(i) ANYDML_STORE(i, tile.halves)
  const PixelFinish* const finish = tile.finish;
  if (finish != nullptr) {
    if (finish->clips) ANYDML_CLIP(*finish->clips)
    if (finish->normalizes) {
      ANYDML_PIXELS(ANYDML_NORMALIZE)
      ANYDML_CLIP(*finish->normalizes)
    }
    if (finish->adds) {
      if (finish->to_halves) {
        ANYDML_PIXELS(ANYDML_ADD_HALVES)
      } else {
        ANYDML_PIXELS(ANYDML_ADD_FLOATS)
      }
      ANYDML_CLIP(*finish->adds)
    }
  }
  if (finish != nullptr && finish->to_halves) {
    ANYDML_PIXELS(ANYDML_STORE_HALVES)
  } else {
    ANYDML_PIXELS(ANYDML_STORE_SUMS)
  }
#undef ANYDML_BEGIN_SUMS
#undef ANYDML_ADD_PRODUCTS
#undef ANYDML_WEIGHTS
#undef ANYDML_LOAD_WEIGHTS
#undef ANYDML_PIXEL
#undef ANYDML_STEP
#undef ANYDML_FOUR
#undef ANYDML_LANE0
#undef ANYDML_LANE1
#undef ANYDML_LANE2
#undef ANYDML_LANE3
#undef ANYDML_STEP_OF_FOUR
#undef ANYDML_NORMALIZE
#undef ANYDML_ADD_OTHER
#undef ANYDML_ADD_FLOATS
#undef ANYDML_ADD_HALVES
#undef ANYDML_STORE
#undef ANYDML_STORE_SUMS
#undef ANYDML_STORE_HALVES
}

// Sums, a step's weights and a pixel's number must fit into registers.
constexpr uint32_t PixelsOf(uint32_t vectors) {
  constexpr uint32_t kMost[] = {14, 12, 8, 6};
  return std::min(kMost[vectors - 1], kTilePixels);
}

template <uint32_t kPixels, uint32_t kVectors>
void FillTile(PixelTiles* tiles) {
  if constexpr (kVectors <= kTileVectors && kPixels <= PixelsOf(kVectors)) {
    tiles->add[kPixels - 1][kVectors - 1] = &AddTile<kPixels, kVectors>;
    tiles->pixels[kVectors - 1] = std::max(tiles->pixels[kVectors - 1], kPixels);
    if constexpr (kPixels == PixelsOf(kVectors)) {
      tiles->pack_and_add[kVectors - 1] = &AddTile<kPixels, kVectors, true>;
    }
  }
}

template <uint32_t kPixels>
void FillTiles(PixelTiles* tiles) {
  FillTile<kPixels, 1>(tiles);
  FillTile<kPixels, 2>(tiles);
  FillTile<kPixels, 3>(tiles);
  FillTile<kPixels, 4>(tiles);
  if constexpr (kPixels > 1) FillTiles<kPixels - 1>(tiles);
}

template <uint32_t kVectors>
void GatherRows(const float* from, uint64_t from_stride, uint64_t rows, uint32_t last, float* to) {
  const TileTag d;
  const size_t lanes = hn::Lanes(d);
  for (uint64_t row = 0; row < rows; ++row, from += from_stride, to += kVectors * lanes) {
    for (uint32_t v = 0; v + 1 < kVectors; ++v) hn::StoreU(hn::LoadU(d, from + v * lanes), d, to + v * lanes);
    const size_t at = (kVectors - 1) * lanes;
    hn::StoreU(LoadLanes(d, from + at, last), d, to + at);
  }
}

void Gather(const float* from, uint64_t from_stride, uint64_t rows, uint32_t vectors, uint32_t last,
            float* to) {
  constexpr decltype(&GatherRows<1>) kOf[] = {&GatherRows<1>, &GatherRows<2>, &GatherRows<3>, &GatherRows<4>};
  kOf[vectors - 1](from, from_stride, rows, last, to);
}

void Interleave(const float* const* planes, uint64_t count, float* to) {
  const TileTag d;
  const size_t lanes = hn::Lanes(d);
  const float *const a = planes[0], *const b = planes[1], *const c = planes[2];
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreInterleaved3(hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i), d, to + 3 * i);
  }
  for (; i < count; ++i) to[3 * i] = a[i], to[3 * i + 1] = b[i], to[3 * i + 2] = c[i];
}

PixelTiles FindTiles() {
  PixelTiles tiles = {
      static_cast<uint32_t>(hn::Lanes(TileTag())), kTileVectors, {}, {}, {}, &Gather, &Interleave};
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

#endif  // otherwise pixel_tile_plain.cc
