// FOLD and UNFOLD: between an image {N, C, sizes of 1 to 6 dimensions} and the columns of its windows, {N, C
// * taps per window, windows}, both in row-major order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/common/window.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

inline constexpr uint32_t kMaxFoldRank = kMaxDimensions - 2;

struct FoldProblem {
  static constexpr std::string_view kFamily = "fold";

  // UNFOLD copies a column for each window, with zeros for padding. FOLD sums, starting at zero and in
  // row-major order of the taps, what the windows have for an element: FLOAT16 as FLOAT32, integers modulo
  // 2^n.
  bool unfold = false;
  DataType type = DataType::kUnknown;
  uint32_t batch = 1;
  uint32_t channels = 1;
  uint32_t rank = 1;  // number of axes
  std::array<WindowAxis, kMaxFoldRank> axes{};
  std::array<uint64_t, kMaxDimensions> image_strides{};  // N, C, and the axes'
  std::array<uint64_t, 3> column_strides{};              // N, rows, windows

  uint64_t Taps() const {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; ++d) count *= axes[d].size;
    return count;
  }
  uint64_t Windows() const {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; ++d) count *= axes[d].windows;
    return count;
  }
  uint64_t ImageElements() const {
    uint64_t count = uint64_t{batch} * channels;
    for (uint32_t d = 0; d < rank; ++d) count *= axes[d].input;
    return count;
  }
};

// The window whose tap `tap` is at `place`; axis.windows if there is none.
constexpr uint32_t WindowWithTapAt(const WindowAxis& axis, uint32_t tap, uint32_t place) {
  const uint64_t at = uint64_t{place} + axis.start, offset = uint64_t{tap} * axis.dilation;
  if (at < offset || (at - offset) % axis.stride != 0) return axis.windows;
  const uint64_t window = (at - offset) / axis.stride;
  return window < axis.windows ? static_cast<uint32_t>(window) : axis.windows;
}

std::span<const Operator> FoldOperators();

CreateFunction<FoldProblem> CreateFoldRows, CreateFoldCuda, CreateFoldReference;

}  // namespace anydml
