#include "ops/convolution/cpu/depthwise_plane_loops.h"

#include <algorithm>
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

#include "ops/numbers/clip_vectors-inl.h"
#include "ops/numbers/half_vectors-inl.h"

// Loads a vector from a row with `left` remaining numbers, zero-padded.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadOfRow(D d, const T* from, uint64_t left) {
  const auto numbers = LoadNumbers(d, from);
  return left >= hn::Lanes(d) ? numbers : hn::IfThenElseZero(hn::FirstN(d, left), numbers);
}

// Stores a whole vector: zeros after the end of a row are overwritten by the next rows, or are padding.
template <class D, typename T>
HWY_INLINE void PadPlane(D d, const DepthwisePlanes& p, const T* from) {
  static_assert(kMostPlaneStride == 2);
  const uint64_t lanes = hn::Lanes(d), columns = p.x.inputs, pitch = p.pitch, input_row = p.input_row;
  const uint64_t begin = p.y.before, end = begin + p.y.inputs, before = p.x.before, phase = p.phase;
  const bool split_rows = p.y.stride == 2;
  if (p.x.stride == 1) {
    float* const to = p.padded + before;
    for (uint64_t i = begin; i < end; ++i, from += input_row) {
      float* const row = to + (split_rows ? i % 2 * phase + i / 2 * pitch : i * pitch);
      for (uint64_t x = 0; x < columns; x += lanes)
        hn::StoreU(LoadOfRow(d, from + x, columns - x), d, row + x);
    }
    return;
  }
  // The phases of the first and of the second column.
  const bool begins_odd = before % 2 != 0;
  float* const first = p.padded + before / 2 + (begins_odd ? phase : 0);
  float* const second = p.padded + (before + 1) / 2 + (begins_odd ? 0 : phase);
  for (uint64_t i = begin; i < end; ++i, from += input_row) {
    const uint64_t row = split_rows ? i % 2 * 2 * phase + i / 2 * pitch : i * pitch;
    float *const evens = first + row, *const odds = second + row;
    const auto put = [&](hn::Vec<D> low, hn::Vec<D> high, uint64_t at) HWY_ATTR {
#if HWY_TARGET == HWY_SCALAR
      const auto even = low, odd = high;
#else
      const auto even = hn::ConcatEven(d, high, low), odd = hn::ConcatOdd(d, high, low);
#endif
      hn::StoreU(even, d, evens + at);
      hn::StoreU(odd, d, odds + at);
    };
    uint64_t x = 0;
    for (; x + 2 * lanes <= columns; x += 2 * lanes) {
      put(LoadNumbers(d, from + x), LoadNumbers(d, from + x + lanes), x / 2);
    }
    if (x == columns) continue;
    const uint64_t done = x + lanes;
    put(LoadOfRow(d, from + x, columns - x), LoadOfRow(d, from + done, columns > done ? columns - done : 0),
        x / 2);
  }
}

// Columns [x, x + lanes) of planes of the input's size whose taps are contiguous and centred: the input is
// read in place. Four rows of sums at a time, for which each row of the input is loaded once. kEdges: some
// taps are outside a row.
template <int kTaps, bool kEdges, bool kClip, class D>
HWY_INLINE void AddStrip(D d, const DepthwisePlanes& p, uint64_t x) {
  static_assert(kPlaneTileRows == 4 && kTaps / 2 <= kMostPlaneReach && kMostPlaneReach == 2);
  constexpr int kReach = kTaps / 2;
  alignas(64) static constexpr float kZeros[64 + 2 * kMostPlaneReach] = {};
  const uint64_t lanes = hn::Lanes(d), columns = p.x.outputs, rows = p.y.outputs, planes = p.planes;
  const auto low = hn::Set(d, p.low), high = hn::Set(d, p.high);
  const auto clip = [&](hn::Vec<D> sum) HWY_ATTR { return kClip ? ClipVector(d, sum, low, high) : sum; };
  // Masks of lanes whose taps this many columns before, or after, are inside a row.
  const auto before = [&](uint64_t by) HWY_ATTR { return hn::Not(hn::FirstN(d, by > x ? by - x : 0)); };
  const auto behind = [&](uint64_t by) HWY_ATTR {
    return hn::FirstN(d, x + by < columns ? HWY_MIN(columns - x - by, lanes) : 0);
  };
  const auto before1 = before(1), before2 = before(2), behind1 = behind(1), behind2 = behind(2);
  const float* HWY_RESTRICT plane = p.input + x;
  const float* HWY_RESTRICT w = p.weights;
  float* HWY_RESTRICT sums = p.sums + x;
  for (uint64_t i = 0; i < planes; ++i, plane += rows * columns, sums += rows * columns, w += kTaps * kTaps) {
    const auto first = hn::Set(d, p.starts[i]);
    for (uint64_t y = 0; y < rows; y += kPlaneTileRows) {
      auto s0 = first, s1 = first, s2 = first, s3 = first;
#pragma GCC unroll 8
      for (int row = 0; row < kTaps + 3; ++row) {
        const uint64_t line = y + static_cast<uint64_t>(row) - kReach;
        const float* const from = line < rows ? plane + line * columns : kZeros + kReach;
#pragma GCC unroll 8
        for (int tap = 0; tap < kTaps; ++tap) {
          const int by = tap - kReach;
          auto number = hn::LoadU(d, from + by);
          if (kEdges && by == -2) number = hn::IfThenElseZero(before2, number);
          if (kEdges && by == -1) number = hn::IfThenElseZero(before1, number);
          if (kEdges && by == 1) number = hn::IfThenElseZero(behind1, number);
          if (kEdges && by == 2) number = hn::IfThenElseZero(behind2, number);
          const float* const weight = w + row * kTaps + tap;
          if (row < kTaps) s0 = hn::MulAdd(hn::Set(d, weight[0]), number, s0);
          if (row >= 1 && row < kTaps + 1) s1 = hn::MulAdd(hn::Set(d, weight[-kTaps]), number, s1);
          if (row >= 2 && row < kTaps + 2) s2 = hn::MulAdd(hn::Set(d, weight[-2 * kTaps]), number, s2);
          if (row >= 3) s3 = hn::MulAdd(hn::Set(d, weight[-3 * kTaps]), number, s3);
        }
      }
      float* const to = sums + y * columns;
      hn::StoreU(clip(s0), d, to);
      if (y + 1 < rows) hn::StoreU(clip(s1), d, to + columns);
      if (y + 2 < rows) hn::StoreU(clip(s2), d, to + 2 * columns);
      if (y + 3 < rows) hn::StoreU(clip(s3), d, to + 3 * columns);
    }
  }
}

// The last strip overlaps the one before; if it is the only one, its rows extend into the next ones, which
// are stored later.
template <int kTaps, bool kClip, class D>
void AddStrips(D d, const DepthwisePlanes& p) {
  const uint64_t lanes = hn::Lanes(d), columns = p.x.outputs;
  for (uint64_t x = 0; x < columns; x += lanes) {
    if (x + lanes > columns && columns >= lanes) x = columns - lanes;
    if (x >= kTaps / 2 && x + lanes + kTaps / 2 <= columns) {
      AddStrip<kTaps, false, kClip>(d, p, x);
    } else {
      AddStrip<kTaps, true, kClip>(d, p, x);
    }
  }
}

// Any taps, of a plane with its padding. Vectors as above.
template <bool kClip, class D>
HWY_INLINE void AddTapsOfPlane(D d, const DepthwisePlanes& p, const float* HWY_RESTRICT w, float start,
                               float* HWY_RESTRICT sums) {
  const uint64_t lanes = hn::Lanes(d), columns = p.x.outputs, rows = p.y.outputs, pitch = p.pitch;
  const uint64_t* const offsets = p.offsets;
  const uint32_t taps = p.taps;
  const auto low = hn::Set(d, p.low), high = hn::Set(d, p.high);
  const auto first = hn::Set(d, start);
  const auto clip = [&](hn::Vec<D> sum) HWY_ATTR { return kClip ? ClipVector(d, sum, low, high) : sum; };
  for (uint64_t y = 0; y < rows; y += kPlaneTileRows) {
    for (uint64_t x = 0; x < columns; x += lanes) {
      if (x + lanes > columns && columns >= lanes) x = columns - lanes;
      const float* const numbers = p.padded + y * pitch + x;
      auto s0 = first, s1 = first, s2 = first, s3 = first;
      for (uint32_t t = 0; t < taps; ++t) {
        const float* const from = numbers + offsets[t];
        const auto weight = hn::Set(d, w[t]);
        s0 = hn::MulAdd(weight, hn::LoadU(d, from), s0);
        s1 = hn::MulAdd(weight, hn::LoadU(d, from + pitch), s1);
        s2 = hn::MulAdd(weight, hn::LoadU(d, from + 2 * pitch), s2);
        s3 = hn::MulAdd(weight, hn::LoadU(d, from + 3 * pitch), s3);
      }
      float* const to = sums + y * columns + x;
      hn::StoreU(clip(s0), d, to);
      if (y + 1 < rows) hn::StoreU(clip(s1), d, to + columns);
      if (y + 2 < rows) hn::StoreU(clip(s2), d, to + 2 * columns);
      if (y + 3 < rows) hn::StoreU(clip(s3), d, to + 3 * columns);
    }
  }
}

template <bool kClip, class D>
void AddPlanes(D d, const DepthwisePlanes& p) {
  if (p.same == 3) return AddStrips<3, kClip>(d, p);
  if (p.same == 5) return AddStrips<5, kClip>(d, p);
  for (uint64_t i = 0; i < p.planes; ++i) {
    if (p.halves != nullptr) {
      PadPlane(d, p, p.halves + i * p.input_plane);
    } else {
      PadPlane(d, p, p.input + i * p.input_plane);
    }
    AddTapsOfPlane<kClip>(d, p, p.weights + i * p.taps, p.starts[i], p.sums + i * p.y.outputs * p.x.outputs);
  }
}

template <class D>
void AddPlanesOfVectors(D d, const DepthwisePlanes& p) {
  p.clips ? AddPlanes<true>(d, p) : AddPlanes<false>(d, p);
}

// Vectors are no wider than the output's rows need.
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
  const uint64_t columns = p.x.outputs;
  float* row = p.sums;
  for (uint64_t plane = 0; plane < p.planes; ++plane) {
    for (uint64_t y = 0; y < p.y.inputs; ++y) {
      for (uint64_t x = 0; x < p.x.inputs; ++x) {
        const uint64_t from = plane * p.input_plane + y * p.input_row + x;
        const uint64_t at_y = y + p.y.before, at_x = x + p.x.before;
        p.padded[(at_y % p.y.stride * p.x.stride + at_x % p.x.stride) * p.phase +
                 at_y / p.y.stride * p.pitch + at_x / p.x.stride] =
            p.halves != nullptr ? ToFloat(Half{p.halves[from]}) : p.input[from];
      }
    }
    for (uint64_t y = 0; y < p.y.outputs; ++y, row += columns) {
      std::fill_n(row, columns, p.starts[plane]);
      for (uint32_t t = 0; t < p.taps; ++t) {
        const float* const from = p.padded + p.offsets[t] + y * p.pitch;
        const float weight = p.weights[plane * p.taps + t];
        for (uint64_t x = 0; x < columns; ++x) row[x] += weight * from[x];
      }
      if (p.clips) std::transform(row, row + columns, row, clip);
    }
  }
}

}  // namespace anydml
#endif
