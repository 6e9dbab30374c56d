// Window functions of signal processing, and sampling at given positions, on the host, because DirectML has
// no such operators.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/host/host_numbers.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// HannWindow, HammingWindow, BlackmanWindow
Status Window(HostCall& call) {
  const std::vector<int64_t> given = ToInts(call.In(0));
  if (given.size() != 1 || given[0] < 0) return InvalidArgument("size is no number");
  if (given[0] > kMaxHostElements) return Unsupported("a long window on the host");
  const std::string& type = call.proto().type;
  const int64_t size = given[0];
  const auto period = static_cast<double>(call.Int("periodic", 1) != 0 ? size : size - 1);
  const bool blackman = type == "BlackmanWindow";
  const double first = type == "HannWindow" ? 0.5 : blackman ? 0.42 : 25.0 / 46;
  const double second = blackman ? 0.5 : 1 - first;
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = period > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / period : 0;
    values.push_back(first - second * std::cos(angle) + (blackman ? 0.08 * std::cos(2 * angle) : 0));
  }
  call.outputs[0] = FromDoubles(static_cast<ElementType>(call.Int("output_datatype", 1)), {size}, values);
  return call.outputs[0].type == ElementType::kUndefined ? Unsupported("this type") : Status();
}

// One coordinate, reflected into the range of the padding as often as needed.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return 0;
  double distance = std::fmod(std::abs(x - low), 2 * range);
  if (distance > range) distance = 2 * range - distance;
  return low + distance;
}

// The weights of the four neighbours of a position between the second and the third (a = -0.75).
void CubicWeights(double t, double (&w)[4]) {
  constexpr double kA = -0.75;
  const auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  w[0] = far(1 + t);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

// The neighbours of a position along one dimension.
struct Taps {
  int count = 0;
  int64_t index[4];  // -1: outside, where everything is 0
  double weight[4];
};

struct Sampler {
  bool align, border, reflect, nearest, cubic;

  double Unnormalized(double place, int64_t size) const {
    const auto n = static_cast<double>(size);
    return align ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2;
  }
  double Inside(double x, int64_t size) const {
    const auto n = static_cast<double>(size);
    if (reflect) x = align ? Reflect(x, 0, n - 1) : Reflect(x, -0.5, n - 0.5);
    return border || reflect ? std::clamp(x, 0.0, n - 1) : x;
  }
  Taps Around(double place, int64_t size) const {
    double x = Unnormalized(place, size);
    // Positions are first moved inside and then interpolated, except for cubic ones.
    if (!cubic) x = Inside(x, size);
    double first = nearest ? std::nearbyint(x) : std::floor(x);
    Taps taps;
    taps.count = nearest ? 1 : cubic ? 4 : 2;
    taps.weight[0] = nearest ? 1 : 1 - (x - first);
    taps.weight[1] = x - first;
    if (cubic) CubicWeights(x - first--, taps.weight);
    for (int i = 0; i < taps.count; ++i) {
      const double at = Inside(first + i, size);
      taps.index[i] = at >= 0 && at < static_cast<double>(size) ? static_cast<int64_t>(at) : -1;
    }
    return taps;
  }
};

// The sum over the neighbours along all dimensions, the first of which is the slowest.
double Sample(const double* values, std::span<const Taps> taps, std::span<const int64_t> sizes,
              int64_t before) {
  double sum = 0;
  for (int i = 0; i < taps[0].count; ++i) {
    if (taps[0].index[i] < 0) continue;
    const int64_t at = before * sizes[0] + taps[0].index[i];
    sum += taps[0].weight[i] *
           (taps.size() == 1 ? values[at] : Sample(values, taps.subspan(1), sizes.subspan(1), at));
  }
  return sum;
}

constexpr size_t kMostSampledRank = 8;

// X {N, C, sizes}, grid {N, sizes, number of sizes}: positions from -1 to 1, the last dimension's first.
Status GridSample(HostCall& call) {
  const Shape &x_shape = call.In(0).shape, &g_shape = call.In(1).shape;
  const size_t rank = x_shape.size();
  if (rank < 3 || g_shape.size() != rank || g_shape.back() != static_cast<int64_t>(rank) - 2 ||
      g_shape[0] != x_shape[0])
    return InvalidArgument("grid ", ShapeToString(g_shape), " for X ", ShapeToString(x_shape));
  // Each dimension has two or four neighbours, of which all products are formed.
  if (rank > kMostSampledRank)
    return Unsupported("rank ", rank, "; up to ", kMostSampledRank, " are allowed");
  if (!IsFloat(call.In(0).type) || !IsFloat(call.In(1).type)) return Unsupported("this type on the host");
  std::string mode, padding;  // names with "bi" are version 16's
  ANYDML_RETURN_IF_ERROR(call.OneOf("mode", {"linear", "nearest", "cubic", "bilinear", "bicubic"}, &mode));
  ANYDML_RETURN_IF_ERROR(call.OneOf("padding_mode", {"zeros", "border", "reflection"}, &padding));
  Shape shape = {x_shape[0], x_shape[1]};
  shape.insert(shape.end(), g_shape.begin() + 1, g_shape.end() - 1);
  const std::optional<int64_t> count = ElementCount(shape);
  if (!count || *count > (int64_t{1} << 28)) return Unsupported("a large result on the host");
  const std::span<const int64_t> sizes = std::span(x_shape).subspan(2);
  const int64_t plane = ElementCount(sizes).value_or(0);
  if (plane < 1) return InvalidArgument("X ", ShapeToString(x_shape), " has no elements");
  const std::vector<double> values = ToDoubles(call.In(0)), grid = ToDoubles(call.In(1));
  const Sampler sampler{call.Int("align_corners", 0) != 0, padding == "border", padding == "reflection",
                        mode == "nearest", mode == "bicubic" || mode == "cubic"};
  std::vector<double> result(static_cast<size_t>(*count));
  const int64_t channels = shape[1], places = ElementCount(std::span(shape).subspan(2)).value_or(0);
  std::vector<Taps> taps(sizes.size());
  for (int64_t i = 0; i < shape[0] * places; ++i) {
    const double* const place = grid.data() + i * static_cast<int64_t>(sizes.size());
    for (size_t d = 0; d < sizes.size(); ++d) taps[d] = sampler.Around(place[sizes.size() - 1 - d], sizes[d]);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t of = i / places * channels + c;
      result[static_cast<size_t>(of * places + i % places)] =
          Sample(values.data() + of * plane, taps, sizes, 0);
    }
  }
  call.outputs[0] = FromDoubles(call.In(0).type, shape, result);
  return {};
}

// Of matrices, by elimination with partial pivoting.
double Determinant(std::vector<double> m, size_t n) {
  double product = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) {
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    }
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      for (size_t j = 0; j < n; ++j) std::swap(m[k * n + j], m[pivot * n + j]);
      product = -product;
    }
    product *= m[k * n + k];
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / m[k * n + k];
      for (size_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return product;
}

Status Det(HostCall& call) {
  const Tensor& x = call.In(0);
  const size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2])
    return InvalidArgument(ShapeToString(x.shape), " are no square matrices");
  if (!IsFloat(x.type) || x.shape.back() > 1024) return Unsupported("this type or size on the host");
  const std::vector<double> values = ToDoubles(x);
  const auto n = static_cast<size_t>(x.shape.back());
  const Shape shape(x.shape.begin(), x.shape.end() - 2);
  if (ElementCount(shape).value_or(0) > host::kMostHostNumbers) return Unsupported("so many on the host");
  std::vector<double> result;
  for (int64_t i = 0; i < ElementCount(shape).value_or(0); ++i) {
    const auto at = values.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(i) * n * n);
    result.push_back(Determinant({at, at + static_cast<ptrdiff_t>(n * n)}, n));
  }
  call.outputs[0] = FromDoubles(x.type, shape, result);
  return {};
}

constexpr OperatorRow kSignalRows[] = {
    HostRow("HannWindow", 1, 1, Window),
    HostRow("HammingWindow", 1, 1, Window),
    HostRow("BlackmanWindow", 1, 1, Window),
    HostRow("GridSample", 2, 2, GridSample),
    HostRow("Det", 1, 1, Det),
};

}  // namespace

std::span<const OperatorRow> SignalOperators() { return kSignalRows; }

}  // namespace anydml::onnx
