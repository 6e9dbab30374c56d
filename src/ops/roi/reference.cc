#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/roi/problem.h"

namespace anydml {
namespace {

// One direction of a sample: its neighbours, and the weight of the second.
struct Place {
  bool inside;
  uint32_t first, second;
  float weight;
  float share;  // the relative distance from the region's begin to its end
};

float Mixed(float a, float b, float weight) { return weight == 0 ? a : a * (1 - weight) + b * weight; }

float Maximum(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return std::max(a, b);
}

class RoiReference final : public Kernel {
 public:
  explicit RoiReference(const RoiProblem& problem) : p_(problem) {}

  uint64_t temporary_bytes() const override {
    return p_.has_image_gradient ? uint64_t{p_.height} * p_.width * sizeof(float) : 0;
  }

  Status Run(const KernelArguments& arguments) const override {
    if (p_.kind == RoiKind::kAlignGradient) {
      if (p_.has_image_gradient) ImageGradient(arguments);
      if (p_.has_roi_gradient) RoiGradient(arguments);
      return {};
    }
    ForEachCoordinate({p_.regions, p_.channels, p_.grid_height, p_.grid_width}, 4, [&](const Dimensions& at) {
      const float value = p_.kind == RoiKind::kPooling ? Pooled(arguments, at) : Aligned(arguments, at);
      Put(arguments.outputs[0], Offset(p_.grid_strides, at[0], at[1], at[2], at[3]), value);
    });
    return {};
  }

 private:
  // The samples of a number of the grid, for a gradient, row by row.
  struct Samples {
    std::vector<Place> rows, columns;
    size_t count() const { return rows.size() * columns.size(); }
  };

  static uint64_t Offset(const uint32_t (&strides)[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return uint64_t{a} * strides[0] + uint64_t{b} * strides[1] + uint64_t{c} * strides[2] +
           uint64_t{d} * strides[3];
  }
  float Get(const Buffer& buffer, uint64_t offset) const {
    return p_.type == DataType::kFloat16 ? ToFloat(Load<Half>(buffer.data, offset))
                                         : Load<float>(buffer.data, offset);
  }
  void Put(const Buffer& buffer, uint64_t offset, float value) const {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
    if (p_.type == DataType::kFloat16) return Store(buffer.data, offset, ToHalf(value));
    Store(buffer.data, offset, value);
  }

  float Coordinate(const KernelArguments& arguments, uint32_t region, uint32_t number) const {
    const Buffer& roi = arguments.inputs[p_.kind == RoiKind::kAlignGradient ? 2 : 1];
    return Get(roi, uint64_t{region} * p_.roi_strides[0] + uint64_t{number} * p_.roi_strides[1]);
  }
  uint32_t ImageOf(const KernelArguments& arguments, uint32_t region) const {
    if (p_.kind == RoiKind::kPooling) {
      const float number = Coordinate(arguments, region, 0);
      return number > 0 ? static_cast<uint32_t>(std::min(number, static_cast<float>(p_.images - 1))) : 0;
    }
    const std::byte* data = arguments.inputs[p_.kind == RoiKind::kAlign ? 2 : 3].data;
    const uint64_t at = uint64_t{region} * p_.index_stride;
    const uint64_t number =
        p_.index_type == DataType::kUInt64 ? Load<uint64_t>(data, at) : Load<uint32_t>(data, at);
    return static_cast<uint32_t>(std::min<uint64_t>(number, p_.images - 1));
  }
  float Pixel(const KernelArguments& arguments, uint32_t region, uint32_t channel, uint32_t row,
              uint32_t column) const {
    return Get(arguments.inputs[0],
               Offset(p_.image_strides, ImageOf(arguments, region), channel, row, column));
  }

  // [begin, end) in one direction.
  static std::array<double, 2> PooledBox(float low, float high, float scale, uint32_t output,
                                         uint32_t outputs, uint32_t size) {
    const auto rounded = [scale](float x) {
      const double place = std::round(x * scale);
      return std::isnan(place) ? 0 : std::clamp(place, -0x1p30, 0x1p30);
    };
    const double first = rounded(low), length = std::max(rounded(high) - first + 1, 1.0);
    const double begin = std::floor(output * length / outputs) + first;
    const double end = std::ceil((output + 1.0) * length / outputs) + first;
    return {std::clamp(begin, 0.0, static_cast<double>(size)),
            std::clamp(end, 0.0, static_cast<double>(size))};
  }

  float Pooled(const KernelArguments& arguments, const Dimensions& at) const {
    const auto roi = [&](uint32_t number) { return Coordinate(arguments, at[0], number); };
    const auto y = PooledBox(roi(2), roi(4), p_.scale_y, at[2], p_.grid_height, p_.height);
    const auto x = PooledBox(roi(1), roi(3), p_.scale_x, at[3], p_.grid_width, p_.width);
    if (y[0] >= y[1] || x[0] >= x[1]) return 0;
    float value = -std::numeric_limits<float>::infinity();
    for (auto row = static_cast<uint32_t>(y[0]); row < y[1]; ++row) {
      for (auto column = static_cast<uint32_t>(x[0]); column < x[1]; ++column) {
        value = Maximum(value, Pixel(arguments, at[0], at[1], row, column));
      }
    }
    return value;
  }

  // The samples of a number in one direction.
  std::vector<Place> PlacesOf(float low, float high, float scale, uint32_t output, uint32_t outputs,
                              uint32_t size) const {
    const float begin = low * scale, length = (high - low) * scale;
    const float wanted = std::ceil(length / static_cast<float>(outputs));
    uint32_t samples = p_.min_samples;
    if (wanted > static_cast<float>(p_.min_samples)) {
      samples = wanted > static_cast<float>(p_.max_samples) ? p_.max_samples : static_cast<uint32_t>(wanted);
    }
    const auto all = static_cast<float>(uint64_t{outputs} * samples);
    std::vector<Place> places;
    for (uint32_t j = 0; j < samples; ++j) {
      const float k = static_cast<float>(uint64_t{output} * samples + j) - p_.output_offset;
      float x, share;
      if (p_.corners && all == 1) {
        share = 0.5f;
        x = length * 0.5f + begin - p_.input_offset;
      } else {
        const float divisor = p_.corners ? all - 1 : all;
        share = k / divisor;
        x = k * (length / divisor) + begin - p_.input_offset;
      }
      places.push_back(PlaceAt(x, share, size));
    }
    return places;
  }

  Place PlaceAt(float x, float share, uint32_t size) const {
    if (!(x > -1 && x < static_cast<float>(size))) return {false, 0, 0, 0, share};
    const float inside = std::clamp(x, 0.0f, static_cast<float>(size - 1));
    if (!p_.linear) {
      const auto nearest = static_cast<uint32_t>(std::max(0.0f, std::floor(x + 0.5f)));
      return {true, std::min(nearest, size - 1), std::min(nearest, size - 1), 0, share};
    }
    const auto first = static_cast<uint32_t>(std::floor(inside)),
               second = static_cast<uint32_t>(std::ceil(inside));
    return {true, first, second, inside - std::floor(inside), share};
  }

  Samples SamplesOf(const KernelArguments& arguments, const Dimensions& at) const {
    const auto roi = [&](uint32_t number) { return Coordinate(arguments, at[0], number); };
    return {PlacesOf(roi(1), roi(3), p_.scale_y, at[2], p_.grid_height, p_.height),
            PlacesOf(roi(0), roi(2), p_.scale_x, at[3], p_.grid_width, p_.width)};
  }

  float ValueAt(const KernelArguments& arguments, const Dimensions& at, const Place& y,
                const Place& x) const {
    const auto row = [&](uint32_t number) {
      return Mixed(Pixel(arguments, at[0], at[1], number, x.first),
                   Pixel(arguments, at[0], at[1], number, x.second), x.weight);
    };
    return Mixed(row(y.first), row(y.second), y.weight);
  }

  float Aligned(const KernelArguments& arguments, const Dimensions& at) const {
    const Samples samples = SamplesOf(arguments, at);
    uint64_t outside = 0;
    const auto reduced = [this](const std::vector<float>& values) {
      float result = values[0];
      for (size_t i = 1; i < values.size(); ++i) {
        result = p_.maximum ? Maximum(result, values[i]) : result + values[i];
      }
      return result;
    };
    std::vector<float> rows;  // each reduced separately
    for (const Place& y : samples.rows) {
      std::vector<float> values;
      for (const Place& x : samples.columns) {
        if (y.inside && x.inside) {
          values.push_back(ValueAt(arguments, at, y, x));
        } else {
          ++outside;
        }
      }
      if (!values.empty()) rows.push_back(reduced(values));
    }
    if (outside > 0) rows.push_back(p_.maximum ? p_.outside : p_.outside * static_cast<float>(outside));
    const float result = reduced(rows);
    return p_.maximum ? result : result / static_cast<float>(samples.count());
  }

  // Calls body(y, x, gradient) for every sample that contributes to a number of the grid.
  template <typename Body>
  void ForSources(const KernelArguments& arguments, const Dimensions& at, Body&& body) const {
    const Samples samples = SamplesOf(arguments, at);
    const float gradient = Get(arguments.inputs[1], Offset(p_.grid_strides, at[0], at[1], at[2], at[3]));
    const Place *best_y = nullptr, *best_x = nullptr;
    float best = 0;
    for (const Place& y : samples.rows) {
      for (const Place& x : samples.columns) {
        if (!y.inside || !x.inside) continue;
        if (!p_.maximum) {
          body(y, x, gradient / static_cast<float>(samples.count()));
          continue;
        }
        const float value = ValueAt(arguments, at, y, x);
        if (best_y != nullptr && !(value > best || (std::isnan(value) && !std::isnan(best)))) continue;
        best = value;
        best_y = &y;
        best_x = &x;
      }
    }
    if (best_y != nullptr) body(*best_y, *best_x, gradient);
  }

  void ImageGradient(const KernelArguments& arguments) const {
    auto* const plane = reinterpret_cast<float*>(arguments.temporary.data);
    const auto add = [&](uint32_t row, uint32_t column, float x) {
      plane[uint64_t{row} * p_.width + column] += x;
    };
    ForEachCoordinate({p_.images, p_.channels}, 2, [&](const Dimensions& image) {
      std::fill_n(plane, uint64_t{p_.height} * p_.width, 0.0f);
      ForEachCoordinate({p_.regions, p_.grid_height, p_.grid_width}, 3, [&](const Dimensions& at) {
        if (ImageOf(arguments, at[0]) != image[0]) return;
        ForSources(arguments, {at[0], image[1], at[1], at[2]}, [&](const Place& y, const Place& x, float g) {
          const auto add_row = [&](uint32_t row, float share) {
            if (x.first == x.second) return add(row, x.first, share);
            add(row, x.first, share * (1 - x.weight));
            add(row, x.second, share * x.weight);
          };
          if (y.first == y.second) return add_row(y.first, g);
          add_row(y.first, g * (1 - y.weight));
          add_row(y.second, g * y.weight);
        });
      });
      ForEachCoordinate({p_.height, p_.width}, 2, [&](const Dimensions& at) {
        Put(arguments.outputs[0], Offset(p_.image_gradient_strides, image[0], image[1], at[0], at[1]),
            plane[uint64_t{at[0]} * p_.width + at[1]]);
      });
    });
  }

  // In 256 alternating sums, which are added pairwise, as all implementations do.
  void RoiGradient(const KernelArguments& arguments) const {
    for (uint32_t region = 0; region < p_.regions; ++region) {
      std::vector<std::array<float, 4>> sums(256, std::array<float, 4>{});
      uint32_t number = 0;
      ForEachCoordinate({p_.channels, p_.grid_height, p_.grid_width}, 3, [&](const Dimensions& at) {
        std::array<float, 4>& sum = sums[number++ % 256];
        if (!p_.linear) return;
        const Dimensions grid = {region, at[0], at[1], at[2]};
        ForSources(arguments, grid, [&](const Place& y, const Place& x, float g) {
          const auto pixel = [&](uint32_t row, uint32_t column) {
            return Pixel(arguments, region, at[0], row, column);
          };
          float slope_x = 0, slope_y = 0;
          if (x.first != x.second) {
            slope_x = Mixed(pixel(y.first, x.second) - pixel(y.first, x.first),
                            pixel(y.second, x.second) - pixel(y.second, x.first), y.weight);
          }
          if (y.first != y.second) {
            slope_y = Mixed(pixel(y.second, x.first) - pixel(y.first, x.first),
                            pixel(y.second, x.second) - pixel(y.first, x.second), x.weight);
          }
          sum[0] += slope_x * g * (p_.scale_x * (1 - x.share));
          sum[1] += slope_y * g * (p_.scale_y * (1 - y.share));
          sum[2] += slope_x * g * (p_.scale_x * x.share);
          sum[3] += slope_y * g * (p_.scale_y * y.share);
        });
      });
      for (uint32_t distance = 128; distance > 0; distance /= 2) {
        for (uint32_t i = 0; i < distance; ++i) {
          for (uint32_t k = 0; k < 4; ++k) sums[i][k] += sums[i + distance][k];
        }
      }
      for (uint32_t k = 0; k < 4; ++k) {
        Put(arguments.outputs[1],
            uint64_t{region} * p_.roi_gradient_strides[0] + uint64_t{k} * p_.roi_gradient_strides[1],
            sums[0][k]);
      }
    }
  }

  RoiProblem p_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRoiReference(const RoiProblem& problem, const LowerContext&,
                                                 std::string*) {
  return std::make_unique<RoiReference>(problem);
}

}  // namespace anydml
