#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

#include "onnx/lower/compose.h"
#include "onnx/lower/resize_weights.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

struct Resampling {
  DML_INTERPOLATION_MODE mode = DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR;
  DML_AXIS_DIRECTION rounding = DML_AXIS_DIRECTION_DECREASING;
  std::string coordinates = "half_pixel";
  std::vector<double> scales;
  Shape shape;
  std::vector<uint32_t> axes;  // that are named
  bool antialias = false;

  // Version 10 takes the next higher element if an axis becomes shorter, otherwise the lower one.
  bool shrinks() const {
    return std::any_of(scales.begin(), scales.end(), [](double scale) { return scale < 1; });
  }
  bool grows() const {
    return std::any_of(scales.begin(), scales.end(), [](double scale) { return scale > 1; });
  }
};

// RESAMPLE uses x_in = (x_out - output) / scale - input.
struct Mapping {
  float scale = 1, input = 0, output = 0;
};

Status MappingOf(const Resampling& r, int64_t in, int64_t out, double scale, Mapping* m) {
  constexpr float kToZero = FLT_MAX;  // every position becomes 0
  m->scale = static_cast<float>(scale);
  const std::string& mode = r.coordinates;
  if (in == out && scale == 1) {
    *m = {};
  } else if (mode == "half_pixel" || (mode == "pytorch_half_pixel" && out > 1)) {
    m->input = 0.5f;
    m->output = -0.5f;
  } else if (mode == "pytorch_half_pixel") {
    m->scale = kToZero;
  } else if (mode == "align_corners") {
    // The length before rounding, as in ONNX.
    const double length = scale * static_cast<double>(in);
    m->scale = out == 1 || in == 1 ? kToZero : static_cast<float>((length - 1) / static_cast<double>(in - 1));
  } else if (mode == "tf_half_pixel_for_nn") {
    m->output = -0.5f;
  } else if (mode == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(out) / (scale * static_cast<double>(in));
    m->input = static_cast<float>(0.5 - static_cast<double>(in) / 2 * (1 - adjustment));
    m->output = -0.5f;
  } else if (mode != "asymmetric") {
    return Unsupported("coordinate_transformation_mode ", mode.substr(0, 40));
  }
  return {};
}

Status Resample(Lowering& n, const Resampling& r, float nearest_shift) {
  const size_t rank = r.shape.size();
  // Unchanged leading dimensions count as one, since RESAMPLE has up to four.
  size_t same = 0;
  while (same < rank && n.shape(0)[same] == r.shape[same] && r.scales[same] == 1) ++same;
  const size_t merged = rank > 4 ? std::min(same, rank - 3) : 0;
  const auto merge = [&](const Shape& shape) {
    Shape result(shape.begin() + static_cast<int64_t>(merged), shape.end());
    if (merged > 0) result.insert(result.begin(), ElementCount(std::span(shape).first(merged)).value_or(0));
    return result;
  };
  std::vector<FLOAT> scales, inputs, outputs;
  if (merged > 0) scales.push_back(1), inputs.push_back(0), outputs.push_back(0);
  for (size_t i = merged; i < rank; ++i) {
    Mapping m;
    ANYDML_RETURN_IF_ERROR(MappingOf(r, n.shape(0)[i], r.shape[i], r.scales[i], &m));
    const bool still = m.scale == 1 && m.input == 0 && m.output == 0;
    scales.push_back(m.scale);
    inputs.push_back(still ? 0 : m.input + nearest_shift);
    outputs.push_back(m.output);
  }
  const View x = Reshaped(n.In(0), merge(n.shape(0)));
  View y = n.New(x.type, merge(r.shape));
  const auto count = static_cast<UINT>(scales.size());
  // RESAMPLE2's fields, then those that need a newer feature level.
  const DML_RESAMPLE3_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y), r.mode,        r.rounding,
                                         count,           scales.data(),     inputs.data(), outputs.data(),
                                         r.antialias};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(r.antialias ? DML_OPERATOR_RESAMPLE3 : DML_OPERATOR_RESAMPLE2, desc));
  n.Return(0, y, n.type(0), r.shape);
  return {};
}

Status ReadMode(const NodeFacts& n, Resampling* r, float* nearest_shift) {
  const std::string mode = n.Text("mode", "nearest");
  if (mode == "linear" || mode == "bilinear") {
    r->mode = DML_INTERPOLATION_MODE_LINEAR;
    return {};
  }
  if (mode != "nearest") return Unsupported("mode ", mode.substr(0, 40));
  const bool old = n.version() < 11;
  const std::string rounding =
      old ? (r->shrinks() ? "ceil" : "floor") : n.Text("nearest_mode", "round_prefer_floor");
  if (rounding == "round_prefer_floor") {
    r->rounding = DML_AXIS_DIRECTION_INCREASING;
    *nearest_shift = 0.5f;
  } else if (rounding == "round_prefer_ceil") {
    *nearest_shift = -0.5f;
  } else if (rounding == "ceil") {
    r->rounding = DML_AXIS_DIRECTION_INCREASING;
  } else if (rounding != "floor") {
    return Unsupported("nearest_mode ", rounding.substr(0, 40));
  }
  return {};
}

// Sizes from scales, or the reverse, for the named axes.
Status ReadSizes(const Lowering& n, const std::vector<double>& scales, const std::vector<int64_t>& sizes,
                 Resampling* r) {
  const size_t rank = n.rank(0);
  std::vector<uint32_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0u);
  if (n.HasAttribute("axes")) {
    axes.clear();
    for (const int64_t axis : n.Ints("axes"))
      ANYDML_RETURN_IF_ERROR(ResolveAxis(axis, rank, &axes.emplace_back()));
  }
  if ((scales.empty() ? sizes.size() : scales.size()) != axes.size()) {
    return InvalidArgument("there are ", scales.size(), " scales and ", sizes.size(), " sizes for ",
                           axes.size(), " dimensions");
  }
  if (std::vector<uint32_t> sorted = axes; std::sort(sorted.begin(), sorted.end()),
                                           std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return InvalidArgument("an axis is given twice");
  r->axes = axes;
  r->shape = n.shape(0);
  r->scales.assign(rank, 1);
  double ratio = 0;
  std::string policy;
  ANYDML_RETURN_IF_ERROR(
      n.OneOf("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}, &policy));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto in = static_cast<double>(n.shape(0)[axes[i]]);
    const double scale = scales.empty() ? static_cast<double>(sizes[i]) / in : scales[i];
    if (!(scale > 0) || !(scale * in < 0x1p32)) return InvalidArgument("a scale of ", scale);
    r->scales[axes[i]] = scale;
    // As ONNX infers it: 5 * 2.6 is 13, which it is not in double precision.
    r->shape[axes[i]] =
        scales.empty() ? sizes[i]
                       : static_cast<int64_t>(std::floor(static_cast<float>(in) * static_cast<float>(scale)));
    if (i == 0 || (policy == "not_larger" ? scale < ratio : scale > ratio)) ratio = scale;
  }
  if (scales.empty() && policy != "stretch") {
    for (const uint32_t axis : axes) {
      r->scales[axis] = ratio;
      r->shape[axis] = static_cast<int64_t>(std::floor(ratio * static_cast<double>(n.shape(0)[axis]) + 0.5));
    }
  }
  return {};
}

// Weights of one dimension.
bool MatrixFits(int64_t in, int64_t out) {
  constexpr int64_t kMostWeights = int64_t{1} << 26;
  return in > 0 && out > 0 && in <= kMostWeights / out;
}

bool MatricesFit(const Shape& in, const Resampling& r) {
  return std::all_of(r.axes.begin(), r.axes.end(), [&](uint32_t d) {
    return (in[d] == r.shape[d] && r.scales[d] == 1) || MatrixFits(in[d], r.shape[d]);
  });
}

// y = weights * x along one dimension.
Status ResizeAlong(Lowering& n, const ResizeMode& mode, const ResizeAxis& axis, size_t dimension, View* x,
                   std::vector<int64_t>* outside) {
  if (!MatrixFits(axis.in, axis.out))
    return Unsupported("from ", axis.in, " to ", axis.out, " elements in this mode");
  std::vector<double> numbers;
  ANYDML_RETURN_IF_ERROR(ResizeWeights(mode, axis, &numbers, outside));
  const Shape shape = ShapeOf(*x);
  const int64_t outer = ElementCount(std::span(shape).first(dimension)).value_or(0),
                inner = ElementCount(std::span(shape).subspan(dimension + 1)).value_or(0);
  const ElementType type = n.type(0);
  const View matrix = n.Constant(FromDoubles(type, {axis.out, axis.in}, numbers));
  Shape result = shape;
  result[dimension] = axis.out;
  const bool last = inner == 1;  // one product with the transposed matrix
  const View a =
      last ? Reshaped(*x, Shape{outer, axis.in}) : Broadcast(matrix, Shape{outer, axis.out, axis.in});
  const View b = last ? matrix : Reshaped(*x, Shape{outer, axis.in, inner});
  View y = n.New(x->type, last ? Shape{outer, axis.out} : Shape{outer, axis.out, inner});
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                    n.graph().In(b),
                                    n.graph().In(nullptr),
                                    n.graph().Out(&y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    last ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
                                    1,
                                    0,
                                    nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  *x = Reshaped(y, result);
  return {};
}

// One dimension after the other, by matrices.
Status ResizeByMatrices(Lowering& n, const Resampling& r) {
  ResizeMode mode;
  mode.mode = n.Text("mode", "nearest");
  mode.rounding = n.Text("nearest_mode", "round_prefer_floor");
  mode.coordinates = r.coordinates;
  mode.cubic_a = n.Float("cubic_coeff_a", -0.75f);
  mode.exclude_outside = n.Int("exclude_outside", 0) != 0;
  mode.antialias = r.antialias;
  const bool crops = r.coordinates == "tf_crop_and_resize";
  const size_t rank = r.shape.size();
  const std::vector<uint32_t>& axes = r.axes;
  const std::vector<double> roi = crops ? n.HostDoubles(1) : std::vector<double>();
  if (crops && roi.size() != 2 * axes.size())
    return InvalidArgument("roi has ", roi.size(), " elements; ", 2 * axes.size(), " are needed");
  View x = n.In(0), fill;
  if (!IsFloat(n.type(0))) return Unsupported("this mode of ", Name(n.type(0)));
  std::vector<std::pair<size_t, std::vector<int64_t>>> outside;
  for (size_t i = 0; i < axes.size(); ++i) {
    const uint32_t d = axes[i];
    ResizeAxis axis{n.shape(0)[d], r.shape[d], r.scales[d], 0, 1};
    if (crops) axis.start = roi[i], axis.end = roi[i + axes.size()];
    if (axis.in == axis.out && axis.scale == 1 && axis.start == 0 && axis.end == 1) continue;
    if (n.version() < 11) mode.rounding = axis.scale < 1 ? "ceil" : "floor";
    std::vector<int64_t> flags;
    ANYDML_RETURN_IF_ERROR(ResizeAlong(n, mode, axis, d, &x, &flags));
    if (crops) outside.emplace_back(d, std::move(flags));
  }
  if (!outside.empty())
    ANYDML_RETURN_IF_ERROR(Fill(n, x.type, {1}, n.Float("extrapolation_value", 0), &fill));
  for (const auto& [d, flags] : outside) {
    if (std::find(flags.begin(), flags.end(), 1) == flags.end()) continue;
    Shape along(rank, 1);
    along[d] = r.shape[d];
    const View mask = n.Constant(FromInts(ElementType::kBool, along, flags));
    ANYDML_RETURN_IF_ERROR(If(n, Broadcast(mask, r.shape), fill, x, &x));
  }
  ANYDML_RETURN_IF_ERROR(Pack(n, x, &x));
  x.source == n.In(0).source ? n.Forward(0, 0, r.shape) : n.Return(0, x, n.type(0), r.shape);
  return {};
}

// X, roi, scales, sizes; version 10: X, scales.
Status Resize(Lowering& n) {
  const bool old = n.version() < 11;
  Resampling r;
  float shift = 0;
  ANYDML_RETURN_IF_ERROR(
      ReadSizes(n, n.HostDoubles(old ? 1 : 2), old ? std::vector<int64_t>() : n.HostInts(3), &r));
  r.coordinates = n.Text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  r.antialias = n.Int("antialias", 0) != 0;
  // DirectML widens kernels only if a result is less than half as large, and treats edges differently; that
  // is accurate enough if a matrix would be too large.
  const std::string mode = n.Text("mode", "nearest");
  if (mode == "cubic" || r.coordinates == "tf_crop_and_resize" ||
      (old && mode == "nearest" && r.shrinks() && r.grows()) ||
      (r.antialias && mode == "linear" && IsFloat(n.type(0)) &&
       (n.Int("exclude_outside", 0) != 0 || MatricesFit(n.shape(0), r))))
    return ResizeByMatrices(n, r);
  ANYDML_RETURN_IF_ERROR(ReadMode(n, &r, &shift));
  return Resample(n, r, shift);
}

Status Upsample(Lowering& n) {
  Resampling r;
  float shift = 0;
  const std::vector<float> given = n.Floats("scales");
  ANYDML_RETURN_IF_ERROR(ReadSizes(
      n, n.version() < 9 ? std::vector<double>(given.begin(), given.end()) : n.HostDoubles(1), {}, &r));
  ANYDML_RETURN_IF_ERROR(ReadMode(n, &r, &shift));
  r.coordinates = "asymmetric";
  return Resample(n, r, shift);
}

constexpr OperatorRow kResizeRows[] = {
    {kOnnx, "Resize", 1, 4, 0b1110, Resize, nullptr},
    {kOnnx, "Upsample", 1, 2, 2, Upsample, nullptr},
};

}  // namespace

std::span<const OperatorRow> ResizeOperators() { return kResizeRows; }

}  // namespace anydml::onnx
