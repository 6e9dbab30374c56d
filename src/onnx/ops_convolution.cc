#include "onnx/compose.h"
#include "onnx/operators.h"
#include "onnx/windows.h"

namespace anydml::onnx {
namespace {

// What every convolution has in common.
struct Convolution {
  Windows windows;
  Shape shape;  // of the output
  UINT groups = 1;
};

Status Resolve(Lowering& n, size_t filter, bool transposed, Convolution* out) {
  const Shape& x = n.shape(0);
  const Shape& w = n.shape(filter);
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
  std::vector<int64_t> kernel(w.begin() + 2, w.end());
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

Status Convolve(Lowering& n, DML_CONVOLUTION_DIRECTION direction) {
  Convolution c;
  ANYDML_RETURN_IF_ERROR(Resolve(n, 1, direction == DML_CONVOLUTION_DIRECTION_BACKWARD, &c));
  const View x = WithHeight(n.In(0));
  const View w = WithHeight(n.In(1));
  View bias;
  if (n.Has(2)) bias = AlongAxis(n.In(2), x.rank(), 1);
  View y = OutputOf(n, c, x.type);
  const std::vector<UINT> zeros(c.windows.rank(), 0);
  const DML_CONVOLUTION_OPERATOR_DESC desc{n.graph().In(x),
                                           n.graph().In(w),
                                           n.graph().In(n.Has(2) ? &bias : nullptr),
                                           n.graph().Out(&y),
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
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_CONVOLUTION, desc));
  n.Return(0, y, n.type(0), c.shape);
  return {};
}

Status Conv(Lowering& n) { return Convolve(n, DML_CONVOLUTION_DIRECTION_FORWARD); }
Status ConvTranspose(Lowering& n) { return Convolve(n, DML_CONVOLUTION_DIRECTION_BACKWARD); }

// An optional scale or zero point: one number, or one for each output channel.
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
  ANYDML_RETURN_IF_ERROR(Resolve(n, 1, false, &c));
  const View x = WithHeight(n.In(0));
  const View w = WithHeight(n.In(1));
  const Parameter x_zero(n, 2, x.rank()), w_zero(n, 3, x.rank());
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
  ANYDML_RETURN_IF_ERROR(Resolve(n, 3, false, &c));
  const View x = WithHeight(n.In(0));
  const View w = WithHeight(n.In(3));
  const size_t rank = x.rank();
  const Parameter x_scale(n, 1, rank), x_zero(n, 2, rank), w_scale(n, 4, rank), w_zero(n, 5, rank),
      bias(n, 8, rank), y_scale(n, 6, rank), y_zero(n, 7, rank);
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

constexpr OperatorRow kRows[] = {
    {kOnnx, "Conv", 2, 3, 0, Conv, nullptr},
    {kOnnx, "ConvTranspose", 2, 3, 0, ConvTranspose, nullptr},
    {kOnnx, "ConvInteger", 2, 4, 0, ConvInteger, nullptr},
    {kOnnx, "QLinearConv", 8, 9, 0, QLinearConv, nullptr},
};

}  // namespace

std::span<const OperatorRow> ConvolutionOperators() { return kRows; }

}  // namespace anydml::onnx
