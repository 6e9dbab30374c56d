// Fourier transforms and related operators, on the host.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "onnx/host/host_numbers.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

using Complex = std::complex<double>;
using Signal = std::vector<Complex>;

// In place, for powers of two; without the factor of the inverse.
void PowerOfTwo(Signal* x, bool inverse) {
  const size_t n = x->size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap((*x)[i], (*x)[j]);
  }
  for (size_t length = 2; length <= n; length *= 2) {
    const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(length);
    for (size_t k = 0; k < length / 2; ++k) {
      const Complex root = std::polar(1.0, step * static_cast<double>(k));
      for (size_t i = k; i < n; i += length) {
        const Complex odd = (*x)[i + length / 2] * root;
        (*x)[i + length / 2] = (*x)[i] - odd;
        (*x)[i] += odd;
      }
    }
  }
}

// Other lengths as a convolution with a chirp (Bluestein).
void Transform(Signal* x, bool inverse) {
  const size_t n = x->size();
  if (n < 2) return;
  if ((n & (n - 1)) == 0) {
    PowerOfTwo(x, inverse);
    return;
  }
  size_t padded = 1;
  while (padded < 2 * n - 1) padded *= 2;
  Signal chirp(n), a(padded), b(padded);
  for (size_t k = 0; k < n; ++k) {
    const auto square = static_cast<double>(k * k % (2 * n));  // reduced, since the angle is periodic
    chirp[k] = std::polar(1.0, (inverse ? 1 : -1) * std::numbers::pi * square / static_cast<double>(n));
    a[k] = (*x)[k] * chirp[k];
    b[k] = std::conj(chirp[k]);
    if (k > 0) b[padded - k] = b[k];
  }
  PowerOfTwo(&a, false);
  PowerOfTwo(&b, false);
  for (size_t k = 0; k < padded; ++k) a[k] *= b[k];
  PowerOfTwo(&a, true);
  for (size_t k = 0; k < n; ++k) (*x)[k] = a[k] * chirp[k] / static_cast<double>(padded);
}

constexpr int64_t kMostPoints = int64_t{1} << 22;  // per transform

// A scalar input, or `otherwise` if it is absent.
Status ScalarOf(const HostCall& call, size_t i, int64_t otherwise, int64_t* out) {
  *out = otherwise;
  if (!call.Has(i)) return {};
  const std::vector<int64_t> values = ToInts(call.In(i));
  if (values.size() != 1) return InvalidArgument("input ", i, " is no number");
  *out = values[0];
  return {};
}

// {..., n, ..., 1 or 2}; version 17: input, dft_length; from 20 on also an axis.
Status Dft(HostCall& call) {
  const Tensor& x = call.In(0);
  const Shape& shape = x.shape;
  if (shape.size() < 2 || (shape.back() != 1 && shape.back() != 2) || !IsFloat(x.type))
    return InvalidArgument("input ", ShapeToString(shape), " of ", Name(x.type));
  const bool inverse = call.Int("inverse", 0) != 0, half = call.Int("onesided", 0) != 0;
  int64_t given_axis = call.Int("axis", 1), length = 0;
  if (call.version() >= 20) ANYDML_RETURN_IF_ERROR(ScalarOf(call, 2, -2, &given_axis));
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(given_axis, shape.size(), &axis));
  if (axis + 1 == shape.size()) return InvalidArgument("axis is the one of real and imaginary parts");
  // The inverse of a one-sided spectrum of a real signal: the other half is its mirror image, and the result
  // is real.
  const bool mirrored = inverse && half;
  ANYDML_RETURN_IF_ERROR(ScalarOf(call, 1, mirrored ? 2 * (shape[axis] - 1) : shape[axis], &length));
  Shape result = shape;
  result.back() = mirrored ? 1 : 2;
  result[axis] = half && !inverse ? length / 2 + 1 : length;
  const std::optional<int64_t> count = ElementCount(result);
  if (length < 1 || length > kMostPoints || !count || *count > 2 * host::kMostHostNumbers ||
      x.count() > 2 * host::kMostHostNumbers)
    return Unsupported("a transform of ", length, " points to ", ShapeToString(result), " on the host");
  const std::vector<double> values = ToDoubles(x);
  std::vector<double> out(static_cast<size_t>(*count));
  const auto parts = static_cast<size_t>(shape.back()), size = static_cast<size_t>(shape[axis]);
  const size_t inner =
      static_cast<size_t>(ElementCount(std::span(shape).subspan(axis + 1)).value_or(0)) / parts;
  const auto outer = static_cast<size_t>(ElementCount(std::span(shape).first(axis)).value_or(0));
  const auto bins = static_cast<size_t>(result[axis]);
  Signal line;
  for (size_t i = 0; i < outer * inner; ++i) {
    const size_t first = i / inner * size * inner + i % inner;
    line.assign(static_cast<size_t>(length), 0);
    for (size_t k = 0; k < std::min(size, mirrored ? line.size() / 2 + 1 : line.size()); ++k) {
      const double* const at = values.data() + (first + k * inner) * parts;
      line[k] = {at[0], parts == 2 ? at[1] : 0};
    }
    for (size_t k = 0; mirrored && k <= line.size() / 2; ++k) {
      const size_t other = (line.size() - k) % line.size();
      if (other == k) line[k] = line[k].real();
      line[other] = std::conj(line[k]);
    }
    Transform(&line, inverse);
    for (size_t k = 0; k < bins; ++k) {
      double* const at = out.data() + (i / inner * bins * inner + i % inner + k * inner) * (mirrored ? 1 : 2);
      const double factor = inverse ? 1 / static_cast<double>(length) : 1;
      at[0] = line[k].real() * factor;
      if (!mirrored) at[1] = line[k].imag() * factor;
    }
  }
  call.outputs[0] = FromDoubles(x.type, result, out);
  return {};
}

// signal {batch, length, 1 or 2}, frame_step, window, frame_length
Status Stft(HostCall& call) {
  const Tensor& x = call.In(0);
  const Shape shape = x.shape.size() == 2 ? Shape{x.shape[0], x.shape[1], 1} : x.shape;
  if (shape.size() != 3 || (shape[2] != 1 && shape[2] != 2) || !IsFloat(x.type))
    return InvalidArgument("signal ", ShapeToString(x.shape), " of ", Name(x.type));
  int64_t step = 0, length = 0;
  std::vector<double> window;
  if (call.Has(2)) window = ToDoubles(call.In(2));
  ANYDML_RETURN_IF_ERROR(ScalarOf(call, 1, 0, &step));
  ANYDML_RETURN_IF_ERROR(ScalarOf(call, 3, static_cast<int64_t>(window.size()), &length));
  if (step < 1 || length < 1 || length > kMostPoints || length > shape[1] ||
      (call.Has(2) && static_cast<int64_t>(window.size()) != length))
    return InvalidArgument("frames of ", length, " every ", step, " of ", shape[1]);
  const bool half = call.Int("onesided", 1) != 0;
  const int64_t frames = (shape[1] - length) / step + 1, bins = half ? length / 2 + 1 : length;
  const Shape result = {shape[0], frames, bins, 2};
  const std::optional<int64_t> count = ElementCount(result);
  if (!count || *count > 2 * host::kMostHostNumbers || x.count() > 2 * host::kMostHostNumbers)
    return Unsupported("a result of ", ShapeToString(result), " on the host");
  const std::vector<double> values = ToDoubles(x);
  std::vector<double> out;
  out.reserve(static_cast<size_t>(*count));
  const auto parts = static_cast<size_t>(shape[2]);
  Signal line(static_cast<size_t>(length));
  for (int64_t frame = 0; frame < shape[0] * frames; ++frame) {
    const int64_t first = frame / frames * shape[1] + frame % frames * step;
    for (size_t k = 0; k < line.size(); ++k) {
      const double* const at = values.data() + (static_cast<size_t>(first) + k) * parts;
      line[k] = Complex{at[0], parts == 2 ? at[1] : 0} * (window.empty() ? 1 : window[k]);
    }
    Transform(&line, false);
    for (int64_t k = 0; k < bins; ++k) {
      out.push_back(line[static_cast<size_t>(k)].real());
      out.push_back(line[static_cast<size_t>(k)].imag());
    }
  }
  call.outputs[0] = FromDoubles(x.type, result, out);
  return {};
}

// num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz
Status MelWeightMatrix(HostCall& call) {
  double n[5];
  for (size_t i = 0; i < 5; ++i) {
    const std::vector<double> values = ToDoubles(call.In(i));
    if (values.size() != 1 || !std::isfinite(values[0])) return InvalidArgument("input ", i, " is no number");
    n[i] = values[0];
  }
  const Shape shape = {static_cast<int64_t>(std::clamp(n[1], 0.0, 0x1p40)) / 2 + 1,
                       static_cast<int64_t>(std::clamp(n[0], 0.0, 0x1p40))};
  const std::optional<int64_t> count = ElementCount(shape);
  if (!count || *count > kMaxHostElements * 64) return Unsupported("a matrix of ", ShapeToString(shape));
  if (n[2] <= 0 || n[3] < 0 || n[4] < n[3]) return InvalidArgument("such frequencies");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(n[3]), step = (mel(n[4]) - low) / (n[0] + 2);
  const auto edge = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double bin = std::floor((n[1] + 1) * hertz / n[2]);
    return static_cast<int64_t>(std::clamp(bin, 0.0, 0x1p40));
  };
  std::vector<double> out(static_cast<size_t>(*count), 0);
  const auto set = [&](int64_t bin, int64_t i, double value) {
    if (bin < shape[0]) out[static_cast<size_t>(bin * shape[1] + i)] = value;
  };
  for (int64_t i = 0; i < shape[1]; ++i) {
    const int64_t left = edge(i), center = edge(i + 1), right = edge(i + 2);
    if (center == left) set(center, i, 1);
    for (int64_t j = left; center > left && j <= std::min(center, shape[0]); ++j)
      set(j, i, static_cast<double>(j - left) / static_cast<double>(center - left));
    for (int64_t j = center; j < std::min(right, shape[0]); ++j)
      set(j, i, static_cast<double>(right - j) / static_cast<double>(right - center));
  }
  call.outputs[0] = FromDoubles(static_cast<ElementType>(call.Int("output_datatype", 1)), shape, out);
  return call.outputs[0].type == ElementType::kUndefined ? Unsupported("this type") : Status();
}

constexpr OperatorRow kSpectrumRows[] = {
    HostRow("DFT", 1, 3, Dft),
    HostRow("STFT", 2, 4, Stft),
    HostRow("MelWeightMatrix", 5, 5, MelWeightMatrix),
};

}  // namespace

std::span<const OperatorRow> SpectrumOperators() { return kSpectrumRows; }

}  // namespace anydml::onnx
