#include "onnx/lower/resize_weights.h"

#include <algorithm>
#include <cmath>

#include "onnx/model/node_facts.h"

namespace anydml::onnx {
namespace {

double Cubic(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

double Linear(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

double Rounded(const std::string& rounding, double x) {
  if (rounding == "floor") return std::floor(x);
  if (rounding == "ceil") return std::ceil(x);
  return rounding == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

}  // namespace

Status ResizedFrom(const ResizeMode& mode, const ResizeAxis& axis, int64_t at, double* out) {
  const auto x = static_cast<double>(at), in = static_cast<double>(axis.in);
  const double length = axis.scale * in;  // before it is rounded
  const std::string& name = mode.coordinates;
  if (name == "half_pixel") {
    *out = (x + 0.5) / axis.scale - 0.5;
  } else if (name == "pytorch_half_pixel") {
    *out = axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  } else if (name == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.out) / length;
    *out = in / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  } else if (name == "align_corners") {
    *out = axis.out > 1 ? x * (in - 1) / (length - 1) : 0;
  } else if (name == "asymmetric") {
    *out = x / axis.scale;
  } else if (name == "tf_half_pixel_for_nn") {
    *out = (x + 0.5) / axis.scale;
  } else if (name == "tf_crop_and_resize") {
    *out = axis.out > 1 ? axis.start * (in - 1) + x * (axis.end - axis.start) * (in - 1) / (length - 1)
                        : 0.5 * (axis.start + axis.end) * (in - 1);
  } else {
    return Unsupported("coordinate_transformation_mode ", name.substr(0, 40));
  }
  return {};
}

Status ResizeWeights(const ResizeMode& mode, const ResizeAxis& axis, std::vector<double>* weights,
                     std::vector<int64_t>* outside) {
  const auto in = static_cast<size_t>(axis.in), out = static_cast<size_t>(axis.out);
  weights->assign(in * out, 0);
  outside->assign(out, 0);
  const bool cubic = mode.mode == "cubic";
  // Kernels become wider if the result is smaller.
  const double stretch = mode.antialias && axis.scale < 1 ? axis.scale : 1;
  const double reach = (cubic ? 2 : 1) / stretch;
  if (!(reach < 0x1p24)) return InvalidArgument("a scale of ", axis.scale);
  for (size_t i = 0; i < out; ++i) {
    double x = 0;
    ANYDML_RETURN_IF_ERROR(ResizedFrom(mode, axis, static_cast<int64_t>(i), &x));
    if (!(std::abs(x) < 0x1p40)) return InvalidArgument("a scale of ", axis.scale);
    double* const row = weights->data() + i * in;
    const double last = static_cast<double>(in) - 1;
    (*outside)[i] = x < 0 || x > last;
    if (mode.mode == "nearest") {
      row[static_cast<size_t>(std::clamp(Rounded(mode.rounding, x), 0.0, last))] = 1;
      continue;
    }
    double sum = 0;
    for (double at = std::floor(x - reach) + 1; at < x + reach; ++at) {
      if (mode.exclude_outside && (at < 0 || at > last)) continue;
      const double distance = (at - x) * stretch;
      const double weight = cubic ? Cubic(distance, mode.cubic_a) : Linear(distance);
      row[static_cast<size_t>(std::clamp(at, 0.0, last))] += weight;
      sum += weight;
    }
    if (sum == 0) continue;
    for (size_t j = 0; j < in; ++j) row[j] /= sum;
  }
  return {};
}

}  // namespace anydml::onnx
