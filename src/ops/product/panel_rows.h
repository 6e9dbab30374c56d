// Panels made from rows, for sources that produce many elements of a step at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace anydml {

inline constexpr uint64_t kPanelRowElements = 512;  // the longest row

// For rows so short that a call would take as long as the copy.
template <typename T>
inline void CopyShortRow(const T* from, uint64_t count, T* to) {
  constexpr uint64_t kSome = 16 / sizeof(T);
  if (count > 4 * kSome) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  if (count < kSome) {
    for (uint64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (uint64_t i = 0; i + kSome <= count; i += kSome) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + count - kSome, from + count - kSome, 16);
}

// Cuts `rows` rows, which are `stride` apart, into panels of `width` elements, which are panel_stride apart.
// The last panel may be partial; its padding is not written.
void CutRows(const float* from, uint64_t stride, uint64_t rows, uint64_t count, uint32_t width,
             uint64_t panel_stride, float* to);
// Zero-pads the last panel if it is partial.
void ClearLastPanel(uint64_t count, uint64_t steps, uint32_t width, float* to);

// load(element, count, step, to) writes elements [element, element + count) of a step, counted from 0, to
// `to`; begin(element, count) is called before all steps of these elements.
template <typename Begin, typename Load>
void PackRows(uint64_t count, uint64_t steps, uint32_t width, float* to, Begin&& begin, Load&& load) {
  constexpr uint64_t kRows = 4;
  alignas(64) float rows[kRows][kPanelRowElements];
  ClearLastPanel(count, steps, width, to);
  const uint64_t whole = kPanelRowElements / width * width;
  for (uint64_t element = 0; element < count; element += whole) {
    const uint64_t some = std::min(whole, count - element);
    begin(element, some);
    for (uint64_t step = 0; step < steps; step += kRows) {
      const uint64_t now = std::min(kRows, steps - step);
      for (uint64_t r = 0; r < now; ++r) load(element, some, step + r, rows[r]);
      CutRows(rows[0], kPanelRowElements, now, some, width, steps * width,
              to + element * steps + step * width);
    }
  }
}

}  // namespace anydml
