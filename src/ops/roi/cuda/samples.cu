// A thread for every number of a grid, or of an image's gradient; a block for a region's gradient.
#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/float_elements.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/roi/plan.h"
#include "ops/roi/samples.h"

namespace anydml {
namespace {

// One channel of an image.
struct Plane {
  const void* data;
  uint64_t offset;
  uint32_t row_stride, column_stride;
  bool is_half;

  __host__ __device__ float operator()(uint32_t row, uint32_t column) const {
    const uint64_t at = offset + uint64_t{row} * row_stride + uint64_t{column} * column_stride;
    return is_half ? element_cuda::HalfToFloat(static_cast<const uint16_t*>(data)[at])
                   : static_cast<const float*>(data)[at];
  }
};

__device__ uint64_t OffsetIn(const uint32_t (&strides)[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return uint64_t{a} * strides[0] + uint64_t{b} * strides[1] + uint64_t{c} * strides[2] +
         uint64_t{d} * strides[3];
}

__device__ Plane PlaneOf(const RoiParameters& a, uint32_t image, uint32_t channel) {
  return {a.image, OffsetIn(a.p.image_strides, image, channel, 0, 0), a.p.image_strides[2],
          a.p.image_strides[3], a.p.type == DataType::kFloat16};
}

__device__ float Coordinate(const RoiParameters& a, uint32_t region, uint32_t number) {
  return LoadNumber(a.roi, uint64_t{region} * a.p.roi_strides[0] + uint64_t{number} * a.p.roi_strides[1],
                    a.p.type);
}
__device__ RegionAxis AxisX(const RoiParameters& a, uint32_t region) {
  return RegionAxisOf(a.p, Coordinate(a, region, 0), Coordinate(a, region, 2), a.p.scale_x, a.p.grid_width,
                      a.p.width);
}
__device__ RegionAxis AxisY(const RoiParameters& a, uint32_t region) {
  return RegionAxisOf(a.p, Coordinate(a, region, 1), Coordinate(a, region, 3), a.p.scale_y, a.p.grid_height,
                      a.p.height);
}

__device__ uint32_t ImageNumber(const RoiParameters& a, uint32_t region) {
  if (a.p.kind == RoiKind::kPooling) return ClampedIndex(Coordinate(a, region, 0), a.p.images);
  const uint64_t at = uint64_t{region} * a.p.index_stride;
  const uint64_t number = a.p.index_type == DataType::kUInt64 ? static_cast<const uint64_t*>(a.indices)[at]
                                                              : static_cast<const uint32_t*>(a.indices)[at];
  return number < a.p.images ? static_cast<uint32_t>(number) : a.p.images - 1;
}

__device__ float GradientAt(const RoiParameters& a, uint32_t region, uint32_t channel, uint32_t row,
                            uint32_t column) {
  return LoadNumber(a.grid_in, OffsetIn(a.p.grid_strides, region, channel, row, column), a.p.type);
}

struct Place {
  uint32_t outer, channel, row, column;
};

// Whether the thread has something to write, and where.
__device__ bool FindPlace(const RoiParameters& a, Place* place) {
  const uint64_t number = uint64_t{blockIdx.x} * kRoiThreads + threadIdx.x;
  if (number >= a.count) return false;
  const uint32_t row = a.columns.Divide(static_cast<uint32_t>(number), &place->column);
  const uint32_t channel = a.rows.Divide(row, &place->row);
  place->outer = a.channels.Divide(channel, &place->channel);
  return true;
}

__global__ void __launch_bounds__(kRoiThreads) ComputeGrids(const __grid_constant__ RoiParameters a) {
  Place at;
  if (!FindPlace(a, &at)) return;
  const Plane plane = PlaneOf(a, ImageNumber(a, at.outer), at.channel);
  float value;
  if (a.p.kind == RoiKind::kPooling) {
    const PooledRange rows = PooledRangeOf(Coordinate(a, at.outer, 2), Coordinate(a, at.outer, 4),
                                           a.p.scale_y, at.row, a.p.grid_height, a.p.height);
    const PooledRange columns = PooledRangeOf(Coordinate(a, at.outer, 1), Coordinate(a, at.outer, 3),
                                              a.p.scale_x, at.column, a.p.grid_width, a.p.width);
    value = PooledValue(rows, columns, plane);
  } else {
    value = AlignedValue(a.p, AxisY(a, at.outer), AxisX(a, at.outer), at.row, at.column, plane);
  }
  StoreNumber(a.grid_out, OffsetIn(a.p.grid_strides, at.outer, at.channel, at.row, at.column), a.p.type,
              value);
}

// Those of `samples` that belong to output `output`.
__device__ SampleRange PartOf(const RegionAxis& axis, const SampleRange& samples, uint32_t output) {
  const uint64_t begin = uint64_t{output} * axis.samples, end = begin + axis.samples;
  return {samples.first > begin ? samples.first : begin, samples.end < end ? samples.end : end};
}

// A region's contribution to the gradient of an element, in the order in which its samples would be
// scattered.
__device__ float AddRegion(const RoiParameters& a, uint32_t region, const Place& at, const Plane& plane,
                           float sum) {
  const RegionAxis y = AxisY(a, region), x = AxisX(a, region);
  const SampleRange y_samples = SamplesThatTake(y, at.row), x_samples = SamplesThatTake(x, at.column);
  if (y_samples.first >= y_samples.end || x_samples.first >= x_samples.end) return sum;
  const auto output_of = [](const RegionAxis& axis, uint64_t k) {
    return static_cast<uint32_t>(k / axis.samples);
  };
  const uint32_t last_row = output_of(y, y_samples.end - 1), last_column = output_of(x, x_samples.end - 1);
  for (uint32_t row = output_of(y, y_samples.first); row <= last_row; ++row) {
    for (uint32_t column = output_of(x, x_samples.first); column <= last_column; ++column) {
      SampleRange rows = PartOf(y, y_samples, row), columns = PartOf(x, x_samples, column);
      if (a.p.maximum) {
        SampleRange best_row, best_column;
        FindSources(a.p, y, x, row, column, plane, &best_row, &best_column);
        if (best_row.first < rows.first || best_row.first >= rows.end || best_column.first < columns.first ||
            best_column.first >= columns.end) {
          continue;
        }
        rows = best_row;
        columns = best_column;
      }
      const float share = SampleGradient(a.p, y, x, GradientAt(a, region, at.channel, row, column));
      for (uint64_t i = rows.first; i < rows.end; ++i) {
        const float row_share = share * TapWeight(SampleTaps(y, SamplePlace(y, i)), at.row);
        for (uint64_t j = columns.first; j < columns.end; ++j) {
          sum += row_share * TapWeight(SampleTaps(x, SamplePlace(x, j)), at.column);
        }
      }
    }
  }
  return sum;
}

__global__ void __launch_bounds__(kRoiThreads) ComputeImageGradient(const __grid_constant__ RoiParameters a) {
  Place at;
  if (!FindPlace(a, &at)) return;
  const Plane plane = PlaneOf(a, at.outer, at.channel);
  float sum = 0;
  for (uint32_t region = 0; region < a.p.regions; ++region) {
    if (ImageNumber(a, region) == at.outer) sum = AddRegion(a, region, at, plane, sum);
  }
  StoreNumber(a.image_gradient, OffsetIn(a.p.image_gradient_strides, at.outer, at.channel, at.row, at.column),
              a.p.type, sum);
}

__global__ void __launch_bounds__(kRegionSums) ComputeRoiGradient(const __grid_constant__ RoiParameters a) {
  __shared__ float sums[4][kRegionSums];
  const uint32_t region = blockIdx.x;
  const RegionAxis y = AxisY(a, region), x = AxisX(a, region);
  const uint32_t image = ImageNumber(a, region);
  RegionGradient own;
  const uint64_t numbers = uint64_t{a.p.channels} * a.p.grid_height * a.p.grid_width;
  for (uint64_t number = threadIdx.x; number < numbers; number += kRegionSums) {
    uint32_t row, column;
    const uint32_t channel = a.rows.Divide(a.columns.Divide(static_cast<uint32_t>(number), &column), &row);
    AddRegionGradient(a.p, y, x, row, column, GradientAt(a, region, channel, row, column),
                      PlaneOf(a, image, channel), &own);
  }
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) sums[k][threadIdx.x] = own.sums[k];
  for (uint32_t distance = kRegionSums / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x >= distance) continue;
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) sums[k][threadIdx.x] += sums[k][threadIdx.x + distance];
  }
  if (threadIdx.x != 0) return;
#pragma unroll
  for (uint32_t k = 0; k < 4; ++k) {
    StoreNumber(a.roi_gradient,
                uint64_t{region} * a.p.roi_gradient_strides[0] + uint64_t{k} * a.p.roi_gradient_strides[1],
                a.p.type, sums[k][0]);
  }
}

class RoiCuda final : public Kernel {
 public:
  explicit RoiCuda(const RoiProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    if (problem_.kind == RoiKind::kAlignGradient) {
      LaunchGradients(arguments);
      return {};
    }
    RoiLaunch grids = PlanRoiGrids(problem_);
    RoiParameters& a = grids.parameters;
    a.image = arguments.inputs[0].data;
    a.roi = arguments.inputs[1].data;
    if (problem_.kind == RoiKind::kAlign) a.indices = arguments.inputs[2].data;
    a.grid_out = arguments.outputs[0].data;
    KernelChain(arguments.stream).Launch(ComputeGrids, grids.grid, a);
    return {};
  }

 private:
  // They are independent: each begins a chain of its own.
  void LaunchGradients(const KernelArguments& arguments) const {
    const auto launch = [&](void (*kernel)(RoiParameters), const RoiLaunch& planned) {
      RoiParameters a = planned.parameters;
      a.image = arguments.inputs[0].data;
      a.grid_in = arguments.inputs[1].data;
      a.roi = arguments.inputs[2].data;
      a.indices = arguments.inputs[3].data;
      a.image_gradient = arguments.outputs[0].data;
      a.roi_gradient = arguments.outputs[1].data;
      KernelChain(arguments.stream).Launch(kernel, planned.grid, a);
    };
    if (problem_.has_image_gradient) launch(ComputeImageGradient, PlanRoiImageGradient(problem_));
    if (problem_.has_roi_gradient) launch(ComputeRoiGradient, PlanRoiGradient(problem_));
  }

  RoiProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRoiCuda(const RoiProblem& problem, const LowerContext&, std::string*) {
  return std::make_unique<RoiCuda>(problem);
}

}  // namespace anydml
