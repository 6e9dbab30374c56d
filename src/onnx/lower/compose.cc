#include "onnx/lower/compose.h"

#include <cfloat>
#include <cstring>

#include "base/half.h"

namespace anydml::onnx {
namespace {

bool IsPacked(const View& view) {
  uint64_t stride = 1;
  for (size_t i = view.rank(); i-- > 0;) {
    if (view.sizes[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.sizes[i];
  }
  return true;
}

}  // namespace

Shape ShapeOf(const View& view) { return {view.sizes.begin(), view.sizes.end()}; }

Status Unary(Lowering& n, DML_OPERATOR_TYPE type, const View& x, View* y, float scale, float bias) {
  const DML_SCALE_BIAS scale_bias{scale, bias};
  const View input = x;  // a copy, because `y` may be `x`, here and below
  *y = n.New(input.type, ShapeOf(input));
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc{n.graph().In(input), n.graph().Out(y),
                                                     scale != 1 || bias != 0 ? &scale_bias : nullptr};
  return n.graph().Add(type, desc);
}

Status Activate(Lowering& n, DML_OPERATOR_TYPE type, const View& x, View* y, float alpha, float beta) {
  const View input = x;
  *y = n.New(input.type, ShapeOf(input));
  const DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC desc{n.graph().In(input), n.graph().Out(y), alpha, beta};
  return n.graph().Add(type, desc);
}

Status Binary(Lowering& n, DML_OPERATOR_TYPE type, const View& a, const View& b, View* y) {
  const View left = a, right = b;
  *y = n.New(left.type, ShapeOf(left));
  // ADD1 has an activation at the end, which the others ignore.
  const DML_ELEMENT_WISE_ADD1_OPERATOR_DESC desc{n.graph().In(left), n.graph().In(right), n.graph().Out(y),
                                                 nullptr};
  return n.graph().Add(type, desc);
}

Status BinaryTo(Lowering& n, DML_OPERATOR_TYPE type, const View& a, const View& b, View* y) {
  const Shape to = ShapeOf(a), from = ShapeOf(b);
  Shape together;
  // Any other size would be treated as 1.
  if (!BroadcastShape(to, from, &together).ok() || together != to)
    return InvalidArgument("an input of ", ShapeToString(from), " for one of ", ShapeToString(to),
                           "; sizes of 1 or the same are allowed");
  return Binary(n, type, a, Broadcast(b, to), y);
}

Status Compare(Lowering& n, DML_OPERATOR_TYPE type, const View& a, const View& b, View* y) {
  View result = n.New(DataType::kUInt8, ShapeOf(a));
  const DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC desc{n.graph().In(a), n.graph().In(b),
                                                           n.graph().Out(&result)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(type, desc));
  *y = result;
  return {};
}

Status Cast(Lowering& n, const View& x, DataType type, View* y) {
  if (x.type == type) {
    *y = x;
    return {};
  }
  const View input = x;
  *y = n.New(type, ShapeOf(input));
  const DML_CAST_OPERATOR_DESC desc{n.graph().In(input), n.graph().Out(y)};
  return n.graph().Add(DML_OPERATOR_CAST, desc);
}

Status Pack(Lowering& n, const View& x, View* y) {
  if (!IsPacked(x) || x.bytes != PackedView(x.type, ShapeOf(x)).bytes) {
    return Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, x, y);
  }
  *y = x;
  return {};
}

Status Fill(Lowering& n, DataType type, const Shape& shape, double value, View* y) {
  *y = n.New(type, shape);
  const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC desc{n.graph().Out(y), static_cast<DML_TENSOR_DATA_TYPE>(type),
                                                   Scalar(type, value)};
  return n.graph().Add(DML_OPERATOR_FILL_VALUE_CONSTANT, desc);
}

Status Reduce(Lowering& n, DML_REDUCE_FUNCTION function, const View& x, std::span<const uint32_t> axes,
              View* y) {
  const View input = x;
  Shape shape = ShapeOf(input);
  for (const uint32_t axis : axes) shape[axis] = 1;
  *y = n.New(input.type, shape);
  const DML_REDUCE_OPERATOR_DESC desc{function, n.graph().In(input), n.graph().Out(y),
                                      static_cast<UINT>(axes.size()), axes.data()};
  return n.graph().Add(DML_OPERATOR_REDUCE, desc);
}

Status If(Lowering& n, const View& condition, const View& a, const View& b, View* y) {
  const Shape shape = ShapeOf(condition);
  const View yes = Broadcast(a, shape), no = Broadcast(b, shape);
  View result = n.New(yes.type, shape);
  const DML_ELEMENT_WISE_IF_OPERATOR_DESC desc{n.graph().In(condition), n.graph().In(yes), n.graph().In(no),
                                               n.graph().Out(&result)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_IF, desc));
  *y = result;
  return {};
}

Status Join(Lowering& n, std::span<const View> parts, uint32_t axis, View* y) {
  const std::vector<View> inputs(parts.begin(), parts.end());
  Shape shape = ShapeOf(inputs[0]);
  shape[axis] = 0;
  for (const View& part : inputs) shape[axis] += part.sizes[axis];
  *y = n.New(inputs[0].type, shape);
  const DML_TENSOR_DESC* const descs = n.graph().InArray(inputs);
  const DML_JOIN_OPERATOR_DESC desc{static_cast<UINT>(inputs.size()), descs, n.graph().Out(y), axis};
  return n.graph().Add(DML_OPERATOR_JOIN, desc);
}

Status Part(Lowering& n, const View& x, uint32_t axis, int64_t begin, int64_t count, View* y, int64_t step) {
  const View input = x;
  Shape shape = ShapeOf(input);
  shape[axis] = count;
  std::vector<UINT> offsets(shape.size(), 0), sizes(shape.begin(), shape.end());
  std::vector<INT> strides(shape.size(), 1);
  offsets[axis] = static_cast<UINT>(begin);
  sizes[axis] = static_cast<UINT>(count > 0 ? (count - 1) * step + 1 : 0);
  strides[axis] = static_cast<INT>(step);
  *y = n.New(input.type, shape);
  const DML_SLICE1_OPERATOR_DESC desc{n.graph().In(input), n.graph().Out(y), static_cast<UINT>(sizes.size()),
                                      offsets.data(),      sizes.data(),     strides.data()};
  return n.graph().Add(DML_OPERATOR_SLICE1, desc);
}

Status Softmax(Lowering& n, const View& x, uint32_t axis, View* y) {
  const View input = x;
  *y = n.New(input.type, ShapeOf(input));
  const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc{n.graph().In(input), n.graph().Out(y), 1, &axis};
  return n.graph().Add(DML_OPERATOR_ACTIVATION_SOFTMAX1, desc);
}

Status ActivateNamed(Lowering& n, const std::string& name, std::span<const float> numbers, const View& x,
                     View* y) {
  const auto number = [numbers](size_t i, float otherwise) {
    return i < numbers.size() ? numbers[i] : otherwise;
  };
  if (name.empty()) {
    *y = x;
    return {};
  }
  if (name == "Relu") return Activate(n, DML_OPERATOR_ACTIVATION_RELU, x, y);
  if (name == "Sigmoid") return Activate(n, DML_OPERATOR_ACTIVATION_SIGMOID, x, y);
  if (name == "Tanh") return Activate(n, DML_OPERATOR_ACTIVATION_TANH, x, y);
  if (name == "Softplus") return Activate(n, DML_OPERATOR_ACTIVATION_SOFTPLUS, x, y, 1);
  if (name == "Softsign") return Activate(n, DML_OPERATOR_ACTIVATION_SOFTSIGN, x, y);
  if (name == "LeakyRelu") return Activate(n, DML_OPERATOR_ACTIVATION_LEAKY_RELU, x, y, number(0, 0.01f));
  if (name == "Elu") return Activate(n, DML_OPERATOR_ACTIVATION_ELU, x, y, number(0, 1));
  if (name == "HardSigmoid")
    return Activate(n, DML_OPERATOR_ACTIVATION_HARD_SIGMOID, x, y, number(0, 0.2f), number(1, 0.5f));
  if (name == "Clip") {
    const View input = x;
    *y = n.New(input.type, ShapeOf(input));
    const DML_ELEMENT_WISE_CLIP_OPERATOR_DESC desc{n.graph().In(input), n.graph().Out(y), nullptr,
                                                   number(0, -FLT_MAX), number(1, FLT_MAX)};
    return n.graph().Add(DML_OPERATOR_ELEMENT_WISE_CLIP, desc);
  }
  return Unsupported("activation ", name.substr(0, 40));
}

Status BroadcastInputs(Lowering& n, size_t i, size_t j, View* a, View* b, Shape* shape) {
  Shape second = n.shape(j);
  ANYDML_RETURN_IF_ERROR(AlignOldBroadcast(n, n.shape(i), &second));
  ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(i), second, shape));
  *a = Broadcast(n.In(i), *shape);
  *b = Broadcast(second.empty() ? n.In(j) : Reshaped(n.In(j), second), *shape);
  return {};
}

DML_SCALAR_UNION Scalar(DataType type, double value) {
  DML_SCALAR_UNION scalar{};
  switch (type) {
    case DataType::kFloat32:
      scalar.Float32 = static_cast<float>(value);
      break;
    case DataType::kFloat64:
      scalar.Float64 = value;
      break;
    case DataType::kFloat16:
      scalar.UInt16 = ToHalf(static_cast<float>(value)).bits;
      break;
    // The limits of 64-bit types as doubles are slightly outside the type's range.
    case DataType::kUInt64:
      scalar.UInt64 = value >= 0x1p64 ? UINT64_MAX : value > 0 ? static_cast<uint64_t>(value) : 0;
      break;
    default:  // for narrower types the lower bytes are the number
      scalar.Int64 = value >= 0x1p63 ? INT64_MAX : value >= -0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
      break;
  }
  return scalar;
}

DML_SCALAR_UNION ScalarBits(const Tensor& tensor, size_t index) {
  DML_SCALAR_UNION scalar{};
  const size_t bytes = BitsOf(tensor.type) / 8;
  if (bytes > 0 && bytes <= 8 && (index + 1) * bytes <= tensor.data.size()) {
    std::memcpy(scalar.Bytes, tensor.data.data() + index * bytes, bytes);
  }
  return scalar;
}

View AlongAxis(const View& parameter, size_t rank, size_t axis) {
  Shape shape(rank, 1);
  shape[axis] = 1;
  for (const uint32_t size : parameter.sizes) shape[axis] *= size;
  return Reshaped(parameter, shape);
}

Status CheckShape(const Lowering& n, size_t input, const char* name, const Shape& allowed) {
  if (n.shape(input) == allowed) return {};
  return InvalidArgument(name, " has the shape ", ShapeToString(n.shape(input)), "; ", ShapeToString(allowed),
                         " is allowed");
}

}  // namespace anydml::onnx
