// Operators of old models (such as Windows' image operators), and of new versions that few models use yet.
#include <algorithm>

#include "onnx/lower/compose.h"
#include "onnx/lower/windows.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// x * alpha + beta
Status Affine(Lowering& n) {
  View y;
  ANYDML_RETURN_IF_ERROR(
      Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, n.In(0), &y, n.Float("alpha", 1), n.Float("beta", 0)));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

// x * scale + a number per channel
Status ImageScaler(Lowering& n) {
  const std::vector<float> bias = n.Floats("bias");
  if (n.rank(0) < 2 || static_cast<int64_t>(bias.size()) != n.shape(0)[1])
    return InvalidArgument("bias has ", bias.size(), " elements for ", ShapeToString(n.shape(0)));
  const std::vector<double> numbers(bias.begin(), bias.end());
  const View added = n.Constant(FromDoubles(n.type(0), {n.shape(0)[1]}, numbers));
  View scaled, y;
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, n.In(0), &scaled, n.Float("scale", 1)));
  ANYDML_RETURN_IF_ERROR(BinaryTo(n, kAdd, scaled, AlongAxis(added, n.rank(0), 1), &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

// Images without `border` {left, top, right, bottom}, or of `scale` {height, width} from its corner on.
Status Crop(Lowering& n) {
  const std::vector<int64_t> border = n.Ints("border"), scale = n.Ints("scale");
  if (n.rank(0) != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
    return InvalidArgument("border has ", border.size(), " and scale ", scale.size(), " elements for ",
                           ShapeToString(n.shape(0)));
  View y = n.In(0);
  for (const uint32_t i : {0, 1}) {  // height, width
    const int64_t size = n.shape(0)[i + 2], begin = border[1 - i], end = scale.empty() ? border[3 - i] : 0;
    if (begin < 0 || begin > size || end < 0 || end > size - begin)
      return InvalidArgument("a border of ", begin, " and ", end, " of ", size, " pixels");
    const int64_t count = scale.empty() ? size - begin - end : scale[i];
    if (count < 1 || count > size - begin)
      return InvalidArgument("from ", begin, " on ", count, " of ", size, " pixels");
    ANYDML_RETURN_IF_ERROR(Part(n, y, i + 2, begin, count, &y));
  }
  n.Return(0, y, n.type(0), ShapeOf(y));
  return {};
}

// Swish of the first input times the second.
Status SwiGlu(Lowering& n) {
  if (n.shape(0) != n.shape(1))
    return InvalidArgument("A ", ShapeToString(n.shape(0)), " and B ", ShapeToString(n.shape(1)));
  View swish, y;
  ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_SWISH, n.In(0), &swish, n.Float("alpha", 1)));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, swish, n.In(1), &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status CheckBitCast(const NodeFacts& n, ElementType from, ElementType* to) {
  *to = static_cast<ElementType>(n.Int("to", 0));
  if (const int64_t given = n.Int("to", 0); given != static_cast<int64_t>(*to))
    return InvalidArgument("to is ", given, ", which is no type");
  if (BitsOf(*to) == 0 || BitsOf(from) == 0) return Unsupported("from ", Name(from), " to ", Name(*to));
  if (BitsOf(*to) != BitsOf(from))
    return InvalidArgument("from ", Name(from), " to ", Name(*to), ", which have ", BitsOf(from), " and ",
                           BitsOf(*to), " bits");
  return {};
}

Status BitCast(Lowering& n) {
  ElementType to;
  ANYDML_RETURN_IF_ERROR(CheckBitCast(n, n.type(0), &to));
  View x = n.In(0), y;
  switch (BitsOf(to)) {
    case 8:
      x.type = DataType::kUInt8;
      break;
    case 16:
      x.type = DataType::kUInt16;
      break;
    case 32:
      x.type = DataType::kUInt32;
      break;
    case 64:
      x.type = DataType::kUInt64;
      break;
    default:
      return Unsupported("of ", Name(to));
  }
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, x, &y));
  y.type = DmlType(to);
  if (y.type == DataType::kUnknown) return Unsupported("to ", Name(to));
  n.Return(0, y, to, n.shape(0));
  return {};
}

Status HostBitCast(HostCall& call) {
  ElementType to;
  ANYDML_RETURN_IF_ERROR(CheckBitCast(call, call.In(0).type, &to));
  call.outputs[0] = call.In(0);
  call.outputs[0].type = to;
  return {};
}

// input {batch, channels, length}, weight {channels, 1, taps}, bias, past_state {batch, channels, taps - 1}:
// a depthwise convolution over the past and the input; the second output is the past of the next call.
Status CausalConvWithState(Lowering& n) {
  const Shape &x = n.shape(0), &w = n.shape(1);
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1 || x[2] < 1)
    return InvalidArgument("input ", ShapeToString(x), " and weight ", ShapeToString(w));
  const int64_t before = w[2] - 1;
  const Shape state = {x[0], x[1], before}, all = {x[0], x[1], before + x[2]};
  if (n.Has(3) && n.shape(3) != state) return InvalidArgument("past_state ", ShapeToString(n.shape(3)));
  if (n.Has(2) && n.shape(2) != Shape{x[1]}) return InvalidArgument("bias ", ShapeToString(n.shape(2)));
  const std::string activation = n.Text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return Unsupported("activation ", activation.substr(0, 40));
  View padded = n.In(0), past, present;
  if (before > 0) {
    past = n.Has(3) ? n.In(3) : View();
    if (!n.Has(3)) ANYDML_RETURN_IF_ERROR(Fill(n, padded.type, state, 0, &past));
    const View parts[] = {past, padded};
    ANYDML_RETURN_IF_ERROR(Join(n, parts, 2, &padded));
    ANYDML_RETURN_IF_ERROR(Part(n, padded, 2, x[2], before, &present));
    n.Return(1, present, n.type(0), state);
  } else if (n.Wants(1)) {
    n.Return(1, MakeTensor(n.type(0), state, std::vector<std::byte>()));
  }
  const View bias = n.Has(2) ? AlongAxis(n.In(2), 4, 1) : View();
  const View input = WithHeight(padded), filter = WithHeight(n.In(1));
  View y = WithHeight(n.New(padded.type, x)), activated;
  const UINT ones[] = {1, 1}, zeros[] = {0, 0};
  const DML_CONVOLUTION_OPERATOR_DESC desc{n.graph().In(input),
                                           n.graph().In(filter),
                                           n.graph().In(n.Has(2) ? &bias : nullptr),
                                           n.graph().Out(&y),
                                           DML_CONVOLUTION_MODE_CROSS_CORRELATION,
                                           DML_CONVOLUTION_DIRECTION_FORWARD,
                                           2,
                                           ones,
                                           ones,
                                           zeros,
                                           zeros,
                                           zeros,
                                           static_cast<UINT>(x[1]),
                                           nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_CONVOLUTION, desc));
  if (activation != "none") {
    ANYDML_RETURN_IF_ERROR(Activate(n, DML_OPERATOR_ACTIVATION_SWISH, y, &activated, 1));
    y = activated;
  }
  n.Return(0, y, n.type(0), x);
  return {};
}

constexpr OperatorRow kOldestAndNewestRows[] = {
    {kOnnx, "Affine", 1, 1, 0, Affine, nullptr},
    {kOnnx, "BitCast", 1, 1, 0, BitCast, HostBitCast},
    {kOnnx, "CausalConvWithState", 2, 4, 0, CausalConvWithState, nullptr},
    {kOnnx, "Crop", 1, 1, 0, Crop, nullptr},
    {kOnnx, "ImageScaler", 1, 1, 0, ImageScaler, nullptr},
    {kOnnx, "SwiGLU", 2, 2, 0, SwiGlu, nullptr},
};

}  // namespace

std::span<const OperatorRow> OldestAndNewestOperators() { return kOldestAndNewestRows; }

}  // namespace anydml::onnx
