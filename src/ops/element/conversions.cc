#include "ops/element/conversions.h"

#include <cmath>
#include <limits>
#include <variant>

#include "ops/numbers/math/saturate.h"

namespace anydml {
namespace {

using Function = ElementFunction;

// The zero point of a quantised tensor without one, for unsigned elements: QUANTIZE and DEQUANTIZE take the
// middle of the range, the older operators 0.
float DefaultZeroPoint(const ElementBuilder& b, DataType type) {
  const bool takes_middle = FindField(*b.desc().schema, "QuantizationType") >= 0;
  const bool is_unsigned = ClassOf(type) == Class::kU32;
  return takes_middle && is_unsigned ? std::ldexp(1.0f, static_cast<int>(BitSize(type)) - 1) : 0;
}

void ApplyQuantize(ElementBuilder& b, uint8_t value, uint8_t scale, uint8_t zero_point) {
  const DataType type = b.output_type(0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto low = static_cast<float>(static_cast<int64_t>(SaturatedBits(-kInfinity, type)));
  const auto high = static_cast<float>(static_cast<int64_t>(SaturatedBits(kInfinity, type)));
  b.program().Apply(Function::kQuantize, Class::kF32, {value, scale, zero_point}, ParameterOf(low),
                    ParameterOf(high));
  b.Store(value, Class::kF32);
}

}  // namespace

void BuildMove(ElementBuilder& b) {
  b.ViewAsBits();
  const Class type = BitSize(b.output_type(0)) == 64 ? Class::kU64 : Class::kU32;
  b.Store(b.Load(0, type), type);
}

// The load and the store convert.
void BuildCast(ElementBuilder& b, Function) {
  const DataType from = b.input_type(0), to = b.output_type(0);
  if (from == to) return BuildMove(b);
  const bool any_float = IsFloat(ClassOf(from)) || IsFloat(ClassOf(to));
  Class type;
  if (from == DataType::kFloat64 || to == DataType::kFloat64) {
    type = Class::kF64;
  } else if (any_float) {
    type = Class::kF32;
  } else {
    type = BitSize(from) == 64 || BitSize(to) == 64 ? Class::kI64 : Class::kI32;
  }
  const uint8_t at = b.Load(0, type);
  if (IsFloat(ClassOf(from)) && IsFloat(ClassOf(to))) b.program().Apply(Function::kCanonical, type, {at});
  b.Store(at, type);
}

void BuildQuantize(ElementBuilder& b, Function) {
  const uint8_t value = b.Load(0, Class::kF32);
  const uint8_t scale = b.Load(1, Class::kF32);
  const uint8_t zero_point = b.LoadOr(2, DefaultZeroPoint(b, b.output_type(0)));
  ApplyQuantize(b, value, scale, zero_point);
}

// The difference is exact, the product rounded once.
void BuildDequantize(ElementBuilder& b, Function) {
  const DataType type = b.input_type(0);
  const Class exact = BitSize(type) == 32 ? Class::kI64 : Class::kI32;
  const uint8_t value = b.Load(0, exact);
  if (b.has_input(2)) {
    b.program().Apply(Function::kSubtract, exact, {value, b.Load(2, exact)});
  } else if (const float zero_point = DefaultZeroPoint(b, type); zero_point != 0) {
    const auto bits = static_cast<uint64_t>(zero_point);
    b.program().Apply(Function::kSubtract, exact, {value, b.program().Constant(bits, exact)});
  }
  b.program().Convert(value, exact, Class::kF32, DataType::kFloat32);
  b.program().Apply(Function::kMultiply, Class::kF32, {value, b.Load(1, Class::kF32)});
  b.Store(value, Class::kF32);
}

void BuildQuantizedAdd(ElementBuilder& b, Function) {
  const auto dequantized = [&](uint32_t value_at, uint32_t scale_at, uint32_t zero_point_at) {
    const uint8_t value = b.Load(value_at, Class::kF32);
    if (b.has_input(zero_point_at)) {
      b.program().Apply(Function::kSubtract, Class::kF32, {value, b.Load(zero_point_at, Class::kF32)});
    }
    return b.program().Apply(Function::kMultiply, Class::kF32, {value, b.Load(scale_at, Class::kF32)});
  };
  const uint8_t sum = dequantized(0, 1, 2);
  b.program().Apply(Function::kAdd, Class::kF32, {sum, dequantized(3, 4, 5)});
  const uint8_t scale = b.Load(6, Class::kF32);
  ApplyQuantize(b, sum, scale, b.LoadOr(7, 0));
}

// M' = beta1 M + (1 - beta1) G, V' = beta2 V + (1 - beta2) G^2, X' = X - rate(T) M' / (sqrt(V') + epsilon).
void BuildAdam(ElementBuilder& b, Function) {
  enum { kParameters, kFirst, kSecond, kGradient, kStep };
  const auto parameter = [&](const char* name) {
    return ParameterOf(std::get<float>(b.desc().fields[FindField(*b.desc().schema, name)]));
  };
  ElementProgram& p = b.program();
  constexpr Class kF = Class::kF32;
  const uint8_t x = b.Load(kParameters, kF), m = b.Load(kFirst, kF), v = b.Load(kSecond, kF);
  const uint8_t g = b.Load(kGradient, kF), rate = b.Load(kStep, Class::kU32);
  p.Apply(Function::kAdamRate, kF, {rate}, parameter("Beta1"), parameter("Beta2"));
  p.Apply(Function::kBlend, kF, {m, g}, parameter("Beta1"));
  p.Apply(Function::kBlendSquare, kF, {v, g}, parameter("Beta2"));
  p.Apply(Function::kAdamUpdate, kF, {rate, m, v}, parameter("LearningRate"), parameter("Epsilon"));
  p.Apply(Function::kSubtract, kF, {x, rate});
  p.Store(0, x, kF);
  p.Store(1, m, kF);
  p.Store(2, v, kF);
}

}  // namespace anydml
