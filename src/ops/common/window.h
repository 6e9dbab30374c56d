// Windows that slide over a dimension: pooling, FOLD, UNFOLD. The functions are constexpr so that they
// compile for devices, too.
#pragma once

#include <cstdint>

namespace anydml {

// Tap k of window o is at position o * stride - start + k * dilation of the dimension. Positions outside are
// padding.
struct WindowAxis {
  uint32_t input = 1;    // the dimension's size
  uint32_t windows = 1;  // number of windows
  uint32_t size = 1;     // taps per window
  uint32_t stride = 1;
  uint32_t dilation = 1;
  uint32_t start = 0;  // leading padding
  uint32_t end = 0;
};

struct WindowRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  constexpr uint32_t count() const { return end - begin; }
};

// The distance from the first tap to the last, plus one.
constexpr uint64_t ExtentOf(const WindowAxis& axis) { return uint64_t{axis.size - 1} * axis.dilation + 1; }
constexpr uint64_t PaddedSize(const WindowAxis& axis) { return uint64_t{axis.input} + axis.start + axis.end; }

// The position of a valid tap, or of the first valid one.
constexpr int64_t PlaceOf(const WindowAxis& axis, uint32_t window, uint32_t tap) {
  return static_cast<int64_t>(uint64_t{window} * axis.stride + uint64_t{tap} * axis.dilation) -
         int64_t{axis.start};
}

// The taps that are inside the dimension.
constexpr WindowRange ValidTaps(const WindowAxis& axis, uint32_t window) {
  const int64_t first = PlaceOf(axis, window, 0), step = axis.dilation;
  const auto taps_before = [&](int64_t place) {
    if (place <= first) return uint32_t{0};
    const int64_t taps = step == 1 ? place - first : (place - first + step - 1) / step;
    return taps < int64_t{axis.size} ? static_cast<uint32_t>(taps) : axis.size;
  };
  return {taps_before(0), taps_before(axis.input)};
}

// The number of taps inside the dimension or its padding.
constexpr uint32_t TapsWithPadding(const WindowAxis& axis, uint32_t window) {
  const uint64_t first = uint64_t{window} * axis.stride, size = PaddedSize(axis);
  if (first >= size) return 0;
  const uint64_t taps =
      axis.dilation == 1 ? size - first : (size - first + axis.dilation - 1) / axis.dilation;
  return taps < axis.size ? static_cast<uint32_t>(taps) : axis.size;
}

// The windows that span a position; HasTapAt tells which of them have a tap there.
constexpr WindowRange WindowsOver(const WindowAxis& axis, uint32_t place) {
  const uint64_t at = uint64_t{place} + axis.start, reach = ExtentOf(axis) - 1;
  const uint64_t begin = at <= reach ? 0 : (at - reach + axis.stride - 1) / axis.stride;
  uint64_t end = at / axis.stride + 1;
  if (end > axis.windows) end = axis.windows;
  if (begin >= end) return {};
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}
constexpr bool HasTapAt(const WindowAxis& axis, uint32_t window, uint32_t place) {
  return axis.dilation == 1 ||
         (uint64_t{place} + axis.start - uint64_t{window} * axis.stride) % axis.dilation == 0;
}

// The windows whose tap `tap` is inside the dimension.
constexpr WindowRange WindowsWithValidTap(const WindowAxis& axis, uint32_t tap) {
  const uint64_t offset = uint64_t{tap} * axis.dilation;
  const auto windows_before = [&](uint64_t place) {
    const uint64_t windows = place <= offset ? 0 : (place - offset + axis.stride - 1) / axis.stride;
    return windows < axis.windows ? static_cast<uint32_t>(windows) : axis.windows;
  };
  return {windows_before(axis.start), windows_before(uint64_t{axis.start} + axis.input)};
}

}  // namespace anydml
