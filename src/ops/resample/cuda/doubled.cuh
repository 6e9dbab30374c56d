// Images whose rows and columns are doubled: a thread reads 8 bytes of a row and writes 16 bytes of two rows,
// for several consecutive rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/device/cuda/units.cuh"
#include "ops/device/nest.h"
#include "ops/resample/cuda/strips.cuh"
#include "ops/resample/levels.h"

namespace anydml {

inline constexpr uint32_t kMostDoubled = 1 << 16;  // few enough to test one by one

struct DoubledImages {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  uint32_t rows = 1;            // of the source
  uint32_t rows_of_thread = 1;  // per thread
  uint64_t source_stride = 0;   // of rows, in bytes
  uint64_t target_stride = 0;
  uint64_t threads = 0;
  FastDivisor groups;     // of 8 bytes in a row
  FastDivisor strips;     // of rows
  DeviceNest<2> images;   // in bytes
  bool possible = false;  // without addresses

  DoubledImages() = default;
  DoubledImages(const ResampleLevels& plan, uint32_t element_bytes, const LowerContext& context) {
    constexpr uint32_t kReadBytes = 8;
    const ResampleAxis &y = plan.levels[0], &x = plan.levels[1];
    uint64_t read = x.from | y.source_stride;
    LoopNest<2> nest;
    for (uint32_t d = 0; d < plan.batch_rank; ++d) {
      const uint64_t from = plan.batch[d].source_stride, to = plan.batch[d].target_stride;
      read |= from;
      nest.Append(plan.batch[d].to, {from * element_bytes, to * element_bytes});
    }
    possible = element_bytes <= 4 && x.source_stride == 1 && x.from <= kMostDoubled &&
               y.from <= kMostDoubled && LargestUnit(read * element_bytes) >= kReadBytes &&
               LargestUnit(StoreConstraints(plan, element_bytes)) == kMaxUnitBytes;
    if (!possible) return;
    rows = y.from;
    source_stride = uint64_t{y.source_stride} * element_bytes;
    target_stride = uint64_t{y.target_stride} * element_bytes;
    images = DeviceNest<2>(nest);
    const uint32_t group_count = x.from * element_bytes / kReadBytes;
    // More rows per thread save work, as long as there are enough threads.
    constexpr uint64_t kMostRows = 8;
    const uint64_t enough = uint64_t{context.device->multiprocessors} * 2048;
    const uint64_t all = Iterations(nest) * rows * group_count;
    rows_of_thread = static_cast<uint32_t>(std::clamp<uint64_t>(all / enough, 1, kMostRows));
    const uint32_t strip_count = (rows + rows_of_thread - 1) / rows_of_thread;
    groups = FastDivisor(group_count);
    strips = FastDivisor(strip_count);
    threads = Iterations(nest) * strip_count * group_count;
  }

  bool MayHave(const void* from, const void* to) const {
    return possible && AddressOf(from) % 8 == 0 && AddressOf(to) % kMaxUnitBytes == 0;
  }

  // A thread's part: the first bytes of its group in the image's first row, and its rows of the source.
  struct Part {
    const std::byte* source;
    std::byte* target;
    uint32_t group, first, end;
  };
  __device__ Part PartOf(uint32_t thread) const {
    Part part;
    uint32_t strip;
    const uint32_t image = strips.Divide(groups.Divide(thread, &part.group), &strip);
    uint64_t offsets[2];
    images.OffsetsOf(image, offsets);
    part.source = source + offsets[0] + part.group * 8;
    part.target = target + offsets[1] + part.group * 16;
    part.first = strip * rows_of_thread;
    part.end = min(part.first + rows_of_thread, rows);
    return part;
  }
};

// Whether every element of an axis stands for two, as `expected(number, taps)` says.
template <typename Expected>
bool IsDoubledAxis(const ResampleAxis& axis, const Expected& expected) {
  if (axis.from > kMostDoubled || axis.to != 2 * axis.from) return false;
  for (uint32_t i = 0; i < axis.to; ++i) {
    if (!expected(i, TapsOf(axis, i))) return false;
  }
  return true;
}

}  // namespace anydml
