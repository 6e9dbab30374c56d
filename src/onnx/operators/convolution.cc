#include "onnx/lower/compose.h"
#include "onnx/lower/weight_zero_point.h"
#include "onnx/lower/windows.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// Shared by all convolutions.
struct Convolution {
  Windows windows;
  Shape shape;  // of the output
  UINT groups = 1;
};

Status Resolve(Lowering& n, const Shape& x, const Shape& w, bool transposed, Convolution* out) {
  if (x.size() < 3 || w.size() != x.size()) {
    return InvalidArgument("input ", ShapeToString(x), " and filter ", ShapeToString(w));
  }
  const int64_t groups = n.Int("group", 1);
  const int64_t channels = transposed                        ? w[0]
                           : groups > 0 && w[1] <= INT32_MAX ? w[1] * std::min<int64_t>(groups, INT32_MAX)
                                                             : 0;
  if (groups < 1 || groups > INT32_MAX || channels != x[1]) {
    return InvalidArgument("group is ", groups, " for input ", ShapeToString(x), " and filter ",
                           ShapeToString(w));
  }
  const std::vector<int64_t> kernel(w.begin() + 2, w.end()), given = n.Ints("kernel_shape");
  if (!given.empty() && given != kernel)
    return InvalidArgument("kernel_shape is ", ShapeToString(given), "; the filter's sizes are ",
                           ShapeToString(kernel));
  const std::span<const int64_t> spatial = std::span(x).subspan(2);
  ANYDML_RETURN_IF_ERROR(transposed ? ResolveTransposed(n, spatial, kernel, &out->windows)
                                    : ResolveWindows(n, spatial, kernel, &out->windows));
  out->groups = static_cast<UINT>(groups);
  out->shape = {x[0], transposed ? w[1] * groups : w[0]};
  out->shape.insert(out->shape.end(), out->windows.output.begin(), out->windows.output.end());
  out->windows = AtLeastTwo(std::move(out->windows));
  return {};
}

View OutputOf(Lowering& n, const Convolution& convolution, DataType type) {
  return WithHeight(n.New(type, convolution.shape));
}

Status Convolve(Lowering& n, DML_CONVOLUTION_DIRECTION direction, const Convolution& c, const View& x,
                const View& w, View* y) {
  View bias;
  if (n.Has(2)) bias = AlongAxis(n.In(2), x.rank(), 1);
  const std::vector<UINT> zeros(c.windows.rank(), 0);
  const DML_CONVOLUTION_OPERATOR_DESC desc{n.graph().In(x),
                                           n.graph().In(w),
                                           n.graph().In(n.Has(2) ? &bias : nullptr),
                                           n.graph().Out(y),
                                           DML_CONVOLUTION_MODE_CROSS_CORRELATION,
                                           direction,
                                           c.windows.rank(),
                                           c.windows.strides.data(),
                                           c.windows.dilations.data(),
                                           c.windows.begin.data(),
                                           c.windows.end.data(),
                                           zeros.data(),
                                           c.groups,
                                           nullptr};
  return n.graph().Add(DML_OPERATOR_CONVOLUTION, desc);
}

Status Convolve(Lowering& n, DML_CONVOLUTION_DIRECTION direction, const Convolution& c, View* y) {
  *y = OutputOf(n, c, n.dml_type(0));
  return Convolve(n, direction, c, WithHeight(n.In(0)), WithHeight(n.In(1)), y);
}

// Whether each output of a transposed convolution has one tap, because filters do not overlap.
bool HasOneTap(const Lowering& n, const Convolution& c) {
  const Shape &x = n.shape(0), &w = n.shape(1);
  // A bias is added to sums before they are rounded.
  if (n.Has(2) && n.dml_type(0) == DataType::kFloat16) return false;
  bool one = x.size() == 4 && c.groups == 1 && w[2] * w[3] > 1;
  for (size_t i = 0; one && i < 2; ++i) {
    one = c.windows.strides[i] == w[i + 2] && c.windows.dilations[i] == 1 && c.windows.begin[i] == 0 &&
          c.windows.end[i] == 0 && c.shape[i + 2] == x[i + 2] * w[i + 2];
  }
  return one;
}

// A product with as many rows as the filters have elements; the results are then put side by side.
Status ConvolveOneTap(Lowering& n, const Convolution& c, View* y) {
  const Shape &x = n.shape(0), &w = n.shape(1);
  if (n.Has(2)) ANYDML_RETURN_IF_ERROR(CheckShape(n, 2, "B", {w[1]}));
  const int64_t rows = w[1] * w[2] * w[3];
  const uint32_t swapped[] = {1, 0}, beside[] = {0, 1, 4, 2, 5, 3};
  const View filter = TrailingOnes(Permuted(Reshaped(n.In(1), Shape{w[0], rows}), swapped), 4);
  View product = n.New(n.dml_type(0), {x[0], rows, x[2], x[3]});
  const UINT ones[] = {1, 1}, zeros[] = {0, 0};
  const DML_CONVOLUTION_OPERATOR_DESC desc{n.graph().In(n.In(0)),
                                           n.graph().In(filter),
                                           n.graph().In(nullptr),
                                           n.graph().Out(&product),
                                           DML_CONVOLUTION_MODE_CROSS_CORRELATION,
                                           DML_CONVOLUTION_DIRECTION_FORWARD,
                                           2,
                                           ones,
                                           ones,
                                           zeros,
                                           zeros,
                                           zeros,
                                           1,
                                           nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_CONVOLUTION, desc));
  const View parts = Reshaped(product, Shape{x[0], w[1], w[2], w[3], x[2], x[3]});
  ANYDML_RETURN_IF_ERROR(Pack(n, Permuted(parts, beside), y));
  *y = Reshaped(*y, c.shape);
  return n.Has(2) ? BinaryTo(n, kAdd, *y, AlongAxis(n.In(2), 4, 1), y) : Status();
}

Status ConvTranspose(Lowering& n) {
  Convolution c;
  View y;
  ANYDML_RETURN_IF_ERROR(Resolve(n, n.shape(0), n.shape(1), true, &c));
  ANYDML_RETURN_IF_ERROR(HasOneTap(n, c) ? ConvolveOneTap(n, c, &y)
                                         : Convolve(n, DML_CONVOLUTION_DIRECTION_BACKWARD, c, &y));
  n.Return(0, y, n.type(0), c.shape);
  return {};
}

Status Conv(Lowering& n) {
  Convolution c;
  View y;
  ANYDML_RETURN_IF_ERROR(Resolve(n, n.shape(0), n.shape(1), false, &c));
  ANYDML_RETURN_IF_ERROR(Convolve(n, DML_CONVOLUTION_DIRECTION_FORWARD, c, &y));
  n.Return(0, y, n.type(0), c.shape);
  return {};
}

// X, W, B, and Z, which is added; then an activation.
Status FusedConv(Lowering& n) {
  Convolution c;
  View y;
  ANYDML_RETURN_IF_ERROR(Resolve(n, n.shape(0), n.shape(1), false, &c));
  ANYDML_RETURN_IF_ERROR(Convolve(n, DML_CONVOLUTION_DIRECTION_FORWARD, c, &y));
  if (n.Has(3)) {
    if (n.shape(3) != c.shape) return InvalidArgument("Z ", ShapeToString(n.shape(3)));
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, y, WithHeight(n.In(3)), &y));
  }
  ANYDML_RETURN_IF_ERROR(ActivateNamed(n, n.Text("activation", ""), n.Floats("activation_params"), y, &y));
  n.Return(0, y, n.type(0), c.shape);
  return {};
}

// {N, H, W, C} with filters {M, H, W, C}: expressed by strides.
Status NhwcConv(Lowering& n) {
  if (n.rank(0) != 4 || n.rank(1) != 4) return Unsupported("ranks ", n.rank(0), " and ", n.rank(1));
  const uint32_t to_front[] = {0, 3, 1, 2}, to_back[] = {0, 2, 3, 1};
  const View x = Permuted(n.In(0), to_front), w = Permuted(n.In(1), to_front);
  Convolution c;
  ANYDML_RETURN_IF_ERROR(Resolve(n, ShapeOf(x), ShapeOf(w), false, &c));
  const Shape shape = {c.shape[0], c.shape[2], c.shape[3], c.shape[1]};
  View y = Permuted(n.New(x.type, shape), to_front);
  ANYDML_RETURN_IF_ERROR(Convolve(n, DML_CONVOLUTION_DIRECTION_FORWARD, c, x, w, &y));
  n.Return(0, Permuted(y, to_back), n.type(0), shape);
  return {};
}

// An optional scale or zero point: one number, or one per output channel.
struct Parameter {
  View view;
  const View* use = nullptr;

  Parameter(Lowering& n, size_t input, size_t rank) {
    if (!n.Has(input)) return;
    view = AlongAxis(n.In(input), rank, 1);
    use = &view;
  }
};

Status ConvInteger(Lowering& n) {
  Convolution c;
  ANYDML_RETURN_IF_ERROR(Resolve(n, n.shape(0), n.shape(1), false, &c));
  const View x = WithHeight(n.In(0));
  const View w = WithHeight(n.In(1));
  const Parameter x_zero(n, 2, x.rank());
  const WeightZeroPoint w_zero(n, 1, 3, x.rank(), 1, n.shape(1)[0]);
  View y = OutputOf(n, c, DataType::kInt32);
  const DML_CONVOLUTION_INTEGER_OPERATOR_DESC desc{n.graph().In(x),
                                                   n.graph().In(x_zero.use),
                                                   n.graph().In(w),
                                                   n.graph().In(w_zero.use),
                                                   n.graph().Out(&y),
                                                   c.windows.rank(),
                                                   c.windows.strides.data(),
                                                   c.windows.dilations.data(),
                                                   c.windows.begin.data(),
                                                   c.windows.end.data(),
                                                   c.groups};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_CONVOLUTION_INTEGER, desc));
  n.Return(0, y, ElementType::kInt32, c.shape);
  return {};
}

// x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B
Status QLinearConv(Lowering& n) {
  Convolution c;
  ANYDML_RETURN_IF_ERROR(Resolve(n, n.shape(0), n.shape(3), false, &c));
  const View x = WithHeight(n.In(0));
  const View w = WithHeight(n.In(3));
  const size_t rank = x.rank();
  const Parameter x_scale(n, 1, rank), x_zero(n, 2, rank), w_scale(n, 4, rank), bias(n, 8, rank),
      y_scale(n, 6, rank), y_zero(n, 7, rank);
  const WeightZeroPoint w_zero(n, 3, 5, rank, 1, n.shape(3)[0]);
  View y = OutputOf(n, c, n.dml_type(7));
  const DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC desc{n.graph().In(x),
                                                            n.graph().In(x_scale.use),
                                                            n.graph().In(x_zero.use),
                                                            n.graph().In(w),
                                                            n.graph().In(w_scale.use),
                                                            n.graph().In(w_zero.use),
                                                            n.graph().In(bias.use),
                                                            n.graph().In(y_scale.use),
                                                            n.graph().In(y_zero.use),
                                                            n.graph().Out(&y),
                                                            c.windows.rank(),
                                                            c.windows.strides.data(),
                                                            c.windows.dilations.data(),
                                                            c.windows.begin.data(),
                                                            c.windows.end.data(),
                                                            c.groups};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION, desc));
  n.Return(0, y, n.type(7), c.shape);
  return {};
}

constexpr OperatorRow kConvolutionRows[] = {
    {kOnnx, "Conv", 2, 3, 0, Conv, nullptr},
    {kOnnx, "ConvTranspose", 2, 3, 0, ConvTranspose, nullptr},
    {kOnnx, "ConvInteger", 2, 4, 0, ConvInteger, nullptr},
    {kOnnx, "QLinearConv", 8, 9, 0, QLinearConv, nullptr},
    {kMicrosoft, "FusedConv", 2, 4, 0, FusedConv, nullptr},
    {kMicrosoft, "NhwcConv", 2, 3, 0, NhwcConv, nullptr},
};

}  // namespace

std::span<const OperatorRow> ConvolutionOperators() { return kConvolutionRows; }

}  // namespace anydml::onnx
