#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status Finish(Lowering& n, float alpha = 0, float beta = 0) {
  View y;
  ANYDML_RETURN_IF_ERROR(Activate(n, TypeOf(n), n.In(0), &y, alpha, beta));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status Plain(Lowering& n) { return Finish(n); }
Status LeakyRelu(Lowering& n) { return Finish(n, n.Float("alpha", 0.01f)); }
Status AlphaOne(Lowering& n) { return Finish(n, n.Float("alpha", 1)); }  // Elu, Celu, ThresholdedRelu, Swish
Status Softplus(Lowering& n) { return Finish(n, 1); }
Status HardSigmoid(Lowering& n) { return Finish(n, n.Float("alpha", 0.2f), n.Float("beta", 0.5f)); }
Status HardSwish(Lowering& n) { return Finish(n, 1.0f / 6, 0.5f); }
Status Selu(Lowering& n) { return Finish(n, n.Float("alpha", 1.67326319f), n.Float("gamma", 1.05070102f)); }
Status AlphaBeta(Lowering& n) { return Finish(n, n.Float("alpha", 1), n.Float("beta", 1)); }
Status Shrink(Lowering& n) { return Finish(n, n.Float("bias", 0), n.Float("lambd", 0.5f)); }
Status QuickGelu(Lowering& n) { return Finish(n, n.Float("alpha", 1.702f)); }

// DirectML's takes floating-point numbers only.
Status Relu(Lowering& n) {
  if (IsFloat(n.type(0))) return Plain(n);
  View zero, y;
  ANYDML_RETURN_IF_ERROR(Fill(n, n.dml_type(0), {1}, 0, &zero));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MAX, n.In(0), zero, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status PRelu(Lowering& n) {
  const View x = n.In(0);
  View slope = n.In(1);
  // Before version 7 a one-dimensional slope applies along the channels.
  if (n.version() < 7 && n.rank(1) == 1 && n.rank(0) > 1) slope = AlongAxis(slope, n.rank(0), 1);
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(0), slope.rank() == 1 ? n.shape(1) : ShapeOf(slope), &shape));
  if (shape != n.shape(0))
    return InvalidArgument("slope ", ShapeToString(n.shape(1)), " does not fit the input");
  slope = Broadcast(slope, n.shape(0));
  View y = n.New(x.type, n.shape(0));
  const DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(slope),
                                                             n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

// x * tanh(softplus(x))
Status Mish(Lowering& n) {
  const View x = n.In(0);
  View a, b, y;
  ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_SOFTPLUS, x, &a, 1));
  ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_TANH, a, &b));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, b, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
Status TanhGelu(Lowering& n, const View& x, View* y) {
  constexpr float kRoot = 0.7978845608f;
  View square, factor, inner, tanh, half;
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, x, &square));
  ANYDML_RETURN_IF_ERROR(
      Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, square, &factor, 0.044715f * kRoot, kRoot));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, factor, &inner));
  ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_TANH, inner, &tanh));
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, tanh, &half, 0.5f, 0.5f));
  return Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, x, half, y);
}

Status GeluOf(Lowering& n, const View& x, bool tanh) {
  View y;
  ANYDML_RETURN_IF_ERROR(tanh ? TanhGelu(n, x, &y) : Activate(n, DML_OPERATOR_ACTIVATION_GELU, x, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status Gelu(Lowering& n) {
  std::string approximate;
  ANYDML_RETURN_IF_ERROR(n.OneOf("approximate", {"none", "tanh"}, &approximate));
  return GeluOf(n, n.In(0), approximate == "tanh");
}

// BiasGelu and FastGelu, with a bias along the last dimension.
Status BiasGelu(Lowering& n) {
  View x = n.In(0);
  if (n.Has(1)) {
    View sum;
    if (n.rank(0) == 0) return InvalidArgument("a bias for a scalar");
    ANYDML_RETURN_IF_ERROR(CheckShape(n, 1, "bias", {n.shape(0).back()}));
    ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_ADD, x, n.In(1), &sum));
    x = sum;
  }
  return GeluOf(n, x, n.proto().type == "FastGelu");
}

// Softmax, LogSoftmax, Hardmax. Before version 13: over all dimensions from the axis on.
Status Softmax(Lowering& n) {
  const size_t rank = n.rank(0);
  const bool old = n.version() < 13;
  uint32_t axis = 0;
  if (rank > 0) {
    const int64_t given = n.Int("axis", old ? 1 : -1);
    if (old && given == static_cast<int64_t>(rank)) return Unsupported("axis behind the last dimension");
    ANYDML_RETURN_IF_ERROR(ResolveAxis(given, rank, &axis));
  }
  // Old versions are softmaxes of a matrix: one dimension contains those from the axis on.
  Shape shape = n.shape(0);
  if (old && rank > 0) {
    const std::span<const int64_t> all(shape);
    shape = {ElementCount(all.first(axis)).value_or(0), ElementCount(all.subspan(axis)).value_or(0)};
    axis = 1;
  }
  const View x = Reshaped(n.In(0), shape);
  View y = n.New(x.type, shape);
  const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y), 1, &axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(TypeOf(n), desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

constexpr OperatorRow kActivationRows[] = {
    {kOnnx, "Celu", 1, 1, 0, AlphaOne, nullptr, DML_OPERATOR_ACTIVATION_CELU},
    {kOnnx, "Elu", 1, 1, 0, AlphaOne, nullptr, DML_OPERATOR_ACTIVATION_ELU},
    {kOnnx, "Gelu", 1, 1, 0, Gelu, nullptr},
    {kOnnx, "HardSigmoid", 1, 1, 0, HardSigmoid, nullptr, DML_OPERATOR_ACTIVATION_HARD_SIGMOID},
    {kOnnx, "HardSwish", 1, 1, 0, HardSwish, nullptr, DML_OPERATOR_ACTIVATION_HARD_SWISH},
    {kOnnx, "Hardmax", 1, 1, 0, Softmax, nullptr, DML_OPERATOR_ACTIVATION_HARDMAX1},
    {kOnnx, "LeakyRelu", 1, 1, 0, LeakyRelu, nullptr, DML_OPERATOR_ACTIVATION_LEAKY_RELU},
    {kOnnx, "LogSoftmax", 1, 1, 0, Softmax, nullptr, DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1},
    {kOnnx, "Mish", 1, 1, 0, Mish, nullptr},
    {kOnnx, "PRelu", 2, 2, 0, PRelu, nullptr},
    {kOnnx, "ParametricSoftplus", 1, 1, 0, AlphaBeta, nullptr, DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS},
    {kOnnx, "Relu", 1, 1, 0, Relu, host::OfDoubles, DML_OPERATOR_ACTIVATION_RELU},
    {kOnnx, "ScaledTanh", 1, 1, 0, AlphaBeta, nullptr, DML_OPERATOR_ACTIVATION_SCALED_TANH},
    {kOnnx, "Selu", 1, 1, 0, Selu, nullptr, DML_OPERATOR_ACTIVATION_SCALED_ELU},
    {kOnnx, "Shrink", 1, 1, 0, Shrink, nullptr, DML_OPERATOR_ACTIVATION_SHRINK},
    {kOnnx, "Sigmoid", 1, 1, 0, Plain, host::OfDoubles, DML_OPERATOR_ACTIVATION_SIGMOID},
    {kOnnx, "Softmax", 1, 1, 0, Softmax, nullptr, DML_OPERATOR_ACTIVATION_SOFTMAX1},
    {kOnnx, "Softplus", 1, 1, 0, Softplus, nullptr, DML_OPERATOR_ACTIVATION_SOFTPLUS},
    {kOnnx, "Softsign", 1, 1, 0, Plain, nullptr, DML_OPERATOR_ACTIVATION_SOFTSIGN},
    {kOnnx, "Swish", 1, 1, 0, AlphaOne, nullptr, DML_OPERATOR_ACTIVATION_SWISH},
    {kOnnx, "Tanh", 1, 1, 0, Plain, host::OfDoubles, DML_OPERATOR_ACTIVATION_TANH},
    {kOnnx, "ThresholdedRelu", 1, 1, 0, AlphaOne, nullptr, DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU},
    {kMicrosoft, "BiasGelu", 2, 2, 0, BiasGelu, nullptr},
    {kMicrosoft, "FastGelu", 1, 2, 0, BiasGelu, nullptr},
    {kMicrosoft, "Gelu", 1, 1, 0, Gelu, nullptr},
    {kMicrosoft, "QuickGelu", 1, 1, 0, QuickGelu, nullptr, DML_OPERATOR_ACTIVATION_SWISH},
};

}  // namespace

std::span<const OperatorRow> ActivationOperators() { return kActivationRows; }

}  // namespace anydml::onnx
