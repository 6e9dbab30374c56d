#include "ops/element/cuda/flat.cuh"

namespace anydml::element_cuda {
namespace {

template <typename Row>
FlatLaunch* FlatOfComparison(DataType from, DataType to) {
  if (to != DataType::kUInt8) return nullptr;
  if (from == DataType::kFloat32) return LaunchFlat<RowBody<Row>, 2, float, Truth>;
  if (from == DataType::kFloat16) return LaunchFlat<RowBody<Row>, 2, Half, Truth>;
  return nullptr;
}

FlatLaunch* FlatOfQuantize(DataType to) {
  using Body = RowBody<rows::Quantize>;
  if (to == DataType::kInt8) return LaunchFlat<Body, 1, float, int8_t>;
  if (to == DataType::kUInt8) return LaunchFlat<Body, 1, float, uint8_t>;
  return nullptr;
}

FlatLaunch* FlatOfCast(DataType from, DataType to) {
  using Body = RowBody<rows::Canonical>;
  if (from == DataType::kFloat32 && to == DataType::kFloat16) return LaunchFlat<Body, 1, float, Half>;
  if (from == DataType::kFloat16 && to == DataType::kFloat32) return LaunchFlat<Body, 1, Half, float>;
  return nullptr;
}

template <typename From>
FlatLaunch* FlatOfDequantize(DataType to) {
  if (to == DataType::kFloat32) return LaunchFlat<DequantizeBody, 1, From, float>;
  if (to == DataType::kFloat16) return LaunchFlat<DequantizeBody, 1, From, Half>;
  return nullptr;
}

}  // namespace

FlatLaunch* FindFlatArithmetic(ElementFunction function, uint32_t varying, DataType from, DataType to) {
  using F = ElementFunction;
  if (varying == 1) {
    switch (function) {
      case F::kRelu:
        return FlatOfFloats<rows::Relu, 1>(from, to);
      case F::kLeakyRelu:
        return FlatOfFloats<rows::LeakyRelu, 1>(from, to);
      case F::kClip:
        return FlatOfFloats<rows::Clip, 1>(from, to);
      case F::kScaleBias:
        return FlatOfFloats<rows::ScaleBias, 1>(from, to);
      case F::kSquareRoot:
        return FlatOfFloats<rows::SquareRoot, 1>(from, to);
      case F::kHardSwish:
        return FlatOfFloats<rows::HardSwish, 1>(from, to);
      case F::kCanonical:
        return FlatOfCast(from, to);
      case F::kQuantize:
        if (from == DataType::kFloat32) return FlatOfQuantize(to);
        return from == DataType::kFloat16 ? FindFlatQuantizeOfHalf(to) : nullptr;
      default:
        return nullptr;
    }
  }
  switch (function) {
    case F::kAdd:
      return FlatOfFloats<rows::Add, 2>(from, to);
    case F::kSubtract:
      return FlatOfFloats<rows::Subtract, 2>(from, to);
    case F::kMultiply:
      return FlatOfFloats<rows::Multiply, 2>(from, to);
    case F::kDivide:
      return FlatOfFloats<rows::Divide, 2>(from, to);
    case F::kMaximum:
      return FlatOfFloats<rows::Maximum, 2>(from, to);
    case F::kMinimum:
      return FlatOfFloats<rows::Minimum, 2>(from, to);
    case F::kEqual:
      return FlatOfComparison<rows::Equal>(from, to);
    case F::kGreater:
      return FlatOfComparison<rows::Greater>(from, to);
    case F::kLess:
      return FlatOfComparison<rows::Less>(from, to);
    case F::kGreaterOrEqual:
      return FlatOfComparison<rows::GreaterOrEqual>(from, to);
    case F::kLessOrEqual:
      return FlatOfComparison<rows::LessOrEqual>(from, to);
    default:
      return nullptr;
  }
}

FlatLaunch* FindFlatDequantize(DataType from, DataType to) {
  if (from == DataType::kInt8) return FlatOfDequantize<int8_t>(to);
  return from == DataType::kUInt8 ? FlatOfDequantize<uint8_t>(to) : nullptr;
}

}  // namespace anydml::element_cuda
