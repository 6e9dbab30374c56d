// Operators whose results have the coordinates of their inputs.
#include <cmath>

#include "onnx/host/host.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

bool IsUnsigned(ElementType type) {
  return type == ElementType::kUInt8 || type == ElementType::kUInt16 || type == ElementType::kUInt32 ||
         type == ElementType::kUInt64;
}

Status LowerUnary(Lowering& n) {
  View y;
  ANYDML_RETURN_IF_ERROR(Unary(n, TypeOf(n), n.In(0), &y));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status LowerAbs(Lowering& n) {
  if (!IsUnsigned(n.type(0))) return LowerUnary(n);
  n.Forward(0, 0, n.shape(0));
  return {};
}

Status LowerIsNan(Lowering& n) {
  View y = n.New(DataType::kUInt8, n.shape(0));
  const View x = n.In(0);
  const DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_IS_NAN, desc));
  n.Return(0, y, ElementType::kBool, n.shape(0));
  return {};
}

Status LowerIsInf(Lowering& n) {
  const bool positive = n.Int("detect_positive", 1) != 0;
  const bool negative = n.Int("detect_negative", 1) != 0;
  View y;
  if (!positive && !negative) {
    ANYDML_RETURN_IF_ERROR(Fill(n, DataType::kUInt8, n.shape(0), 0, &y));
  } else {
    const DML_IS_INFINITY_MODE mode = positive && negative ? DML_IS_INFINITY_MODE_EITHER
                                      : positive           ? DML_IS_INFINITY_MODE_POSITIVE
                                                           : DML_IS_INFINITY_MODE_NEGATIVE;
    y = n.New(DataType::kUInt8, n.shape(0));
    const View x = n.In(0);
    const DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y), mode};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_IS_INFINITY, desc));
  }
  n.Return(0, y, ElementType::kBool, n.shape(0));
  return {};
}

Status LowerRound(Lowering& n) {
  View y = n.New(n.dml_type(0), n.shape(0));
  const View x = n.In(0);
  const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y),
                                                  DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_ROUND, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

Status BinaryAs(Lowering& n, DML_OPERATOR_TYPE type) {
  View a, b, y;
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastInputs(n, 0, 1, &a, &b, &shape));
  ANYDML_RETURN_IF_ERROR(Binary(n, type, a, b, &y));
  n.Return(0, y, n.type(0), shape);
  return {};
}

Status LowerBinary(Lowering& n) { return BinaryAs(n, TypeOf(n)); }

Status LowerMod(Lowering& n) {
  return BinaryAs(n, n.Int("fmod", 0) != 0 ? DML_OPERATOR_ELEMENT_WISE_MODULUS_TRUNCATE
                                           : DML_OPERATOR_ELEMENT_WISE_MODULUS_FLOOR);
}

Status LowerBitShift(Lowering& n) {
  std::string direction;
  ANYDML_RETURN_IF_ERROR(n.OneOf("direction", {"RIGHT", "LEFT"}, &direction));
  return BinaryAs(n, direction == "LEFT" ? DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_LEFT
                                         : DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_RIGHT);
}

Status LowerCompare(Lowering& n) {
  View a, b, y;
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastInputs(n, 0, 1, &a, &b, &shape));
  ANYDML_RETURN_IF_ERROR(Compare(n, TypeOf(n), a, b, &y));
  n.Return(0, y, ElementType::kBool, shape);
  return {};
}

Status LowerPow(Lowering& n) {
  View a, b, y;
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastInputs(n, 0, 1, &a, &b, &shape));
  const Tensor* const exponent = n.IfConstant(1);
  const std::vector<double> power = exponent != nullptr ? ToDoubles(*exponent) : std::vector<double>();
  if (power.size() == 1) {
    y = n.New(n.dml_type(0), shape);
    const auto number = static_cast<float>(power[0]);
    const DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC desc{n.graph().In(a), n.graph().Out(&y), nullptr,
                                                           number};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_CONSTANT_POW, desc));
  } else {
    if (BitSize(b.type) == 64) ANYDML_RETURN_IF_ERROR(Cast(n, b, DataType::kFloat32, &b));
    y = n.New(n.dml_type(0), shape);
    const DML_ELEMENT_WISE_POW_OPERATOR_DESC desc{n.graph().In(a), n.graph().In(b), n.graph().Out(&y),
                                                  nullptr};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_POW, desc));
  }
  n.Return(0, y, n.type(0), shape);
  return {};
}

// Sum, Mean, Max, Min: one input after the other.
Status LowerMany(Lowering& n) {
  Shape shape = n.shape(0);
  for (size_t i = 1; i < n.inputs(); ++i) ANYDML_RETURN_IF_ERROR(BroadcastShape(shape, n.shape(i), &shape));
  View sum = Broadcast(n.In(0), shape);
  for (size_t i = 1; i < n.inputs(); ++i) {
    View next;
    ANYDML_RETURN_IF_ERROR(Binary(n, TypeOf(n), sum, Broadcast(n.In(i), shape), &next));
    sum = next;
  }
  if (n.proto().type == "Mean" && n.inputs() > 1) {
    View mean;
    ANYDML_RETURN_IF_ERROR(
        Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, sum, &mean, 1.0f / static_cast<float>(n.inputs())));
    sum = mean;
  }
  n.inputs() == 1 ? n.Forward(0, 0, shape) : n.Return(0, sum, n.type(0), shape);
  return {};
}

Status LowerWhere(Lowering& n) {
  Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(n.shape(0), n.shape(1), &shape));
  ANYDML_RETURN_IF_ERROR(BroadcastShape(shape, n.shape(2), &shape));
  const View condition = Broadcast(n.In(0), shape);
  const View a = Broadcast(n.In(1), shape);
  const View b = Broadcast(n.In(2), shape);
  View y = n.New(n.dml_type(1), shape);
  const DML_ELEMENT_WISE_IF_OPERATOR_DESC desc{n.graph().In(condition), n.graph().In(a), n.graph().In(b),
                                               n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_IF, desc));
  n.Return(0, y, n.type(1), shape);
  return {};
}

Status CastInput(Lowering& n, ElementType target) {
  if (DmlType(target) == DataType::kUnknown) return Unsupported("to ", Name(target));
  if (n.type(0) == target) {
    n.Forward(0, 0, n.shape(0));
    return {};
  }
  View y;
  if (target == ElementType::kBool) {  // not zero, including NaN; CAST would make 0.5 false
    View x, zero, equal;
    ANYDML_RETURN_IF_ERROR(
        Cast(n, n.In(0), n.type(0) == ElementType::kDouble ? DataType::kFloat32 : n.dml_type(0), &x));
    ANYDML_RETURN_IF_ERROR(Fill(n, x.type, {1}, 0, &zero));
    ANYDML_RETURN_IF_ERROR(
        Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS, x, Broadcast(zero, ShapeOf(x)), &equal));
    ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_NOT, equal, &y));
  } else {
    ANYDML_RETURN_IF_ERROR(Cast(n, n.In(0), DmlType(target), &y));
    if (y.source == n.In(0).source) {  // BOOL and UINT8 are the same to DirectML
      n.Return(0, y, target, n.shape(0));
      return {};
    }
  }
  n.Return(0, y, target, n.shape(0));
  return {};
}

Status LowerCast(Lowering& n) {
  ElementType to{};
  ANYDML_RETURN_IF_ERROR(CastTarget(n, &to));
  return CastInput(n, to);
}
Status LowerCastLike(Lowering& n) { return CastInput(n, n.type(1)); }

// The lowest and greatest numbers, Clip's default bounds.
double Lowest(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return -128;
    case DataType::kInt16:
      return -32768;
    case DataType::kInt32:
      return -2147483648.0;
    case DataType::kInt64:
      return -0x1p63;
    case DataType::kFloat32:
    case DataType::kFloat16:
      return -HUGE_VAL;
    default:
      return 0;
  }
}

DML_SCALAR_UNION Highest(DataType type) {
  DML_SCALAR_UNION scalar{};
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat16:
      return Scalar(type, HUGE_VAL);
    case DataType::kUInt64:
      scalar.UInt64 = UINT64_MAX;
      return scalar;
    default: {
      const bool is_signed = Lowest(type) < 0;
      scalar.UInt64 = UINT64_MAX >> (64 - BitSize(type) + (is_signed ? 1 : 0));
      return scalar;
    }
  }
}

Status LowerClip(Lowering& n) {
  const View x = n.In(0);
  View y;
  const bool attributes = n.version() < 11;
  const bool varies =
      !attributes && ((n.Has(1) && n.IfConstant(1) == nullptr) || (n.Has(2) && n.IfConstant(2) == nullptr));
  for (const size_t bound : {1, 2}) {
    if (!n.Has(bound)) continue;
    if (attributes) return InvalidArgument("bounds are attributes before version 11");
    if (ElementCount(n.shape(bound)) != 1 || n.type(bound) != n.type(0)) {
      return InvalidArgument("a bound is ", ShapeToString(n.shape(bound)), " of ", Name(n.type(bound)),
                             "; a scalar of ", Name(n.type(0)), " is allowed");
    }
    const Tensor* const constant = n.IfConstant(bound);
    if (constant != nullptr && ToDoubles(*constant).size() != 1)
      return Unsupported("of ", Name(n.type(bound)));
  }
  const double low = n.Has(1) && !varies ? ToDoubles(*n.IfConstant(1))[0] : -HUGE_VAL;
  const double high = n.Has(2) && !varies ? ToDoubles(*n.IfConstant(2))[0] : HUGE_VAL;
  if (varies || low > high) {
    View bounded = x;
    if (n.Has(1)) ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MAX, bounded, n.In(1), &y));
    if (n.Has(1)) bounded = y;
    if (n.Has(2)) ANYDML_RETURN_IF_ERROR(BinaryTo(n, DML_OPERATOR_ELEMENT_WISE_MIN, bounded, n.In(2), &y));
    n.Return(0, y, n.type(0), n.shape(0));
    return {};
  }
  DML_SCALAR_UNION min = Scalar(x.type, Lowest(x.type));
  DML_SCALAR_UNION max = Highest(x.type);
  if (attributes) {
    if (n.HasAttribute("min")) min = Scalar(x.type, n.Float("min", 0));
    if (n.HasAttribute("max")) max = Scalar(x.type, n.Float("max", 0));
  } else {
    if (n.Has(1)) min = ScalarBits(*n.IfConstant(1), 0);
    if (n.Has(2)) max = ScalarBits(*n.IfConstant(2), 0);
  }
  y = n.New(x.type, n.shape(0));
  const DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC desc{
      n.graph().In(x), n.graph().Out(&y), nullptr, static_cast<DML_TENSOR_DATA_TYPE>(x.type), min, max};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_CLIP1, desc));
  n.Return(0, y, n.type(0), n.shape(0));
  return {};
}

constexpr OperatorRow kElementRows[] = {
    {kOnnx, "Abs", 1, 1, 0, LowerAbs, host::Unary, DML_OPERATOR_ELEMENT_WISE_ABS},
    {kOnnx, "Acos", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_ACOS},
    {kOnnx, "Acosh", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_ACOSH},
    {kOnnx, "Asin", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_ASIN},
    {kOnnx, "Asinh", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_ASINH},
    {kOnnx, "Atan", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_ATAN},
    {kOnnx, "Atanh", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_ATANH},
    {kOnnx, "Ceil", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_CEIL},
    {kOnnx, "Cos", 1, 1, 0, LowerUnary, host::OfDoubles, DML_OPERATOR_ELEMENT_WISE_COS},
    {kOnnx, "Cosh", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_COSH},
    {kOnnx, "Erf", 1, 1, 0, LowerUnary, host::OfDoubles, DML_OPERATOR_ELEMENT_WISE_ERF},
    {kOnnx, "Exp", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_EXP},
    {kOnnx, "Floor", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_FLOOR},
    {kOnnx, "Log", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_LOG},
    {kOnnx, "Neg", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_NEGATE},
    {kOnnx, "Not", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_LOGICAL_NOT},
    {kOnnx, "BitwiseNot", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_BIT_NOT},
    {kOnnx, "Reciprocal", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_RECIP},
    {kOnnx, "Round", 1, 1, 0, LowerRound, host::Unary},
    {kOnnx, "Sign", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_SIGN},
    {kOnnx, "Sin", 1, 1, 0, LowerUnary, host::OfDoubles, DML_OPERATOR_ELEMENT_WISE_SIN},
    {kOnnx, "Sinh", 1, 1, 0, LowerUnary, nullptr, DML_OPERATOR_ELEMENT_WISE_SINH},
    {kOnnx, "Sqrt", 1, 1, 0, LowerUnary, host::Unary, DML_OPERATOR_ELEMENT_WISE_SQRT},
    {kOnnx, "Tan", 1, 1, 0, LowerUnary, host::OfDoubles, DML_OPERATOR_ELEMENT_WISE_TAN},
    {kOnnx, "IsNaN", 1, 1, 0, LowerIsNan, host::OfDoubles},
    {kOnnx, "IsInf", 1, 1, 0, LowerIsInf, host::OfDoubles},
    {kOnnx, "Add", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_ADD},
    {kOnnx, "Sub", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_SUBTRACT},
    {kOnnx, "Mul", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_MULTIPLY},
    {kOnnx, "Div", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_DIVIDE},
    {kOnnx, "Mod", 2, 2, 0, LowerMod, host::Binary},
    {kOnnx, "Pow", 2, 2, 0, LowerPow, host::Binary},
    {kOnnx, "And", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_LOGICAL_AND},
    {kOnnx, "Or", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_LOGICAL_OR},
    {kOnnx, "Xor", 2, 2, 0, LowerBinary, host::Binary, DML_OPERATOR_ELEMENT_WISE_LOGICAL_XOR},
    {kOnnx, "BitwiseAnd", 2, 2, 0, LowerBinary, nullptr, DML_OPERATOR_ELEMENT_WISE_BIT_AND},
    {kOnnx, "BitwiseOr", 2, 2, 0, LowerBinary, nullptr, DML_OPERATOR_ELEMENT_WISE_BIT_OR},
    {kOnnx, "BitwiseXor", 2, 2, 0, LowerBinary, nullptr, DML_OPERATOR_ELEMENT_WISE_BIT_XOR},
    {kOnnx, "BitShift", 2, 2, 0, LowerBitShift, nullptr},
    {kOnnx, "Equal", 2, 2, 0, LowerCompare, host::Compare, DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS},
    {kOnnx, "Greater", 2, 2, 0, LowerCompare, host::Compare, DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN},
    {kOnnx, "GreaterOrEqual", 2, 2, 0, LowerCompare, host::Compare,
     DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL},
    {kOnnx, "Less", 2, 2, 0, LowerCompare, host::Compare, DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN},
    {kOnnx, "LessOrEqual", 2, 2, 0, LowerCompare, host::Compare,
     DML_OPERATOR_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL},
    {kOnnx, "Sum", 1, 255, 0, LowerMany, nullptr, DML_OPERATOR_ELEMENT_WISE_ADD},
    {kOnnx, "Mean", 1, 255, 0, LowerMany, nullptr, DML_OPERATOR_ELEMENT_WISE_ADD},
    {kOnnx, "Max", 1, 255, 0, LowerMany, host::Binary, DML_OPERATOR_ELEMENT_WISE_MAX},
    {kOnnx, "Min", 1, 255, 0, LowerMany, host::Binary, DML_OPERATOR_ELEMENT_WISE_MIN},
    {kOnnx, "Where", 3, 3, 0, LowerWhere, host::Where},
    {kOnnx, "Cast", 1, 1, 0, LowerCast, host::Cast},
    {kOnnx, "CastLike", 2, 2, 0, LowerCastLike, host::Cast},
    {kOnnx, "Clip", 1, 3, 0, LowerClip, nullptr},
};

}  // namespace

std::span<const OperatorRow> ElementOperators() { return kElementRows; }

}  // namespace anydml::onnx
