// Limits for all sums of a tile: ANYDML_CLIP(limits), for pixel_tile.cc's AddTile, whose names it uses.

#undef ANYDML_SUM
#undef ANYDML_LARGER
#undef ANYDML_SMALLER
#undef ANYDML_PUT
#undef ANYDML_GET
#undef ANYDML_CLIP_ALL
#undef ANYDML_CLIP

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
// x86's max and min return the second operand if both are equal or one is NaN. NaNs are rare and are detected
// first: a sum of all numbers is NaN then.
#define ANYDML_SUM(i)                                \
  if constexpr (kPixels > (i)) {                     \
    sum0 = hn::Add(sum0, c##i##0);                   \
    if (kVectors > 1) sum1 = hn::Add(sum1, c##i##1); \
    if (kVectors > 2) sum0 = hn::Add(sum0, c##i##2); \
    if (kVectors > 3) sum1 = hn::Add(sum1, c##i##3); \
  }
#define ANYDML_LARGER(i)                               \
  if constexpr (kPixels > (i)) {                       \
    c##i##0 = hn::Max(c##i##0, low);                   \
    if (kVectors > 1) c##i##1 = hn::Max(c##i##1, low); \
    if (kVectors > 2) c##i##2 = hn::Max(c##i##2, low); \
    if (kVectors > 3) c##i##3 = hn::Max(c##i##3, low); \
  }
#define ANYDML_SMALLER(i)                               \
  if constexpr (kPixels > (i)) {                        \
    c##i##0 = hn::Min(c##i##0, high);                   \
    if (kVectors > 1) c##i##1 = hn::Min(c##i##1, high); \
    if (kVectors > 2) c##i##2 = hn::Min(c##i##2, high); \
    if (kVectors > 3) c##i##3 = hn::Min(c##i##3, high); \
  }
#define ANYDML_PUT(i)                                                            \
  if constexpr (kPixels > (i)) {                                                 \
    hn::StoreU(c##i##0, d, rare + (i)*kVectors * lanes);                         \
    if (kVectors > 1) hn::StoreU(c##i##1, d, rare + ((i)*kVectors + 1) * lanes); \
    if (kVectors > 2) hn::StoreU(c##i##2, d, rare + ((i)*kVectors + 2) * lanes); \
    if (kVectors > 3) hn::StoreU(c##i##3, d, rare + ((i)*kVectors + 3) * lanes); \
  }
#define ANYDML_GET(i)                                                            \
  if constexpr (kPixels > (i)) {                                                 \
    c##i##0 = hn::LoadU(d, rare + (i)*kVectors * lanes);                         \
    if (kVectors > 1) c##i##1 = hn::LoadU(d, rare + ((i)*kVectors + 1) * lanes); \
    if (kVectors > 2) c##i##2 = hn::LoadU(d, rare + ((i)*kVectors + 2) * lanes); \
    if (kVectors > 3) c##i##3 = hn::LoadU(d, rare + ((i)*kVectors + 3) * lanes); \
  }
#define ANYDML_CLIP(limits)                                                                        \
  {                                                                                                \
    const auto low = hn::Set(d, (limits).low), high = hn::Set(d, (limits).high);                   \
    auto sum0 = hn::Zero(d), sum1 = sum0;                                                          \
    ANYDML_PIXELS(ANYDML_SUM)                                                                      \
    if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(hn::Add(sum0, sum1))))) {                             \
      ANYDML_PIXELS(ANYDML_LARGER)                                                                 \
      if ((limits).high != std::numeric_limits<float>::infinity()) {                               \
        ANYDML_PIXELS(ANYDML_SMALLER)                                                              \
      }                                                                                            \
    } else {                                                                                       \
      float rare[kPixels * kVectors * hn::MaxLanes(TileTag())];                                    \
      ANYDML_PIXELS(ANYDML_PUT)                                                                    \
      for (size_t v = 0; v < kPixels * kVectors; ++v) {                                            \
        hn::StoreU(ClipVector(d, hn::LoadU(d, rare + v * lanes), low, high), d, rare + v * lanes); \
      }                                                                                            \
      ANYDML_PIXELS(ANYDML_GET)                                                                    \
    }                                                                                              \
  }
#else
#define ANYDML_CLIP_ALL(i)                                         \
  if constexpr (kPixels > (i)) {                                   \
    c##i##0 = ClipVector(d, c##i##0, low, high);                   \
    if (kVectors > 1) c##i##1 = ClipVector(d, c##i##1, low, high); \
    if (kVectors > 2) c##i##2 = ClipVector(d, c##i##2, low, high); \
    if (kVectors > 3) c##i##3 = ClipVector(d, c##i##3, low, high); \
  }
#define ANYDML_CLIP(limits)                                                      \
  {                                                                              \
    const auto low = hn::Set(d, (limits).low), high = hn::Set(d, (limits).high); \
    ANYDML_PIXELS(ANYDML_CLIP_ALL)                                               \
  }
#endif
