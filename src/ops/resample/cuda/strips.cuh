// Images with contiguous target rows, cut for threads: a few columns, as many as are stored at once, of a few
// consecutive rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/device/cuda/units.cuh"
#include "ops/device/nest.h"
#include "ops/resample/levels.h"

namespace anydml {

struct Strips {
  ResampleAxis y, x;
  float y_inverse = 0, x_inverse = 0;  // of the scales, if they are exact; otherwise 0
  uint32_t rows = 1;                   // per thread
  uint32_t columns = 1;                // per thread
  uint64_t threads = 0;
  FastDivisor groups;  // of columns
  FastDivisor strips;  // of rows
  DeviceNest<2> images;

  Strips() = default;
  Strips(const ResampleLevels& plan, uint32_t thread_columns, const LowerContext& context)
      : y(plan.levels[0]),
        x(plan.levels[1]),
        y_inverse(ExactInverse(y.scale)),
        x_inverse(ExactInverse(x.scale)),
        columns(thread_columns) {
    LoopNest<2> nest;
    for (uint32_t d = 0; d < plan.batch_rank; ++d) {
      nest.Append(plan.batch[d].to, {plan.batch[d].source_stride, plan.batch[d].target_stride});
    }
    images = DeviceNest<2>(nest);
    const uint32_t group_count = (x.to + columns - 1) / columns;
    // More rows per thread save work, as long as there are enough threads.
    constexpr uint64_t kMostRows = 16;
    const uint64_t enough = uint64_t{context.device->multiprocessors} * 1024;
    const uint64_t all = Iterations(nest) * y.to * group_count;
    rows = static_cast<uint32_t>(std::clamp<uint64_t>(all / enough, 1, kMostRows));
    const uint32_t strip_count = (y.to + rows - 1) / rows;
    groups = FastDivisor(group_count);
    strips = FastDivisor(strip_count);
    threads = Iterations(nest) * strip_count * group_count;
  }

  // A thread's part: offsets of the image in source and target, its first column and its rows.
  struct Part {
    uint64_t offsets[2];
    uint32_t column, first_row, end_row;
  };
  __device__ Part PartOf(uint32_t thread) const {
    Part part;
    uint32_t group, strip;
    const uint32_t image = strips.Divide(groups.Divide(thread, &group), &strip);
    images.OffsetsOf(image, part.offsets);
    part.column = group * columns;
    part.first_row = strip * rows;
    part.end_row = min(part.first_row + rows, y.to);
    return part;
  }

  __device__ float PlaceOfRow(uint32_t row) const { return PlaceIn(y, y_inverse, row); }
  __device__ float PlaceOfColumn(uint32_t column) const { return PlaceIn(x, x_inverse, column); }

 private:
  static float ExactInverse(float scale) {
    int exponent;
    const bool is_power = std::frexp(scale, &exponent) == 0.5f && std::abs(exponent) < 64;
    return is_power ? 1 / scale : 0;
  }

  // For powers of two: the product equals the quotient.
  __device__ static float PlaceIn(const ResampleAxis& axis, float inverse, uint32_t number) {
    const float distance = static_cast<float>(number) - axis.output_offset;
    return (inverse != 0 ? distance * inverse : distance / axis.scale) - axis.input_offset;
  }
};

// What stores must divide to be aligned: strides and lengths of rows, in bytes, or-ed together.
inline uint64_t StoreConstraints(const ResampleLevels& plan, uint32_t element_bytes) {
  uint64_t elements = plan.levels[1].to | plan.levels[0].target_stride;
  for (uint32_t d = 0; d < plan.batch_rank; ++d) elements |= plan.batch[d].target_stride;
  return elements * element_bytes;
}

// Why there are no strips; empty if there are.
inline std::string WhyNoStrips(const ResampleProblem& problem, const ResampleLevels& plan) {
  constexpr uint32_t kMostColumns = 1u << 30;
  if (problem.gradient || plan.level_count != 2) return "it is not two dimensions that are resampled";
  const ResampleAxis& x = plan.levels[1];
  if (x.target_stride != 1) return "rows are not contiguous";
  return std::max(x.from, x.to) > kMostColumns ? "rows are too long" : "";
}

}  // namespace anydml
