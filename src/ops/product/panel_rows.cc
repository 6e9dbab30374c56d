#include "ops/product/panel_rows.h"

#include <cstring>

#include "ops/product/panel_copies.h"

namespace anydml {
namespace {

template <uint32_t kWidth>
void CopyWhole(const float* from, uint64_t stride, uint64_t rows, float* to) {
  for (uint64_t r = 0; r < rows; ++r) std::memcpy(to + r * kWidth, from + r * stride, kWidth * sizeof(float));
}

void Copy(const float* from, uint64_t stride, uint64_t rows, uint64_t count, uint32_t width, float* to) {
  for (uint64_t r = 0; r < rows; ++r) std::memcpy(to + r * width, from + r * stride, count * sizeof(float));
}

}  // namespace

void CutRows(const float* from, uint64_t stride, uint64_t rows, uint64_t count, uint32_t width,
             uint64_t panel_stride, float* to) {
  if (const auto copy_rows = FindPanelCopies().rows; copy_rows != nullptr) {
    for (; count != 0; from += width, to += panel_stride) {
      const uint64_t some = std::min<uint64_t>(count, width);
      copy_rows(from, stride, rows, static_cast<uint32_t>(some), width, to);
      count -= some;
    }
    return;
  }
  // Copies of a constant size are a few instructions; these are the widths of existing tiles.
  const auto copy = width == 6    ? CopyWhole<6>
                    : width == 8  ? CopyWhole<8>
                    : width == 12 ? CopyWhole<12>
                    : width == 16 ? CopyWhole<16>
                    : width == 48 ? CopyWhole<48>
                                  : nullptr;
  for (; count >= width && copy != nullptr; count -= width, from += width, to += panel_stride) {
    copy(from, stride, rows, to);
  }
  for (; count != 0; from += width, to += panel_stride) {
    const uint64_t some = std::min<uint64_t>(count, width);
    Copy(from, stride, rows, some, width, to);
    count -= some;
  }
}

void ClearLastPanel(uint64_t count, uint64_t steps, uint32_t width, float* to) {
  if (count % width == 0) return;
  std::memset(to + count / width * width * steps, 0, steps * width * sizeof(float));
}

}  // namespace anydml
