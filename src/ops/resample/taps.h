// Which elements an output coordinate takes along one dimension, and with which weights. constexpr functions
// are compiled for devices, too.
#pragma once

#include <cstdint>

#include "ops/resample/problem.h"

namespace anydml {

// Contiguous taps: `count` of them from `first` on, at least one.
struct Taps {
  uint32_t first = 0;
  uint32_t count = 1;
  // Of two taps: the weight of the second. Of more: their sum before division, and the position of their
  // centre.
  float second = 0;
  float sum = 1;
  float middle = 0;
};

constexpr float FloorOf(float x) {
  constexpr float kWhole = 0x1p23f;  // all floats from here on are integers
  if (!(x > -kWhole && x < kWhole)) return x;
  const auto toward_zero = static_cast<float>(static_cast<int32_t>(x));
  return toward_zero > x ? toward_zero - 1 : toward_zero;
}

// For an integer.
constexpr uint32_t ClampedIndex(float whole, uint32_t size) {
  if (!(whole > 0)) return 0;
  if (whole >= 0x1p32f) return size - 1;
  const auto index = static_cast<uint32_t>(whole);
  return index < size ? index : size - 1;
}

constexpr float PlaceOf(const ResampleAxis& axis, uint32_t number) {
  return (static_cast<float>(number) - axis.output_offset) / axis.scale - axis.input_offset;
}

constexpr Taps LinearTaps(uint32_t from, float x) {
  const float floor = FloorOf(x);
  Taps taps;
  taps.first = ClampedIndex(floor, from);
  const bool inside = floor >= 0 && taps.first + 1 < from;
  taps.second = inside ? x - floor : 0;
  taps.count = taps.second != 0 ? 2 : 1;
  return taps;
}

constexpr float TriangleHeight(const ResampleAxis& axis, float x, uint32_t index) {
  const float distance = static_cast<float>(index) - x;
  return 1 - (distance < 0 ? -distance : distance) * axis.scale;
}

// If nothing is in reach, the nearest element.
constexpr Taps TriangleTaps(const ResampleAxis& axis, float x) {
  const float reach = 1 / axis.scale;
  uint32_t first = ClampedIndex(FloorOf(x - reach), axis.from);
  uint32_t last = ClampedIndex(FloorOf(x + reach) + 1, axis.from);
  while (first < last && !(TriangleHeight(axis, x, first) > 0)) ++first;
  while (first < last && !(TriangleHeight(axis, x, last) > 0)) --last;
  Taps taps;
  if (!(TriangleHeight(axis, x, first) > 0)) {
    taps.first = ClampedIndex(FloorOf(x), axis.from);
    return taps;
  }
  taps.first = first;
  taps.count = last - first + 1;
  taps.middle = x;
  taps.sum = TriangleHeight(axis, x, first);
  for (uint32_t i = first + 1; i <= last; ++i) taps.sum += TriangleHeight(axis, x, i);
  return taps;
}

// For rules that take the element nearest to a place.
constexpr uint32_t NearestAt(const ResampleAxis& axis, float x) {
  const float whole = axis.rule == ResampleRule::kHalfUp  ? FloorOf(x + 0.5f)
                      : axis.rule == ResampleRule::kFloor ? FloorOf(x)
                                                          : -FloorOf(-x);
  return ClampedIndex(whole, axis.from);
}

// For rules that take one element.
constexpr uint32_t NearestIndex(const ResampleAxis& axis, uint32_t number) {
  if (axis.rule == ResampleRule::kSame) return number < axis.from ? number : axis.from - 1;
  return NearestAt(axis, PlaceOf(axis, number));
}

constexpr Taps TapsOf(const ResampleAxis& axis, uint32_t number) {
  if (axis.rule == ResampleRule::kLinear) return LinearTaps(axis.from, PlaceOf(axis, number));
  if (axis.rule == ResampleRule::kTriangle) return TriangleTaps(axis, PlaceOf(axis, number));
  Taps taps;
  taps.first = NearestIndex(axis, number);
  return taps;
}

// Of tap `k`.
constexpr float WeightOf(const ResampleAxis& axis, const Taps& taps, uint32_t k) {
  if (taps.count == 1) return 1;
  if (axis.rule == ResampleRule::kTriangle) {
    return TriangleHeight(axis, taps.middle, taps.first + k) / taps.sum;
  }
  return k == 0 ? 1 - taps.second : taps.second;
}

// The outputs that may take input `index`. They are contiguous, because places ascend with their indices.
struct TakerRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

constexpr TakerRange TakersOf(const ResampleAxis& axis, uint32_t index) {
  uint32_t first = 0;  // the first that takes `index` or a later element
  for (uint32_t end = axis.to; first < end;) {
    const uint32_t middle = first + (end - first) / 2;
    const Taps taps = TapsOf(axis, middle);
    if (taps.first + (taps.count - 1) >= index) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  uint32_t last = first;  // the one after the last that takes `index` or an earlier element
  for (uint32_t end = axis.to; last < end;) {
    const uint32_t middle = last + (end - last) / 2;
    if (TapsOf(axis, middle).first <= index) {
      last = middle + 1;
    } else {
      end = middle;
    }
  }
  return {first, last - first};
}

// The weight of input `index` in output `number`.
constexpr float WeightBetween(const ResampleAxis& axis, uint32_t number, uint32_t index) {
  const Taps taps = TapsOf(axis, number);
  return index - taps.first < taps.count ? WeightOf(axis, taps, index - taps.first) : 0.0f;
}

}  // namespace anydml
