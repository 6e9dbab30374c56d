#include <algorithm>

#include "base/half.h"
#include "ops/common/nest_parts.h"
#include "ops/numbers/row_arithmetic.h"
#include "ops/roi/samples.h"

namespace anydml {
namespace {

inline float NumberOf(float x) { return x; }
inline float NumberOf(Half x) { return ToFloat(x); }
inline void Put(float* to, float x) { *to = OneNan(x); }
inline void Put(Half* to, float x) { *to = ToHalf(OneNan(x)); }

// The operands of a run.
template <typename T>
struct Data {
  const T* image;
  const T* grid_in;  // the gradient
  const T* roi;
  const std::byte* indices;
  T* grid_out;
  T* image_gradient;
  T* roi_gradient;
};

template <typename T>
class Regions {
 public:
  Regions(const RoiProblem& problem, const KernelArguments& arguments) : p_(problem) {
    const auto input = [&](size_t i) { return reinterpret_cast<const T*>(arguments.inputs[i].data); };
    const auto output = [&](size_t i) { return reinterpret_cast<T*>(arguments.outputs[i].data); };
    data_.image = input(0);
    if (p_.kind == RoiKind::kAlignGradient) {
      data_.grid_in = input(1);
      data_.roi = input(2);
      data_.indices = arguments.inputs[3].data;
      data_.image_gradient = output(0);
      data_.roi_gradient = output(1);
    } else {
      data_.roi = input(1);
      data_.grid_out = output(0);
      if (p_.kind == RoiKind::kAlign) data_.indices = arguments.inputs[2].data;
    }
  }

  // The grid of a region in one channel.
  void Forward(uint32_t region, uint32_t channel) const {
    const auto load = ImageOf(ImageNumber(region), channel);
    const RegionAxis y = AxisY(region), x = AxisX(region);
    for (uint32_t row = 0; row < p_.grid_height; ++row) {
      for (uint32_t column = 0; column < p_.grid_width; ++column) {
        const float value = p_.kind == RoiKind::kPooling ? Pooled(region, row, column, load)
                                                         : AlignedValue(p_, y, x, row, column, load);
        Put(data_.grid_out + GridOffset(region, channel, row, column), value);
      }
    }
  }

  // The gradient of one channel of an image, summed in `plane`.
  void ImageGradient(uint32_t image, uint32_t channel, float* plane) const {
    std::fill_n(plane, uint64_t{p_.height} * p_.width, 0.0f);
    for (uint32_t region = 0; region < p_.regions; ++region) {
      if (ImageNumber(region) == image) AddRegion(region, channel, ImageOf(image, channel), plane);
    }
    T* const to = data_.image_gradient + Offset(p_.image_gradient_strides, image, channel, 0, 0);
    for (uint32_t row = 0; row < p_.height; ++row) {
      for (uint32_t column = 0; column < p_.width; ++column) {
        Put(to + Offset(p_.image_gradient_strides, 0, 0, row, column),
            plane[uint64_t{row} * p_.width + column]);
      }
    }
  }

  void RoiGradient(uint32_t region) const {
    RegionGradient sums[kRegionSums];
    const RegionAxis y = AxisY(region), x = AxisX(region);
    uint64_t number = 0;
    for (uint32_t channel = 0; channel < p_.channels; ++channel) {
      const auto load = ImageOf(ImageNumber(region), channel);
      for (uint32_t row = 0; row < p_.grid_height; ++row) {
        for (uint32_t column = 0; column < p_.grid_width; ++column) {
          const float gradient = NumberOf(data_.grid_in[GridOffset(region, channel, row, column)]);
          AddRegionGradient(p_, y, x, row, column, gradient, load, &sums[number++ % kRegionSums]);
        }
      }
    }
    for (uint32_t distance = kRegionSums / 2; distance > 0; distance /= 2) {
      for (uint32_t i = 0; i < distance; ++i) {
        for (uint32_t k = 0; k < 4; ++k) sums[i].sums[k] += sums[i + distance].sums[k];
      }
    }
    for (uint32_t k = 0; k < 4; ++k) {
      Put(data_.roi_gradient + uint64_t{region} * p_.roi_gradient_strides[0] +
              uint64_t{k} * p_.roi_gradient_strides[1],
          sums[0].sums[k]);
    }
  }

 private:
  static uint64_t Offset(const uint32_t (&strides)[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return uint64_t{a} * strides[0] + uint64_t{b} * strides[1] + uint64_t{c} * strides[2] +
           uint64_t{d} * strides[3];
  }
  uint64_t GridOffset(uint32_t region, uint32_t channel, uint32_t row, uint32_t column) const {
    return Offset(p_.grid_strides, region, channel, row, column);
  }

  auto ImageOf(uint32_t image, uint32_t channel) const {
    const uint64_t offset = Offset(p_.image_strides, image, channel, 0, 0);
    return [this, offset](uint32_t row, uint32_t column) {
      return NumberOf(data_.image[offset + Offset(p_.image_strides, 0, 0, row, column)]);
    };
  }

  float Coordinate(uint32_t region, uint32_t number) const {
    return NumberOf(data_.roi[uint64_t{region} * p_.roi_strides[0] + uint64_t{number} * p_.roi_strides[1]]);
  }
  RegionAxis AxisX(uint32_t region) const {
    return RegionAxisOf(p_, Coordinate(region, 0), Coordinate(region, 2), p_.scale_x, p_.grid_width,
                        p_.width);
  }
  RegionAxis AxisY(uint32_t region) const {
    return RegionAxisOf(p_, Coordinate(region, 1), Coordinate(region, 3), p_.scale_y, p_.grid_height,
                        p_.height);
  }

  uint32_t ImageNumber(uint32_t region) const {
    if (p_.kind == RoiKind::kPooling) return ClampedIndex(Coordinate(region, 0), p_.images);
    const uint64_t at = uint64_t{region} * p_.index_stride;
    const uint64_t number = p_.index_type == DataType::kUInt64
                                ? reinterpret_cast<const uint64_t*>(data_.indices)[at]
                                : reinterpret_cast<const uint32_t*>(data_.indices)[at];
    return static_cast<uint32_t>(std::min<uint64_t>(number, p_.images - 1));
  }

  template <typename Load>
  float Pooled(uint32_t region, uint32_t row, uint32_t column, const Load& load) const {
    return PooledValue(PooledRangeOf(Coordinate(region, 2), Coordinate(region, 4), p_.scale_y, row,
                                     p_.grid_height, p_.height),
                       PooledRangeOf(Coordinate(region, 1), Coordinate(region, 3), p_.scale_x, column,
                                     p_.grid_width, p_.width),
                       load);
  }

  template <typename Load>
  void AddRegion(uint32_t region, uint32_t channel, const Load& load, float* plane) const {
    const RegionAxis y = AxisY(region), x = AxisX(region);
    for (uint32_t row = 0; row < p_.grid_height; ++row) {
      for (uint32_t column = 0; column < p_.grid_width; ++column) {
        SampleRange rows, columns;
        FindSources(p_, y, x, row, column, load, &rows, &columns);
        const float gradient = NumberOf(data_.grid_in[GridOffset(region, channel, row, column)]);
        const float share = SampleGradient(p_, y, x, gradient);
        for (uint64_t i = rows.first; i < rows.end; ++i) {
          const Taps y_taps = SampleTaps(y, SamplePlace(y, i));
          for (uint64_t j = columns.first; j < columns.end; ++j) {
            AddSample(y_taps, SampleTaps(x, SamplePlace(x, j)), share, plane);
          }
        }
      }
    }
  }

  void AddSample(const Taps& y, const Taps& x, float share, float* plane) const {
    for (uint32_t row = y.first; row < y.first + y.count; ++row) {
      const float row_share = share * TapWeight(y, row);
      for (uint32_t column = x.first; column < x.first + x.count; ++column) {
        plane[uint64_t{row} * p_.width + column] += row_share * TapWeight(x, column);
      }
    }
  }

  const RoiProblem& p_;
  Data<T> data_ = {};
};

class RoiCpu final : public Kernel {
 public:
  RoiCpu(const RoiProblem& problem, uint32_t threads) : problem_(problem) {
    const uint64_t grids = uint64_t{problem.regions} * problem.channels;
    const uint64_t numbers = grids * problem.grid_height * problem.grid_width;
    // A number takes as long as moving some hundred bytes.
    constexpr uint64_t kBytes = 256;
    const uint32_t parts = PartsForBytes(numbers * kBytes, threads);
    const auto at_most = [parts](uint64_t count) {
      return static_cast<uint32_t>(std::min<uint64_t>(parts, count));
    };
    grid_parts_ = at_most(grids);
    plane_parts_ = at_most(uint64_t{problem.images} * problem.channels);
    region_parts_ = at_most(problem.regions);
  }

  uint64_t temporary_bytes() const override {
    return problem_.has_image_gradient ? plane_parts_ * PlaneBytes() : 0;
  }

  Status Run(const KernelArguments& arguments) const override {
    if (problem_.type == DataType::kFloat16) {
      RunAs<Half>(arguments);
    } else {
      RunAs<float>(arguments);
    }
    return {};
  }

 private:
  uint64_t PlaneBytes() const { return uint64_t{problem_.height} * problem_.width * sizeof(float); }

  template <typename T>
  void RunAs(const KernelArguments& arguments) const {
    const Regions<T> regions(problem_, arguments);
    const auto by_channel = [&](uint32_t count, uint32_t parts, auto&& body) {
      const uint64_t all = uint64_t{count} * problem_.channels;
      ParallelFor(arguments.executor, parts, [&](uint32_t part) {
        const uint64_t end = PartBegin(all, part + 1, parts);
        for (uint64_t i = PartBegin(all, part, parts); i < end; ++i) {
          body(part, static_cast<uint32_t>(i / problem_.channels),
               static_cast<uint32_t>(i % problem_.channels));
        }
      });
    };
    if (problem_.kind != RoiKind::kAlignGradient) {
      by_channel(problem_.regions, grid_parts_,
                 [&](uint32_t, uint32_t region, uint32_t channel) { regions.Forward(region, channel); });
      return;
    }
    if (problem_.has_image_gradient) {
      by_channel(problem_.images, plane_parts_, [&](uint32_t part, uint32_t image, uint32_t channel) {
        auto* const plane = reinterpret_cast<float*>(arguments.temporary.data + part * PlaneBytes());
        regions.ImageGradient(image, channel, plane);
      });
    }
    if (problem_.has_roi_gradient) {
      ParallelFor(arguments.executor, region_parts_, [&](uint32_t part) {
        const uint64_t end = PartBegin(problem_.regions, part + 1, region_parts_);
        for (uint64_t i = PartBegin(problem_.regions, part, region_parts_); i < end; ++i) {
          regions.RoiGradient(static_cast<uint32_t>(i));
        }
      });
    }
  }

  RoiProblem problem_;
  uint32_t grid_parts_, plane_parts_, region_parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRoiCpu(const RoiProblem& problem, const LowerContext& context,
                                           std::string*) {
  return std::make_unique<RoiCpu>(problem, context.threads);
}

}  // namespace anydml
