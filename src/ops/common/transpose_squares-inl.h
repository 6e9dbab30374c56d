// Squares that are transposed in registers. Included in transpose_block.cc's namespace, for every SIMD target
// and for none.

#if ANYDML_HAVE_HIGHWAY && HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

// A square with as many rows and columns as 16 bytes have elements.
struct Words {
  using Element = uint32_t;
  static constexpr uint64_t kSide = 4;
  static HWY_INLINE void Square(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
    const hn::FixedTag<uint32_t, 4> d;
    const hn::FixedTag<uint64_t, 2> dw;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
    const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
    const auto ab0 = hn::BitCast(dw, hn::InterleaveLower(d, a, b));
    const auto ab2 = hn::BitCast(dw, hn::InterleaveUpper(d, a, b));
    const auto ce0 = hn::BitCast(dw, hn::InterleaveLower(d, c, e));
    const auto ce2 = hn::BitCast(dw, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, ab0, ce0)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, ab0, ce0)), d, to + to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dw, ab2, ce2)), d, to + 2 * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dw, ab2, ce2)), d, to + 3 * to_stride);
  }
};

struct HalfWords {
  using Element = uint16_t;
  static constexpr uint64_t kSide = 8;
  using D = hn::FixedTag<uint16_t, 8>;
  using DW = hn::FixedTag<uint32_t, 4>;

  // Pairs of the same row from two columns: four rows from row 0, or from row 4.
  static HWY_INLINE hn::Vec<DW> Pairs(const uint16_t* from, int64_t from_stride, bool upper) {
    const D d;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
    return hn::BitCast(DW(), upper ? hn::InterleaveUpper(d, a, b) : hn::InterleaveLower(d, a, b));
  }

  static HWY_INLINE void Square(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride) {
    const DW dw;
    const hn::FixedTag<uint64_t, 2> dl;
    const D d;
    for (const bool upper : {false, true}) {
      const auto p0 = Pairs(from, from_stride, upper);
      const auto p2 = Pairs(from + 2 * from_stride, from_stride, upper);
      const auto p4 = Pairs(from + 4 * from_stride, from_stride, upper);
      const auto p6 = Pairs(from + 6 * from_stride, from_stride, upper);
      const auto left0 = hn::BitCast(dl, hn::InterleaveLower(dw, p0, p2));
      const auto left2 = hn::BitCast(dl, hn::InterleaveUpper(dw, p0, p2));
      const auto right0 = hn::BitCast(dl, hn::InterleaveLower(dw, p4, p6));
      const auto right2 = hn::BitCast(dl, hn::InterleaveUpper(dw, p4, p6));
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dl, left0, right0)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dl, left0, right0)), d, to + to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dl, left2, right2)), d, to + 2 * to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dl, left2, right2)), d, to + 3 * to_stride);
      to += 4 * to_stride;
    }
  }
};
#else
template <typename T>
struct PlainSquares {
  using Element = T;
  static constexpr uint64_t kSide = 4;
  static void Square(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t r = 0; r < 4; ++r) {
        std::memcpy(to + r * to_stride + c, from + c * from_stride + r,
                    sizeof(T));  // neither need be aligned
      }
    }
  }
};
using Words = PlainSquares<uint32_t>;
using HalfWords = PlainSquares<uint16_t>;
#endif

#undef ANYDML_TURNS_LINES
#if ANYDML_HAVE_HIGHWAY && HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX2)
#define ANYDML_TURNS_LINES 1
// Squares of whole vectors. With 64 bytes they are read and written in whole lines, so nothing is lost if the
// lines of several columns conflict in the cache, as those a power of two apart do.
constexpr size_t kVectorBytes = HWY_TARGET <= HWY_AVX3 ? 64 : 32, kBlocks = kVectorBytes / 16;
using DWords = hn::FixedTag<uint32_t, kVectorBytes / 4>;
using VWords = hn::Vec<DWords>;
constexpr size_t kWords = kVectorBytes / 4;

// Rows become columns.
HWY_INLINE void TurnWords(VWords (&v)[kWords]) {
  const DWords d;
  const hn::Repartition<uint64_t, DWords> dl;
  for (size_t q = 0; q < kWords; q += 4) {  // first squares of 4 by 4 in each block of 16 bytes
    const auto ab0 = hn::BitCast(dl, hn::InterleaveLower(d, v[q], v[q + 1]));
    const auto ab2 = hn::BitCast(dl, hn::InterleaveUpper(d, v[q], v[q + 1]));
    const auto ce0 = hn::BitCast(dl, hn::InterleaveLower(d, v[q + 2], v[q + 3]));
    const auto ce2 = hn::BitCast(dl, hn::InterleaveUpper(d, v[q + 2], v[q + 3]));
    v[q] = hn::BitCast(d, hn::InterleaveLower(dl, ab0, ce0));
    v[q + 1] = hn::BitCast(d, hn::InterleaveUpper(dl, ab0, ce0));
    v[q + 2] = hn::BitCast(d, hn::InterleaveLower(dl, ab2, ce2));
    v[q + 3] = hn::BitCast(d, hn::InterleaveUpper(dl, ab2, ce2));
  }
  for (size_t j = 0; j < 4; ++j) {  // then the blocks
    if constexpr (kBlocks == 2) {
      const VWords a = v[j], b = v[4 + j];
      v[j] = hn::ConcatLowerLower(d, b, a);
      v[4 + j] = hn::ConcatUpperUpper(d, b, a);
    } else {
      const VWords a = v[j], b = v[4 + j], c = v[8 + j], e = v[12 + j];
      const VWords ab0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      const VWords ab1 = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      const VWords ce0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c);
      const VWords ce1 = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
      v[j] = hn::ConcatLowerLower(d, ce0, ab0);
      v[4 + j] = hn::ConcatLowerLower(d, ce1, ab1);
      v[8 + j] = hn::ConcatUpperUpper(d, ce0, ab0);
      v[12 + j] = hn::ConcatUpperUpper(d, ce1, ab1);
    }
  }
}

template <bool kStreams>
HWY_INLINE void Put(VWords v, void* to) {
  const DWords d;
  if constexpr (kStreams) {
    hn::Stream(v, d, static_cast<uint32_t*>(to));
  } else {
    hn::StoreU(v, d, static_cast<uint32_t*>(to));
  }
}

// Prefetches the line `ahead` elements on.
template <bool kAsks, typename T>
HWY_INLINE void AskAhead(const T* from, int64_t ahead) {
  if constexpr (kAsks) __builtin_prefetch(from + ahead);
}

struct WideWords {
  using Element = uint32_t;
  static constexpr uint64_t kSide = kWords;
  template <bool kStreams, bool kAsks>
  static HWY_INLINE void Square(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride,
                                int64_t ahead) {
    VWords v[kWords];
    for (size_t i = 0; i < kWords; ++i, from += from_stride) {
      v[i] = hn::LoadU(DWords(), from);
      AskAhead<kAsks>(from, ahead);
    }
    TurnWords(v);
    for (size_t i = 0; i < kWords; ++i, to += to_stride) Put<kStreams>(v[i], to);
  }
};

struct WideHalfWords {
  using Element = uint16_t;
  static constexpr uint64_t kSide = 2 * kWords;
  template <bool kStreams, bool kAsks>
  static HWY_INLINE void Square(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride,
                                int64_t ahead) {
    const hn::Repartition<uint16_t, DWords> d;
    // Pairs of the same row from two columns: the first four rows of each block, and the others.
    VWords first[kWords], second[kWords];
    for (size_t i = 0; i < kWords; ++i, from += 2 * from_stride) {
      const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
      AskAhead<kAsks>(from, ahead);
      AskAhead<kAsks>(from + from_stride, ahead);
      first[i] = hn::BitCast(DWords(), hn::InterleaveLower(d, a, b));
      second[i] = hn::BitCast(DWords(), hn::InterleaveUpper(d, a, b));
    }
    const auto put = [&](const VWords(&rows)[kWords], size_t begin) HWY_ATTR {
      for (size_t i = 0; i < kWords; ++i) {
        Put<kStreams>(rows[i], to + static_cast<int64_t>(i / 4 * 8 + i % 4 + begin) * to_stride);
      }
    };
    TurnWords(first);
    put(first, 0);
    TurnWords(second);
    put(second, 4);
  }
};

#if HWY_TARGET <= HWY_AVX3
// The same, but a vector is loaded with 16 bytes of each of four columns, so that no shuffle crosses blocks:
// two thirds of the shuffles, but every line is read four times and must stay in L1.
struct NearHalfWords {
  using Element = uint16_t;
  static constexpr uint64_t kSide = 2 * kWords;
  using D = hn::Repartition<uint16_t, DWords>;
  using V = hn::Vec<D>;

  static HWY_INLINE V OfFour(const uint16_t* from, int64_t step) {
    const auto block = [&](int64_t i) HWY_ATTR {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * step));
    };
    __m512i v = _mm512_castsi128_si512(block(0));
    v = _mm512_inserti32x4(v, block(1), 1);
    v = _mm512_inserti32x4(v, block(2), 2);
    return V{_mm512_inserti32x4(v, block(3), 3)};
  }

  template <bool kStreams, bool kAsks>
  static HWY_INLINE void Square(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride,
                                int64_t ahead) {
    const D d;
    const DWords dw;
    const hn::Repartition<uint64_t, DWords> dl;
    for (size_t block = 0; block < 4; ++block, from += 8) {
      VWords pairs[8];  // rows 0 to 3 of columns 0 and 1, rows 4 to 7; columns 2 and 3; ...
      for (size_t i = 0; i < 4; ++i) {
        const auto* const column = from + static_cast<int64_t>(2 * i) * from_stride;
        const V a = OfFour(column, 8 * from_stride), b = OfFour(column + from_stride, 8 * from_stride);
        pairs[2 * i] = hn::BitCast(dw, hn::InterleaveLower(d, a, b));
        pairs[2 * i + 1] = hn::BitCast(dw, hn::InterleaveUpper(d, a, b));
      }
      for (size_t i = 0; kAsks && i < 8; ++i) {
        AskAhead<kAsks>(from + static_cast<int64_t>(block * 8 + i) * from_stride, ahead);
      }
      for (size_t half = 0; half < 2; ++half) {
        const VWords p0 = pairs[half], p2 = pairs[half + 2], p4 = pairs[half + 4], p6 = pairs[half + 6];
        const auto left0 = hn::BitCast(dl, hn::InterleaveLower(dw, p0, p2));
        const auto left2 = hn::BitCast(dl, hn::InterleaveUpper(dw, p0, p2));
        const auto right0 = hn::BitCast(dl, hn::InterleaveLower(dw, p4, p6));
        const auto right2 = hn::BitCast(dl, hn::InterleaveUpper(dw, p4, p6));
        Put<kStreams>(hn::BitCast(dw, hn::InterleaveLower(dl, left0, right0)), to);
        Put<kStreams>(hn::BitCast(dw, hn::InterleaveUpper(dl, left0, right0)), to + to_stride);
        Put<kStreams>(hn::BitCast(dw, hn::InterleaveLower(dl, left2, right2)), to + 2 * to_stride);
        Put<kStreams>(hn::BitCast(dw, hn::InterleaveUpper(dl, left2, right2)), to + 3 * to_stride);
        to += 4 * to_stride;
      }
    }
  }
};
#else
using NearHalfWords = WideHalfWords;
#endif
using NearWords = WideWords;
#else
struct WideWords {};
struct WideHalfWords {};
struct NearWords {};
struct NearHalfWords {};
#endif
