// The maximum of one window and its position, tap by tap: any type and layout.
#pragma once

#include "ops/pooling/arithmetic.h"
#include "ops/pooling/problem.h"

namespace anydml::pooling {

// A window's valid taps and the position of the first.
struct TapBox {
  std::array<WindowRange, kSpatialRank> taps;
  std::array<uint32_t, kSpatialRank> first;

  bool empty() const { return taps[0].count() == 0 || taps[1].count() == 0 || taps[2].count() == 0; }
};

inline TapBox TapBoxOf(const PoolingShape& shape, const std::array<uint32_t, kSpatialRank>& window) {
  TapBox box;
  for (uint32_t d = 0; d < kSpatialRank; ++d) {
    box.taps[d] = ValidTaps(shape.axes[d], window[d]);
    box.first[d] = box.taps[d].count() == 0
                       ? 0
                       : static_cast<uint32_t>(PlaceOf(shape.axes[d], window[d], box.taps[d].begin));
  }
  return box;
}

template <typename T>
struct Maximum {
  T element;
  uint64_t place;  // in row-major order of the channel's positions
};

// `channel`: the input's element at position 0 of the channel.
template <typename T>
Maximum<T> ScanWindow(const PoolingProblem& p, const T* channel, const TapBox& box) {
  if (box.empty()) return {Lowest<T>(), 0};
  const auto& axes = p.shape.axes;
  const uint64_t* const strides = p.input.strides.data() + 2;
  const T* best = nullptr;
  Key<T> best_key{};
  std::array<uint32_t, kSpatialRank> at{};
  for (uint32_t i = 0; i < box.taps[0].count(); ++i) {
    for (uint32_t j = 0; j < box.taps[1].count(); ++j) {
      const T* tap = channel + (box.first[0] + uint64_t{i} * axes[0].dilation) * strides[0] +
                     (box.first[1] + uint64_t{j} * axes[1].dilation) * strides[1] + box.first[2] * strides[2];
      for (uint32_t k = 0; k < box.taps[2].count(); ++k, tap += axes[2].dilation * strides[2]) {
        const Key<T> key = KeyOf(*tap);
        if (best != nullptr && key <= best_key) continue;
        best = tap;
        best_key = key;
        at = {i, j, k};
      }
    }
  }
  uint64_t place = 0;
  for (uint32_t d = 0; d < kSpatialRank; ++d) {
    place = place * axes[d].input + box.first[d] + uint64_t{at[d]} * axes[d].dilation;
  }
  return {*best, place};
}

}  // namespace anydml::pooling
