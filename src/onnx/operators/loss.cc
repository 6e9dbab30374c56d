// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <numeric>

#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// Marks ignored targets, which may be any number, and replaces them by a valid one.
Status Ignore(Lowering& n, const View& given, View* ignored, View* targets) {
  View number, zero;
  ANYDML_RETURN_IF_ERROR(Fill(n, given.type, {1}, static_cast<double>(n.Int("ignore_index", 0)), &number));
  ANYDML_RETURN_IF_ERROR(Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS, given,
                                 Broadcast(number, ShapeOf(given)), ignored));
  ANYDML_RETURN_IF_ERROR(Fill(n, given.type, {1}, 0, &zero));
  return If(n, *ignored, zero, given, targets);
}

// A weight per target: 1 or the class's; 0 if the target is ignored.
Status Weights(Lowering& n, const View& targets, const View* ignored, DataType type, View* out) {
  const Shape shape = ShapeOf(targets);
  if (n.Has(2)) {
    const View table = AtLeast(n.In(2), shape.size());
    *out = n.New(type, shape);
    const DML_GATHER_OPERATOR_DESC desc{n.graph().In(table), n.graph().In(targets), n.graph().Out(out),
                                        static_cast<UINT>(shape.size() - 1), static_cast<UINT>(shape.size())};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GATHER, desc));
  } else {
    ANYDML_RETURN_IF_ERROR(Fill(n, type, shape, 1, out));
  }
  if (ignored == nullptr) return {};
  View zero;
  ANYDML_RETURN_IF_ERROR(Fill(n, type, {1}, 0, &zero));
  return If(n, *ignored, zero, *out, out);
}

// `log_probabilities` {N, C, rest}, targets {N, rest}.
Status Loss(Lowering& n, const View& log_probabilities, Shape shape) {
  const Shape all = ShapeOf(log_probabilities);
  Shape picked_shape = all;
  picked_shape[1] = 1;
  View targets = Reshaped(n.In(1), picked_shape), ignored;
  const bool ignores = n.HasAttribute("ignore_index");
  if (ignores) ANYDML_RETURN_IF_ERROR(Ignore(n, targets, &ignored, &targets));
  View picked = n.New(log_probabilities.type, picked_shape), weights, product, loss;
  const DML_GATHER_ELEMENTS_OPERATOR_DESC desc{n.graph().In(log_probabilities), n.graph().In(targets),
                                               n.graph().Out(&picked), 1};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GATHER_ELEMENTS, desc));
  ANYDML_RETURN_IF_ERROR(Weights(n, targets, ignores ? &ignored : nullptr, picked.type, &weights));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, picked, weights, &product));
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_NEGATE, product, &loss));
  const std::string reduction = n.Text("reduction", "mean");
  if (reduction == "none") {
    n.Return(0, loss, n.type(0), std::move(shape));
    return {};
  }
  std::vector<uint32_t> axes(all.size());
  std::iota(axes.begin(), axes.end(), 0u);
  View sum, total, mean;
  ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_SUM, loss, axes, &sum));
  if (reduction == "sum") {
    n.Return(0, sum, n.type(0), {});
    return {};
  }
  if (reduction != "mean") return Unsupported("reduction ", reduction.substr(0, 20));
  ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_SUM, weights, axes, &total));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_DIVIDE, sum, total, &mean));
  n.Return(0, mean, n.type(0), {});
  return {};
}

// Merges the dimensions after the classes, since DirectML's rank may be too small for all.
Status Scores(Lowering& n, View* out) {
  const Shape& x = n.shape(0);
  if (x.size() < 2 || n.rank(1) + 1 != x.size())
    return InvalidArgument("input ", ShapeToString(x), " and target ", ShapeToString(n.shape(1)));
  const Shape shape = {x[0], x[1], ElementCount(std::span(x).subspan(2)).value_or(0)};
  if (ElementCount(n.shape(1)).value_or(0) != shape[0] * shape[2])
    return InvalidArgument("target ", ShapeToString(n.shape(1)), " does not fit the input");
  *out = Reshaped(n.In(0), shape);
  return {};
}

Status NegativeLogLikelihoodLoss(Lowering& n) {
  View x;
  ANYDML_RETURN_IF_ERROR(Scores(n, &x));
  return Loss(n, x, n.shape(1));
}

Status SoftmaxCrossEntropyLoss(Lowering& n) {
  View x;
  ANYDML_RETURN_IF_ERROR(Scores(n, &x));
  View log_probabilities = n.New(x.type, ShapeOf(x));
  const uint32_t axis = 1;
  const DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&log_probabilities), 1,
                                                       &axis};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, desc));
  if (n.Wants(1)) n.Return(1, log_probabilities, n.type(0), n.shape(0));
  return Loss(n, log_probabilities, n.shape(1));
}

constexpr OperatorRow kLossRows[] = {
    {kOnnx, "NegativeLogLikelihoodLoss", 2, 3, 0, NegativeLogLikelihoodLoss, nullptr},
    {kOnnx, "SoftmaxCrossEntropyLoss", 2, 3, 0, SoftmaxCrossEntropyLoss, nullptr},
};

}  // namespace

std::span<const OperatorRow> LossOperators() { return kLossRows; }

}  // namespace anydml::onnx
