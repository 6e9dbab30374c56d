#include <algorithm>

#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

bool IsShort(ElementType type) { return type == ElementType::kInt16 || type == ElementType::kUInt16; }

// Blocks of a scale or zero point; `size` is 0 without blocks.
struct Blocks {
  uint32_t axis = 0;
  int64_t size = 0;
};

// The axis of the parameters. A bias has one dimension, and exporters leave the default.
Status ParameterAxis(Lowering& n, uint32_t* out) {
  const int64_t given = n.HasAttribute("axis") ? n.Int("axis", 1) : n.rank(0) == 1 ? 0 : 1;
  return ResolveAxis(given, n.rank(0), out);
}

// Of each block; the last one may be partial.
Status CheckBlocks(Lowering& n, const char* name, const Shape& given, const Blocks& blocks) {
  const Shape& x = n.shape(0);
  Shape wanted = x;
  wanted[blocks.axis] = x[blocks.axis] / blocks.size + (x[blocks.axis] % blocks.size != 0 ? 1 : 0);
  if (given == wanted) return {};
  return InvalidArgument(name, " has the shape ", ShapeToString(given), "; block_size ", blocks.size,
                         " along axis ", blocks.axis, " of ", ShapeToString(x), " needs ",
                         ShapeToString(wanted));
}

// A scale or zero point in the input's coordinates: one for all, along an axis, or in blocks.
Status ParameterView(Lowering& n, size_t input, const Blocks& blocks, View* out) {
  const View parameter = n.In(input);
  const size_t rank = std::max<size_t>(1, n.rank(0));
  uint64_t count = 1;
  for (const uint32_t size : parameter.sizes) count *= size;
  if (blocks.size > 0) {
    ANYDML_RETURN_IF_ERROR(CheckBlocks(n, input == 1 ? "scale" : "zero point", n.shape(input), blocks));
    *out = parameter;
  } else if (count == 1) {
    *out = Reshaped(parameter, Shape(rank, 1));
  } else {
    uint32_t axis = 0;
    if (n.rank(0) == 0) return InvalidArgument("a scale of ", count, " elements for a scalar");
    ANYDML_RETURN_IF_ERROR(ParameterAxis(n, &axis));
    if (count != static_cast<uint64_t>(n.shape(0)[axis])) {
      return InvalidArgument("a scale of ", count, " elements for an axis of ", n.shape(0)[axis]);
    }
    *out = AlongAxis(parameter, rank, axis);
  }
  return {};
}

// A zero point of 0, because the newer operators would take the middle of an unsigned type.
View ZeroPoint(Lowering& n, ElementType type, const Shape& shape) {
  std::byte* bytes = nullptr;
  return n.Constant(MakeTensor(type, shape, &bytes));
}

struct Parameters {
  View scale, zero;
  bool has_zero = false;
  bool blocks = false;  // the newer operators are needed
};

template <typename Desc>
Status AddBlocked(Lowering& n, DML_OPERATOR_TYPE type, const Parameters& parameters, const View& x, View* y) {
  const View quantization[] = {parameters.scale, parameters.zero};
  const DML_TENSOR_DESC* const input = n.graph().In(x);
  const Desc desc{input, DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT, 2, n.graph().InArray(quantization),
                  n.graph().Out(y)};
  return n.graph().Add(type, desc);
}

// Expands parameters to one per element if DirectML lacks such blocks: a partial one at the end, or a type
// that only the element-wise operators take.
Status Spread(Lowering& n, const Blocks& blocks, View* parameter) {
  const Shape& x = n.shape(0);
  const std::span<const int64_t> sizes(x);
  const int64_t outer = ElementCount(sizes.first(blocks.axis)).value_or(0), length = x[blocks.axis],
                inner = ElementCount(sizes.subspan(blocks.axis + 1)).value_or(0),
                count = parameter->sizes[blocks.axis], size = std::min(blocks.size, length);
  View spread;
  const View each =
      Broadcast(Reshaped(*parameter, Shape{outer, count, 1, inner}), Shape{outer, count, size, inner});
  ANYDML_RETURN_IF_ERROR(Pack(n, each, &spread));
  spread = Reshaped(spread, Shape{outer, count * size, inner});
  if (count * size != length) ANYDML_RETURN_IF_ERROR(Part(n, spread, 1, 0, length, &spread));
  *parameter = Reshaped(spread, x);
  return {};
}

// The same for four bits, via numbers, because nothing else reads or writes them.
Status SpreadFourBits(Lowering& n, ElementType type, const Blocks& blocks, View* zero) {
  const Shape one(zero->rank(), 1);
  const Parameters plain{n.Constant(FromDoubles(ElementType::kFloat, one, std::vector<double>{1})),
                         ZeroPoint(n, type, one), true, true};
  View numbers = n.New(DataType::kFloat32, ShapeOf(*zero));
  ANYDML_RETURN_IF_ERROR(
      AddBlocked<DML_DEQUANTIZE_OPERATOR_DESC>(n, DML_OPERATOR_DEQUANTIZE, plain, *zero, &numbers));
  ANYDML_RETURN_IF_ERROR(Spread(n, blocks, &numbers));
  *zero = n.New(DmlType(type), n.shape(0));
  return AddBlocked<DML_QUANTIZE_OPERATOR_DESC>(n, DML_OPERATOR_QUANTIZE, plain, numbers, zero);
}

Status ReadBlocks(Lowering& n, Blocks* out) {
  out->size = n.Int("block_size", 0);
  if (out->size < 0) return InvalidArgument("block_size is ", out->size, "; 0 or more is allowed");
  if (out->size == 0) return {};
  if (n.rank(0) == 0) return InvalidArgument("block_size is ", out->size, " for a scalar; 0 is allowed");
  return ParameterAxis(n, &out->axis);
}

Status Resolve(Lowering& n, ElementType quantized, Parameters* out) {
  Blocks blocks;
  ANYDML_RETURN_IF_ERROR(ReadBlocks(n, &blocks));
  const bool four = BitsOf(quantized) == 4;
  out->has_zero = n.Has(2);
  ANYDML_RETURN_IF_ERROR(ParameterView(n, 1, blocks, &out->scale));
  if (n.Has(2)) ANYDML_RETURN_IF_ERROR(ParameterView(n, 2, blocks, &out->zero));
  const bool blocked = blocks.size > 0;
  const bool spread = blocked && ElementCount(n.shape(0)).value_or(0) > 0 &&
                      ((n.shape(0)[blocks.axis] % blocks.size != 0 && out->scale.sizes[blocks.axis] > 1) ||
                       BitsOf(quantized) > 8);
  if (spread) {
    ANYDML_RETURN_IF_ERROR(Spread(n, blocks, &out->scale));
    if (n.Has(2))
      ANYDML_RETURN_IF_ERROR(four ? SpreadFourBits(n, quantized, blocks, &out->zero)
                                  : Spread(n, blocks, &out->zero));
  }
  out->blocks = four || (blocked && !spread);
  if (!out->has_zero && out->blocks) {
    if (ElementCount(ShapeOf(out->scale)).value_or(INT64_MAX) > (int64_t{1} << 28))
      return Unsupported("so many blocks");
    out->zero = ZeroPoint(n, quantized, ShapeOf(out->scale));
    out->has_zero = true;
  }
  if (out->blocks) return {};
  const Shape shape = n.shape(0).empty() ? Shape{1} : n.shape(0);
  out->scale = Broadcast(out->scale, shape);
  if (out->has_zero) out->zero = Broadcast(out->zero, shape);
  return {};
}

// Sixteen bits, which DirectML's operators lack, step by step.
Status QuantizeWide(Lowering& n, const Parameters& p, ElementType type, View* y) {
  View x, scale, steps, zero;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(0), DataType::kFloat32, &x));
  ANYDML_RETURN_IF_ERROR(Cast(n, p.scale, DataType::kFloat32, &scale));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_DIVIDE, x, scale, &steps));
  View rounded = n.New(steps.type, ShapeOf(steps)), limited = rounded;
  const DML_ELEMENT_WISE_ROUND_OPERATOR_DESC round{n.graph().In(steps), n.graph().Out(&rounded),
                                                   DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_ROUND, round));
  if (p.has_zero) {
    ANYDML_RETURN_IF_ERROR(Cast(n, p.zero, steps.type, &zero));
    ANYDML_RETURN_IF_ERROR(Binary(n, kAdd, rounded, zero, &rounded));
  }
  const float least = type == ElementType::kInt16 ? -32768 : 0;
  const DML_ELEMENT_WISE_CLIP_OPERATOR_DESC clip{n.graph().In(rounded), n.graph().Out(&limited), nullptr,
                                                 least, least + 65535};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_CLIP, clip));
  return Cast(n, limited, DmlType(type), y);
}

Status DequantizeWide(Lowering& n, const Parameters& p, View* y) {
  View steps, zero;
  ANYDML_RETURN_IF_ERROR(Cast(n, n.In(0), p.scale.type, &steps));
  if (p.has_zero) {
    ANYDML_RETURN_IF_ERROR(Cast(n, p.zero, p.scale.type, &zero));
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, steps, zero, &steps));
  }
  return Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, steps, p.scale, y);
}

Status QuantizeLinear(Lowering& n) {
  ElementType type = ElementType::kUInt8;
  if (const int64_t given = n.Int("output_dtype", 0); given != 0) type = static_cast<ElementType>(given);
  if (n.Has(2)) type = n.type(2);
  Parameters p;
  ANYDML_RETURN_IF_ERROR(Resolve(n, type, &p));
  const View x = n.In(0);
  View y = n.New(DmlType(type), n.shape(0));
  if (p.blocks) {
    ANYDML_RETURN_IF_ERROR(AddBlocked<DML_QUANTIZE_OPERATOR_DESC>(n, DML_OPERATOR_QUANTIZE, p, x, &y));
  } else if (IsShort(type)) {
    ANYDML_RETURN_IF_ERROR(QuantizeWide(n, p, type, &y));
  } else {
    const DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(p.scale),
                                                              n.graph().In(p.has_zero ? &p.zero : nullptr),
                                                              n.graph().Out(&y)};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR, desc));
  }
  n.Return(0, y, type, n.shape(0));
  return {};
}

Status DequantizeLinear(Lowering& n) {
  Parameters p;
  ANYDML_RETURN_IF_ERROR(Resolve(n, n.type(0), &p));
  const View x = n.In(0);
  View y = n.New(n.dml_type(1), n.shape(0));
  if (p.blocks) {
    ANYDML_RETURN_IF_ERROR(AddBlocked<DML_DEQUANTIZE_OPERATOR_DESC>(n, DML_OPERATOR_DEQUANTIZE, p, x, &y));
  } else if (IsShort(n.type(0)) && n.type(1) == ElementType::kFloat) {
    ANYDML_RETURN_IF_ERROR(DequantizeWide(n, p, &y));
  } else {
    const DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(p.scale),
                                                                n.graph().In(p.has_zero ? &p.zero : nullptr),
                                                                n.graph().Out(&y)};
    ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR, desc));
  }
  n.Return(0, y, n.type(1), n.shape(0));
  return {};
}

Status DynamicQuantizeLinear(Lowering& n) {
  if (ElementCount(n.shape(0)) == 0) {  // quantised zeros: any scale will do
    n.Return(0, MakeTensor(ElementType::kUInt8, n.shape(0), std::vector<std::byte>()));
    n.Return(1, FromDoubles(ElementType::kFloat, {}, std::vector<double>{1}));
    n.Return(2, MakeTensor(ElementType::kUInt8, {}, std::vector<std::byte>(1)));
    return {};
  }
  const View x = n.In(0);
  const Shape one(x.rank(), 1);
  View y = n.New(DataType::kUInt8, n.shape(0)), scale = n.New(DataType::kFloat32, one),
       zero = n.New(DataType::kUInt8, one);
  const DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y),
                                                       n.graph().Out(&scale), n.graph().Out(&zero)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR, desc));
  n.Return(0, y, ElementType::kUInt8, n.shape(0));
  n.Return(1, scale, ElementType::kFloat, {});
  n.Return(2, zero, ElementType::kUInt8, {});
  return {};
}

constexpr OperatorRow kQuantizationRows[] = {
    {kOnnx, "QuantizeLinear", 2, 3, 0, QuantizeLinear, nullptr},
    {kOnnx, "DequantizeLinear", 2, 3, 0, DequantizeLinear, nullptr},
    {kOnnx, "DynamicQuantizeLinear", 1, 1, 0, DynamicQuantizeLinear, nullptr},
    {kMicrosoft, "QuantizeLinear", 2, 3, 0, QuantizeLinear, nullptr},
    {kMicrosoft, "DequantizeLinear", 2, 3, 0, DequantizeLinear, nullptr},
};

}  // namespace

std::span<const OperatorRow> QuantizationOperators() { return kQuantizationRows; }

}  // namespace anydml::onnx
