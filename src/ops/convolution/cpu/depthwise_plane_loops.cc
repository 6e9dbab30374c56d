#include "ops/convolution/cpu/depthwise_plane_loops.h"

#include <cmath>
#include <limits>

#include "base/half.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/convolution/cpu/depthwise_plane_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#include "ops/element/cpu/clip_vectors-inl.h"
#include "ops/element/cpu/half_vectors-inl.h"

template <class D>
HWY_INLINE hn::Vec<D> LoadPlane(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadPlane(D d, const uint16_t* from) {
  return LoadHalves(d, from);
}

// A vector of a row that ends after `left` numbers: what is behind is 0.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadOfRow(D d, const T* from, uint64_t left) {
  const auto numbers = LoadPlane(d, from);
  return left >= hn::Lanes(d) ? numbers : hn::IfThenElseZero(hn::FirstN(d, left), numbers);
}

// Zeros behind the end of a row are written over by the rows below it, or are padding.
template <class D, typename T>
HWY_INLINE void PadPlane(D d, const DepthwisePlanes& p, const T* from, float* padded) {
  static_assert(kMostPlaneStride == 2);
  const uint64_t lanes = hn::Lanes(d), columns = p.x.inputs, pitch = p.pitch, input_row = p.input_row;
  const uint64_t begin = p.y.before, end = begin + p.y.inputs, before = p.x.before, phase = p.phase;
  const bool split_rows = p.y.stride == 2;
  if (p.x.stride == 1) {
    float* const to = padded + before;
    for (uint64_t i = begin; i < end; ++i, from += input_row) {
      float* const row = to + (split_rows ? i % 2 * phase + i / 2 * pitch : i * pitch);
      for (uint64_t x = 0; x < columns; x += lanes)
        hn::StoreU(LoadOfRow(d, from + x, columns - x), d, row + x);
    }
    return;
  }
  // The phases of the first and of the second column.
  const bool begins_odd = before % 2 != 0;
  float* const first = padded + before / 2 + (begins_odd ? phase : 0);
  float* const second = padded + (before + 1) / 2 + (begins_odd ? 0 : phase);
  for (uint64_t i = begin; i < end; ++i, from += input_row) {
    const uint64_t row = split_rows ? i % 2 * 2 * phase + i / 2 * pitch : i * pitch;
    for (uint64_t x = 0; x < columns; x += 2 * lanes) {
      const uint64_t done = x + lanes;
      const auto low = LoadOfRow(d, from + x, columns - x);
      const auto high = LoadOfRow(d, from + done, columns > done ? columns - done : 0);
#if HWY_TARGET == HWY_SCALAR
      const auto even = low, odd = high;
#else
      const auto even = hn::ConcatEven(d, high, low), odd = hn::ConcatOdd(d, high, low);
#endif
      hn::StoreU(even, d, first + row + x / 2);
      hn::StoreU(odd, d, second + row + x / 2);
    }
  }
}

// kPlaneTileRows rows of sums, one vector wide.
#define ANYDML_ADD_ROW(i, w, x) s##i = hn::MulAdd(w, x, s##i);
#define ANYDML_NINE_ROW(row, V0, V1, V2)                                                               \
  {                                                                                                    \
    const float* const from = numbers + (row)*pitch;                                                   \
    const auto x0 = hn::LoadU(d, from), x1 = hn::LoadU(d, from + 1), x2 = hn::LoadU(d, from + 2);      \
    V0(w0, x0) V0(w1, x1) V0(w2, x2) V1(w3, x0) V1(w4, x1) V1(w5, x2) V2(w6, x0) V2(w7, x1) V2(w8, x2) \
  }
#define ANYDML_ROW0(w, x) ANYDML_ADD_ROW(0, w, x)
#define ANYDML_ROW1(w, x) ANYDML_ADD_ROW(1, w, x)
#define ANYDML_ROW2(w, x) ANYDML_ADD_ROW(2, w, x)
#define ANYDML_ROW3(w, x) ANYDML_ADD_ROW(3, w, x)
#define ANYDML_NO_ROW(w, x)

// Vectors of a row: the last one begins among what is done already or, where it is the only one, ends in the
// next row, which is stored after it.
template <bool kNine, bool kClip, class D>
HWY_INLINE void AddPlane(D d, const DepthwisePlanes& p, const float* padded, const float* HWY_RESTRICT w,
                         float start, float* HWY_RESTRICT sums) {
  static_assert(kPlaneTileRows == 4);
  const uint64_t lanes = hn::Lanes(d), columns = p.x.outputs, rows = p.y.outputs, pitch = p.pitch;
  const uint64_t* const offsets = p.offsets;
  const uint32_t taps = p.taps;
  const auto low = hn::Set(d, p.low), high = hn::Set(d, p.high);
  const auto first = hn::Set(d, start);
  const auto clip = [&](hn::Vec<D> sum) HWY_ATTR { return kClip ? ClipVector(d, sum, low, high) : sum; };
  const auto w0 = hn::Set(d, w[0]), w1 = kNine ? hn::Set(d, w[1]) : w0, w2 = kNine ? hn::Set(d, w[2]) : w0,
             w3 = kNine ? hn::Set(d, w[3]) : w0, w4 = kNine ? hn::Set(d, w[4]) : w0,
             w5 = kNine ? hn::Set(d, w[5]) : w0, w6 = kNine ? hn::Set(d, w[6]) : w0,
             w7 = kNine ? hn::Set(d, w[7]) : w0, w8 = kNine ? hn::Set(d, w[8]) : w0;
  for (uint64_t y = 0; y < rows; y += kPlaneTileRows) {
    for (uint64_t x = 0; x < columns; x += lanes) {
      if (x + lanes > columns && columns >= lanes) x = columns - lanes;
      const float* const numbers = padded + y * pitch + x;
      auto s0 = first, s1 = first, s2 = first, s3 = first;
      if constexpr (kNine) {  // each row of the input is loaded once for the three that it is part of
        ANYDML_NINE_ROW(0, ANYDML_ROW0, ANYDML_NO_ROW, ANYDML_NO_ROW)
        ANYDML_NINE_ROW(1, ANYDML_ROW1, ANYDML_ROW0, ANYDML_NO_ROW)
        ANYDML_NINE_ROW(2, ANYDML_ROW2, ANYDML_ROW1, ANYDML_ROW0)
        ANYDML_NINE_ROW(3, ANYDML_ROW3, ANYDML_ROW2, ANYDML_ROW1)
        ANYDML_NINE_ROW(4, ANYDML_NO_ROW, ANYDML_ROW3, ANYDML_ROW2)
        ANYDML_NINE_ROW(5, ANYDML_NO_ROW, ANYDML_NO_ROW, ANYDML_ROW3)
      } else {
        for (uint32_t t = 0; t < taps; ++t) {
          const float* const from = numbers + offsets[t];
          const auto weight = hn::Set(d, w[t]);
          ANYDML_ROW0(weight, hn::LoadU(d, from))
          ANYDML_ROW1(weight, hn::LoadU(d, from + pitch))
          ANYDML_ROW2(weight, hn::LoadU(d, from + 2 * pitch))
          ANYDML_ROW3(weight, hn::LoadU(d, from + 3 * pitch))
        }
      }
      float* const to = sums + y * columns + x;
      hn::StoreU(clip(s0), d, to);
      if (y + 1 < rows) hn::StoreU(clip(s1), d, to + columns);
      if (y + 2 < rows) hn::StoreU(clip(s2), d, to + 2 * columns);
      if (y + 3 < rows) hn::StoreU(clip(s3), d, to + 3 * columns);
    }
  }
}

#undef ANYDML_ADD_ROW
#undef ANYDML_NINE_ROW
#undef ANYDML_ROW0
#undef ANYDML_ROW1
#undef ANYDML_ROW2
#undef ANYDML_ROW3
#undef ANYDML_NO_ROW

// The next plane is put into its place before sums of this one: what was stored just now cannot be loaded
// yet, other than as it was stored.
template <bool kNine, bool kClip, class D>
void AddPlanes(D d, const DepthwisePlanes& p) {
  const auto pad = [&](uint64_t i) HWY_ATTR {
    float* const padded = p.padded + i % 2 * p.buffer;
    if (p.halves) {
      PadPlane(d, p, static_cast<const uint16_t*>(p.input) + i * p.input_plane, padded);
    } else {
      PadPlane(d, p, static_cast<const float*>(p.input) + i * p.input_plane, padded);
    }
  };
  pad(0);
  for (uint64_t i = 0; i < p.planes; ++i) {
    if (i + 1 < p.planes) pad(i + 1);
    AddPlane<kNine, kClip>(d, p, p.padded + i % 2 * p.buffer, p.weights + i * p.taps, p.starts[i],
                           p.sums + i * p.y.outputs * p.x.outputs);
  }
}

template <class D>
void AddPlanesOfVectors(D d, const DepthwisePlanes& p) {
  if (p.nine) return p.clips ? AddPlanes<true, true>(d, p) : AddPlanes<true, false>(d, p);
  return p.clips ? AddPlanes<false, true>(d, p) : AddPlanes<false, false>(d, p);
}

// Vectors are not wider than rows of the output need.
void AddAnyPlanes(const DepthwisePlanes& p) {
  if (p.x.outputs <= 4) return AddPlanesOfVectors(hn::CappedTag<float, 4>(), p);
  if (p.x.outputs <= 8) return AddPlanesOfVectors(hn::CappedTag<float, 8>(), p);
  AddPlanesOfVectors(hn::ScalableTag<float>(), p);
}

uint64_t OverrunOf(uint64_t columns) {
  const uint64_t lanes = hn::Lanes(hn::ScalableTag<float>());
  return columns < lanes ? lanes - columns : 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(AddAnyPlanes);
HWY_EXPORT(OverrunOf);
}  // namespace

uint64_t DepthwiseOverrun(uint64_t columns) { return HWY_DYNAMIC_DISPATCH(OverrunOf)(columns); }
void AddDepthwisePlanes(const DepthwisePlanes& planes) { HWY_DYNAMIC_DISPATCH(AddAnyPlanes)(planes); }
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {

uint64_t DepthwiseOverrun(uint64_t) { return 0; }

void AddDepthwisePlanes(const DepthwisePlanes& p) {
  const auto clip = [&](float sum) {
    if (std::isnan(sum)) return std::numeric_limits<float>::quiet_NaN();
    sum = sum <= p.low ? p.low : sum;
    return sum >= p.high ? p.high : sum;
  };
  float* to = p.sums;
  for (uint64_t plane = 0; plane < p.planes; ++plane) {
    for (uint64_t y = 0; y < p.y.inputs; ++y) {
      for (uint64_t x = 0; x < p.x.inputs; ++x) {
        const uint64_t from = plane * p.input_plane + y * p.input_row + x;
        const uint64_t row = y + p.y.before, column = x + p.x.before;
        p.padded[(row % p.y.stride * p.x.stride + column % p.x.stride) * p.phase +
                 row / p.y.stride * p.pitch + column / p.x.stride] =
            p.halves ? ToFloat(static_cast<const Half*>(p.input)[from])
                     : static_cast<const float*>(p.input)[from];
      }
    }
    for (uint64_t y = 0; y < p.y.outputs; ++y) {
      for (uint64_t x = 0; x < p.x.outputs; ++x) {
        float sum = p.starts[plane];
        for (uint32_t t = 0; t < p.taps; ++t) {
          sum += p.weights[plane * p.taps + t] * p.padded[p.offsets[t] + y * p.pitch + x];
        }
        *to++ = p.clips ? clip(sum) : sum;
      }
    }
  }
}

}  // namespace anydml
#endif
