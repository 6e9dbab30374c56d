// Windows of signal processing and sampling at given places, on the host: DirectML has nothing like them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/host_numbers.h"
#include "onnx/operators.h"

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

// One dimension of a place: into the range where the padding leaves it, reflected as often as needed.
double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return 0;
  double distance = std::fmod(std::abs(x - low), 2 * range);
  if (distance > range) distance = 2 * range - distance;
  return low + distance;
}

struct Sampler {
  const double* plane;
  int64_t height, width;
  bool align, border, reflect;

  double Unnormalized(double place, int64_t size) const {
    const auto n = static_cast<double>(size);
    return align ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2;
  }
  double Inside(double x, int64_t size) const {
    const auto n = static_cast<double>(size);
    if (reflect) x = align ? Reflect(x, 0, n - 1) : Reflect(x, -0.5, n - 0.5);
    return border || reflect ? std::clamp(x, 0.0, n - 1) : x;
  }
  // 0 outside, unless the padding says something else.
  double At(double y, double x) const {
    y = Inside(y, height);
    x = Inside(x, width);
    if (!(y >= 0 && y < static_cast<double>(height) && x >= 0 && x < static_cast<double>(width))) return 0;
    return plane[static_cast<int64_t>(y) * width + static_cast<int64_t>(x)];
  }
};

// The weights of the four neighbours of a place between the second and the third (a = -0.75).
void CubicWeights(double t, double (&w)[4]) {
  constexpr double kA = -0.75;
  const auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  w[0] = far(1 + t);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

double SampleCubic(const Sampler& s, double y, double x) {
  double wy[4], wx[4], sum = 0;
  const double y0 = std::floor(y), x0 = std::floor(x);
  CubicWeights(y - y0, wy);
  CubicWeights(x - x0, wx);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sum += wy[i] * wx[j] * s.At(y0 - 1 + i, x0 - 1 + j);
  }
  return sum;
}

double SampleLinear(const Sampler& s, double y, double x) {
  const double y0 = std::floor(y), x0 = std::floor(x), v = y - y0, u = x - x0;
  return (1 - v) * ((1 - u) * s.At(y0, x0) + u * s.At(y0, x0 + 1)) +
         v * ((1 - u) * s.At(y0 + 1, x0) + u * s.At(y0 + 1, x0 + 1));
}

// X {N, C, H, W}, grid {N, H', W', 2}: places (x, y) from -1 to 1.
Status GridSample(HostCall& call) {
  const Shape &x_shape = call.In(0).shape, &g_shape = call.In(1).shape;
  if (x_shape.size() != 4) return Unsupported("rank ", x_shape.size());
  if (g_shape.size() != 4 || g_shape[3] != 2 || g_shape[0] != x_shape[0])
    return InvalidArgument("grid ", ShapeToString(g_shape));
  if (!IsFloat(call.In(0).type) || !IsFloat(call.In(1).type)) return Unsupported("this type on the host");
  const std::string mode = call.Text("mode", "linear"), padding = call.Text("padding_mode", "zeros");
  const bool nearest = mode == "nearest", cubic = mode == "bicubic" || mode == "cubic";
  const Shape shape = {x_shape[0], x_shape[1], g_shape[1], g_shape[2]};
  const std::optional<int64_t> count = ElementCount(shape);
  if (!count || *count > (int64_t{1} << 28)) return Unsupported("a large result on the host");
  const std::vector<double> values = ToDoubles(call.In(0)), grid = ToDoubles(call.In(1));
  if (x_shape[2] < 1 || x_shape[3] < 1)
    return InvalidArgument("X ", ShapeToString(x_shape), " has no elements");
  Sampler s{nullptr,
            x_shape[2],
            x_shape[3],
            call.Int("align_corners", 0) != 0,
            padding == "border",
            padding == "reflection"};
  std::vector<double> result;
  result.reserve(static_cast<size_t>(*count));
  const int64_t places = shape[2] * shape[3];
  for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    s.plane = values.data() + plane * s.height * s.width;
    const double* const at = grid.data() + plane / shape[1] * places * 2;
    for (int64_t i = 0; i < places; ++i) {
      double x = s.Unnormalized(at[2 * i], s.width), y = s.Unnormalized(at[2 * i + 1], s.height);
      // Places come in first: what is between two elements is found after that, but for cubic ones.
      if (!cubic) x = s.Inside(x, s.width), y = s.Inside(y, s.height);
      result.push_back(nearest ? s.At(std::nearbyint(y), std::nearbyint(x))
                       : cubic ? SampleCubic(s, y, x)
                               : SampleLinear(s, y, x));
    }
  }
  call.outputs[0] = FromDoubles(call.In(0).type, shape, result);
  return {};
}

// Of matrices, by elimination with the largest pivot.
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
