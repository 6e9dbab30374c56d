#include <algorithm>
#include <numeric>

#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

std::vector<uint32_t> AxesFrom(uint32_t first, size_t rank) {
  std::vector<uint32_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

struct Normalization {
  std::vector<uint32_t> axes;
  bool use_mean = true;
  float epsilon = 1e-5f;
};

// `scale` and `bias` may be null, and have sizes of 1 or x's.
Status Normalize(Lowering& n, const Normalization& how, const View& x, const View* scale, const View* bias,
                 View* y) {
  *y = n.New(x.type, ShapeOf(x));
  const auto count = static_cast<UINT>(how.axes.size());
  if (how.use_mean) {  // the other operator needs a newer feature level
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc{n.graph().In(x),
                                                              n.graph().In(scale),
                                                              n.graph().In(bias),
                                                              n.graph().Out(y),
                                                              count,
                                                              how.axes.data(),
                                                              TRUE,
                                                              how.epsilon,
                                                              nullptr};
    return n.graph().Add(DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, desc);
  }
  const DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC desc{n.graph().In(x),
                                                            n.graph().In(scale),
                                                            n.graph().In(bias),
                                                            n.graph().Out(y),
                                                            count,
                                                            how.axes.data(),
                                                            FALSE,
                                                            TRUE,
                                                            how.epsilon,
                                                            nullptr};
  return n.graph().Add(DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION2, desc);
}

// A parameter in x's type, with leading 1s.
Status ParameterOf(Lowering& n, size_t input, const View& x, View* out) {
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(input), x.type, out));
  *out = AtLeast(*out, x.rank());
  return {};
}

// The mean, if it is used, and the reciprocal of the deviation, if they are requested: in FLOAT32 for
// FLOAT16, too, because its squares would overflow.
Status Statistics(Lowering& n, const Normalization& how, const View& given, View* mean, View* inverse) {
  View x, square, variance, root;
  ANYDML_RETURN_IF_ERROR(Cast(n, given, DataType::kFloat32, &x));
  View centered = x;
  if (how.use_mean) {
    ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_AVERAGE, x, how.axes, mean));
    ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, x, *mean, &centered));
  }
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, centered, centered, &square));
  ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_AVERAGE, square, how.axes, &variance));
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_SQRT, variance, &root, 1, how.epsilon));
  return Unary(n, DML_OPERATOR_ELEMENT_WISE_RECIP, root, inverse);
}

// LayerNormalization, RMSNormalization, SimplifiedLayerNormalization: X, Scale, B.
Status LayerNormalization(Lowering& n) {
  if (n.rank(0) == 0) return InvalidArgument("a scalar cannot be normalised");
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", -1), n.rank(0), &axis));
  Normalization how;
  how.axes = AxesFrom(axis, n.rank(0));
  how.use_mean = n.proto().type == "LayerNormalization";
  how.epsilon = n.Float("epsilon", 1e-5f);
  // Results have the scale's type, except for LayerNormalization from version 17 on; before, it is
  // onnxruntime's.
  const ElementType type = how.use_mean && n.version() >= 17 ? n.type(0) : n.type(1);
  View x, scale, bias, y;
  // With the precision of the result, if that is higher.
  ANYDML_RETURN_IF_ERROR(
      Cast(n, n.In(0), type == ElementType::kFloat16 ? n.dml_type(0) : DataType::kFloat32, &x));
  ANYDML_RETURN_IF_ERROR(ParameterOf(n, 1, x, &scale));
  if (n.Has(2)) ANYDML_RETURN_IF_ERROR(ParameterOf(n, 2, x, &bias));
  ANYDML_RETURN_IF_ERROR(Normalize(n, how, x, &scale, n.Has(2) ? &bias : nullptr, &y));
  ANYDML_RETURN_IF_ERROR(Cast(n, y, DmlType(type), &y));
  n.Return(0, y, type, n.shape(0));
  if (!n.Wants(1) && !n.Wants(2)) return {};
  View mean, inverse;
  ANYDML_RETURN_IF_ERROR(Statistics(n, how, x, &mean, &inverse));
  Shape shape = n.shape(0);
  std::fill(shape.begin() + axis, shape.end(), 1);
  n.Return(1, how.use_mean ? mean : inverse, ElementType::kFloat, shape);
  n.Return(2, inverse, ElementType::kFloat, shape);
  return {};
}

// input, skip, gamma, beta, bias (without beta: SkipSimplifiedLayerNormalization).
Status SkipLayerNormalization(Lowering& n) {
  const bool simplified = n.proto().type == "SkipSimplifiedLayerNormalization";
  if (n.Wants(1) || n.Wants(2)) return Unsupported("the mean and the deviation as outputs");
  if (n.rank(0) == 0) return InvalidArgument("a scalar cannot be normalised");
  const size_t bias_input = simplified ? 3 : 4;
  // One skip for all batches, or one for each.
  const Shape& x = n.shape(0);
  Shape one = x, both(x.begin() + (x.size() > 1 ? 1 : 0), x.end());
  one[0] = 1;
  if (n.shape(1) != x && (x.size() != 3 || (n.shape(1) != one && n.shape(1) != both)))
    return InvalidArgument(
        "skip has the shape ", ShapeToString(n.shape(1)), "; ", ShapeToString(x),
        x.size() == 3 ? StrCat(", ", ShapeToString(one), " and ", ShapeToString(both)) : std::string(),
        " are allowed");
  ANYDML_RETURN_IF_ERROR(CheckShape(n, 2, "gamma", {x.back()}));
  if (!simplified && n.Has(3)) ANYDML_RETURN_IF_ERROR(CheckShape(n, 3, "beta", {x.back()}));
  if (n.Has(bias_input)) ANYDML_RETURN_IF_ERROR(CheckShape(n, bias_input, "bias", {x.back()}));
  View sum, gamma, beta, y;
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_ADD, n.In(0), n.In(1), &sum));
  if (n.Has(bias_input)) {
    View with_bias;
    ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_ADD, sum, n.In(bias_input), &with_bias));
    sum = with_bias;
  }
  Normalization how;
  how.axes = {static_cast<uint32_t>(n.rank(0) - 1)};
  how.use_mean = !simplified;
  how.epsilon = n.Float("epsilon", 1e-12f);
  ANYDML_RETURN_IF_ERROR(ParameterOf(n, 2, sum, &gamma));
  const bool has_beta = !simplified && n.Has(3);
  if (has_beta) ANYDML_RETURN_IF_ERROR(ParameterOf(n, 3, sum, &beta));
  ANYDML_RETURN_IF_ERROR(Normalize(n, how, sum, &gamma, has_beta ? &beta : nullptr, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  if (n.Wants(3)) n.Return(3, sum, n.type(0), n.shape(0));
  return {};
}

Status InstanceNormalization(Lowering& n) {
  if (n.rank(0) < 3) return InvalidArgument("input ", ShapeToString(n.shape(0)), " has no spatial dimension");
  ANYDML_RETURN_IF_ERROR(CheckShape(n, 1, "scale", {n.shape(0)[1]}));
  ANYDML_RETURN_IF_ERROR(CheckShape(n, 2, "B", {n.shape(0)[1]}));
  const View x = n.In(0);
  const View scale = AlongAxis(n.In(1), x.rank(), 1), bias = AlongAxis(n.In(2), x.rank(), 1);
  Normalization how;
  how.axes = AxesFrom(2, x.rank());
  how.epsilon = n.Float("epsilon", 1e-5f);
  View y;
  ANYDML_RETURN_IF_ERROR(Normalize(n, how, x, &scale, &bias, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

// Version 18 has a scale per group, 21 one per channel.
Status GroupNormalization(Lowering& n) {
  const Shape& shape = n.shape(0);
  const int64_t groups = n.Int("num_groups", 0);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
    return InvalidArgument("num_groups is ", groups, " for input ", ShapeToString(shape));
  }
  const int64_t spatial = ElementCount(std::span(shape).subspan(2)).value_or(0);
  const int64_t channels = shape[1] / groups;
  const Shape grouped = {shape[0], groups, channels, spatial};
  const bool per_group = ElementCount(n.shape(1)) == groups && n.version() < 21;
  for (const size_t i : {1, 2})
    ANYDML_RETURN_IF_ERROR(CheckShape(n, i, i == 1 ? "scale" : "bias", {per_group ? groups : shape[1]}));
  const auto parameter = [&](const View& view) {
    return Reshaped(view, per_group ? Shape{1, groups, 1, 1} : Shape{1, groups, channels, 1});
  };
  const View x = Reshaped(n.In(0), grouped);
  const View scale = parameter(n.In(1)), bias = parameter(n.In(2));
  Normalization how;
  how.axes = {2, 3};
  how.epsilon = n.Float("epsilon", 1e-5f);
  View y;
  ANYDML_RETURN_IF_ERROR(Normalize(n, how, x, &scale, &bias, &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// The batch's own mean and variance; the running ones are mixed with the given ones.
Status TrainBatch(Lowering& n, const View& x) {
  const auto momentum = n.Float("momentum", 0.9f);
  std::vector<uint32_t> axes = AxesFrom(1, x.rank());
  axes[0] = 0;
  View scale, bias, mean, centered, variance, y;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(1), x.type, &scale));
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(2), x.type, &bias));
  scale = AlongAxis(scale, x.rank(), 1);
  bias = AlongAxis(bias, x.rank(), 1);
  ANYDML_RETURN_IF_ERROR(Normalize(n, {axes, true, n.Float("epsilon", 1e-5f)}, x, &scale, &bias, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_AVERAGE, x, axes, &mean));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, x, mean, &centered));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, centered, centered, &centered));
  ANYDML_RETURN_IF_ERROR(Reduce(n, DML_REDUCE_FUNCTION_AVERAGE, centered, axes, &variance));
  for (const size_t i : {1, 2}) {
    if (!n.Wants(i)) continue;
    View before, now;
    ANYDML_RETURN_IF_ERROR(Cast(n, n.In(i + 2), x.type, &before));
    ANYDML_RETURN_IF_ERROR(
        Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, AlongAxis(before, x.rank(), 1), &before, momentum));
    ANYDML_RETURN_IF_ERROR(
        Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, i == 1 ? mean : variance, &now, 1 - momentum));
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_ADD, before, now, &now));
    ANYDML_RETURN_IF_ERROR(Cast(n, now, n.dml_type(i + 2), &now));
    n.Return(i, now, n.type(i + 2), n.shape(i + 2));
  }
  return {};
}

// X, scale, B, mean, var
Status BatchNormalization(Lowering& n) {
  if (n.Int("spatial", 1) == 0) return Unsupported("spatial 0");
  if (n.rank(0) < 1) return InvalidArgument("a scalar has no channels");
  // One dimension: a batch with one channel.
  const int64_t channels = n.rank(0) == 1 ? 1 : n.shape(0)[1];
  const View x = n.rank(0) == 1 ? Reshaped(n.In(0), Shape{n.shape(0)[0], 1}) : n.In(0);
  for (size_t i = 1; i < 5; ++i) {
    if (n.shape(i) != Shape{channels})
      return InvalidArgument("input ", i, " is ", ShapeToString(n.shape(i)), " for ", channels, " channels");
  }
  if (n.Int("training_mode", 0) != 0) return TrainBatch(n, x);
  View parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    View cast;
    ANYDML_RETURN_IF_ERROR(Cast(n, n.In(i + 1), x.type, &cast));
    parameters[i] = AlongAxis(cast, x.rank(), 1);
  }
  View y = n.New(x.type, ShapeOf(x));
  const DML_BATCH_NORMALIZATION_OPERATOR_DESC desc{n.graph().In(x),
                                                   n.graph().In(parameters[2]),
                                                   n.graph().In(parameters[3]),
                                                   n.graph().In(parameters[0]),
                                                   n.graph().In(parameters[1]),
                                                   n.graph().Out(&y),
                                                   TRUE,
                                                   n.Float("epsilon", 1e-5f),
                                                   nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_BATCH_NORMALIZATION, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status MeanVarianceNormalization(Lowering& n) {
  std::vector<int64_t> axes = n.Ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  Normalization how;
  how.epsilon = 1e-9f;
  ANYDML_RETURN_IF_ERROR(ResolveAxes(axes, n.rank(0), &how.axes));
  View y;
  ANYDML_RETURN_IF_ERROR(Normalize(n, how, n.In(0), nullptr, nullptr, &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status Lrn(Lowering& n) {
  const int64_t size = n.Int("size", 0);
  if (n.rank(0) < 3 || size < 1 || size > INT32_MAX) return InvalidArgument("size is ", size);
  // Other ranks do not matter: they are seen as {N,C,H,W}.
  const Shape& given = n.shape(0);
  const Shape shape = {given[0], given[1], given[2], ElementCount(std::span(given).subspan(3)).value_or(0)};
  const View x = Reshaped(n.In(0), shape);
  View y = n.New(x.type, shape);
  const DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC desc{
      n.graph().In(x),        n.graph().Out(&y), TRUE, static_cast<UINT>(size), n.Float("alpha", 0.0001f),
      n.Float("beta", 0.75f), n.Float("bias", 1)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION, desc));
  n.Return(0, y, n.type(0), given);
  return {};
}

Status LpNormalization(Lowering& n) {
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(n.Int("axis", -1), n.rank(0), &axis));
  const View x = n.In(0);
  View y = n.New(x.type, n.shape(0));
  const DML_LP_NORMALIZATION_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y), axis, 1e-12f,
                                                static_cast<UINT>(n.Int("p", 2))};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_LP_NORMALIZATION, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

constexpr OperatorRow kNormalizationRows[] = {
    {kOnnx, "BatchNormalization", 5, 5, 0, BatchNormalization, nullptr},
    {kOnnx, "GroupNormalization", 3, 3, 0, GroupNormalization, nullptr},
    {kOnnx, "InstanceNormalization", 3, 3, 0, InstanceNormalization, nullptr},
    {kOnnx, "LRN", 1, 1, 0, Lrn, nullptr},
    {kOnnx, "LayerNormalization", 2, 3, 0, LayerNormalization, nullptr},
    {kOnnx, "LpNormalization", 1, 1, 0, LpNormalization, nullptr},
    {kOnnx, "MeanVarianceNormalization", 1, 1, 0, MeanVarianceNormalization, nullptr},
    {kOnnx, "RMSNormalization", 2, 2, 0, LayerNormalization, nullptr},
    {kOnnx, "SimplifiedLayerNormalization", 2, 2, 0, LayerNormalization, nullptr},
    {kMicrosoft, "SkipLayerNormalization", 3, 5, 0, SkipLayerNormalization, nullptr},
    {kMicrosoft, "SkipSimplifiedLayerNormalization", 3, 4, 0, SkipLayerNormalization, nullptr},
};

}  // namespace

std::span<const OperatorRow> NormalizationOperators() { return kNormalizationRows; }

}  // namespace anydml::onnx
