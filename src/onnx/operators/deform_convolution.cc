// DeformConv on the host: a convolution whose taps are displaced by another tensor.
#include <cmath>

#include "onnx/host/host_numbers.h"
#include "onnx/lower/windows.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// Interpolates between four elements; 0 outside.
double Sample(const double* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
  const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  const double v = y - static_cast<double>(top), u = x - static_cast<double>(left);
  const auto at = [&](int64_t i, int64_t j) {
    return i < 0 || j < 0 || i >= height || j >= width ? 0 : plane[i * width + j];
  };
  return (1 - v) * ((1 - u) * at(top, left) + u * at(top, left + 1)) +
         v * ((1 - u) * at(top + 1, left) + u * at(top + 1, left + 1));
}

struct Deformed {
  Windows windows;
  int64_t taps = 0, places = 0, groups = 1, offset_groups = 1;
};

Status Resolve(const HostCall& call, Deformed* out) {
  const Shape &x = call.In(0).shape, &w = call.In(1).shape, &offset = call.In(2).shape;
  if (x.size() != 4 || w.size() != 4) return Unsupported("ranks ", x.size(), " and ", w.size());
  Deformed& d = *out;
  ANYDML_RETURN_IF_ERROR(
      ResolveWindows(call, std::span(x).subspan(2), std::vector<int64_t>{w[2], w[3]}, &d.windows));
  d.taps = w[2] * w[3];
  d.places = d.windows.output[0] * d.windows.output[1];
  d.groups = call.Int("group", 1);
  d.offset_groups = call.Int("offset_group", 1);
  if (d.groups < 1 || d.offset_groups < 1 || d.groups > x[1] || d.offset_groups > x[1] || x[1] > INT32_MAX ||
      d.taps > (1 << 24))
    return InvalidArgument("group ", d.groups, " and offset_group ", d.offset_groups, " for ",
                           ShapeToString(x));
  const Shape expected = {x[0], 2 * d.offset_groups * d.taps, d.windows.output[0], d.windows.output[1]};
  if (x[1] % d.groups != 0 || x[1] % d.offset_groups != 0 || w[1] != x[1] / d.groups ||
      w[0] % d.groups != 0 || offset != expected)
    return InvalidArgument("X ", ShapeToString(x), ", W ", ShapeToString(w), " and offset ",
                           ShapeToString(offset));
  Shape mask = expected;
  mask[1] /= 2;
  if (call.Has(4) && call.In(4).shape != mask)
    return InvalidArgument("mask ", ShapeToString(call.In(4).shape));
  if (call.Has(3) && call.In(3).shape != Shape{w[0]})
    return InvalidArgument("B ", ShapeToString(call.In(3).shape));
  const std::optional<int64_t> columns = ElementCount(Shape{x[1], d.taps, d.places}),
                               result = ElementCount(Shape{x[0], w[0], d.places}),
                               work = ElementCount(Shape{x[0], w[0], d.places, w[1], d.taps});
  if (!columns || *columns > host::kMostHostNumbers || !result || *result > host::kMostHostNumbers || !work ||
      *work > int64_t{1} << 36 || call.In(0).count() > host::kMostHostNumbers)
    return Unsupported("such sizes on the host");
  return {};
}

// X, W, offset, B, mask
Status DeformConv(HostCall& call) {
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (call.Has(i) && !IsFloat(call.In(i).type)) return Unsupported("of ", Name(call.In(i).type));
  }
  Deformed d;
  ANYDML_RETURN_IF_ERROR(Resolve(call, &d));
  const Shape &x = call.In(0).shape, &w = call.In(1).shape;
  const std::vector<double> values = ToDoubles(call.In(0)), weights = ToDoubles(call.In(1)),
                            offsets = ToDoubles(call.In(2));
  std::vector<double> bias, mask;
  if (call.Has(3)) bias = ToDoubles(call.In(3));
  if (call.Has(4)) mask = ToDoubles(call.In(4));
  const Windows& windows = d.windows;
  const int64_t width = windows.output[1], inner = w[1] * d.taps;
  std::vector<double> columns(static_cast<size_t>(x[1] * d.taps * d.places)), result;
  for (int64_t batch = 0; batch < x[0]; ++batch) {
    for (int64_t row = 0; row < x[1] * d.taps; ++row) {
      const int64_t channel = row / d.taps, tap = row % d.taps;
      const int64_t group = channel / (x[1] / d.offset_groups);
      const int64_t field = (batch * d.offset_groups + group) * d.taps + tap;
      const double* const plane = values.data() + (batch * x[1] + channel) * x[2] * x[3];
      for (int64_t i = 0; i < d.places; ++i) {
        const auto place = [&](size_t dimension, int64_t out, int64_t window) {
          return static_cast<double>(out * windows.strides[dimension] - windows.begin[dimension] +
                                     window * windows.dilations[dimension]);
        };
        const double y =
            place(0, i / width, tap / w[3]) + offsets[static_cast<size_t>(2 * field * d.places + i)];
        const double u =
            place(1, i % width, tap % w[3]) + offsets[static_cast<size_t>((2 * field + 1) * d.places + i)];
        columns[static_cast<size_t>(row * d.places + i)] =
            Sample(plane, x[2], x[3], y, u) *
            (mask.empty() ? 1 : mask[static_cast<size_t>(field * d.places + i)]);
      }
    }
    for (int64_t channel = 0; channel < w[0]; ++channel) {
      const int64_t first = channel / (w[0] / d.groups) * inner;
      for (int64_t i = 0; i < d.places; ++i) {
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(channel)];
        for (int64_t k = 0; k < inner; ++k) {
          sum += weights[static_cast<size_t>(channel * inner + k)] *
                 columns[static_cast<size_t>((first + k) * d.places + i)];
        }
        result.push_back(sum);
      }
    }
  }
  call.outputs[0] = FromDoubles(call.In(0).type, {x[0], w[0], windows.output[0], width}, result);
  return {};
}

constexpr OperatorRow kDeformRows[] = {
    HostRow("DeformConv", 3, 5, DeformConv),
};

}  // namespace

std::span<const OperatorRow> DeformConvolutionOperators() { return kDeformRows; }

}  // namespace anydml::onnx
