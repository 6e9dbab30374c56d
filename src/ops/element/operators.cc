// The element-wise operators: each row names the function that it applies, or the function that builds its
// program.
#include "ops/element/operators.h"

#include <limits>
#include <variant>

#include "ops/element/builder.h"
#include "ops/element/conversions.h"

namespace anydml {
namespace {

using Function = ElementFunction;

// FLOAT attributes in the schema's order, as parameters of a function of class `type`.
std::array<uint64_t, 2> FloatAttributes(const OperatorDesc& desc, Class type) {
  std::array<uint64_t, 2> parameters{};
  size_t count = 0;
  for (const FieldValue& value : desc.fields) {
    if (const auto* number = std::get_if<float>(&value)) {
      parameters[count++] = type == Class::kF64 ? ParameterOf(double{*number}) : ParameterOf(*number);
    }
  }
  return parameters;
}

const OperatorDesc* FusedActivation(const OperatorDesc& desc) {
  for (const FieldValue& value : desc.fields) {
    if (const auto* fused = std::get_if<std::shared_ptr<const OperatorDesc>>(&value)) return fused->get();
  }
  return nullptr;
}

// output = activation(function(ScaleBias(input 0), input 1, ...)), with the FLOAT attributes as parameters.
void BuildSimple(ElementBuilder& b, Function function) {
  const Class type = ClassFor(function, b.input_type(0));
  uint8_t r[3] = {};
  for (uint32_t i = 0; i < InfoOf(function).sources; ++i) r[i] = b.Load(i, type);
  b.ApplyScaleBias(r[0], type, b.input_type(0));
  const auto parameters = FloatAttributes(b.desc(), type);
  switch (InfoOf(function).sources) {
    case 1:
      b.program().Apply(function, type, {r[0]}, parameters[0], parameters[1]);
      break;
    case 2:
      b.program().Apply(function, type, {r[0], r[1]}, parameters[0], parameters[1]);
      break;
    default:
      b.program().Apply(function, type, {r[0], r[1], r[2]}, parameters[0], parameters[1]);
  }
  if (const OperatorDesc* fused = FusedActivation(b.desc())) AppendActivation(*fused, &b.program(), r[0]);
  b.Store(r[0], b.program().instructions.back().to);
}

// For functions that have another form for FLOAT16.
void BuildByType(ElementBuilder& b, Function function) {
  const Function of_half = function == Function::kErf ? Function::kErfOfHalf : Function::kGeluOfHalf;
  BuildSimple(b, b.output_type(0) == DataType::kFloat16 ? of_half : function);
}

void BuildIdentity(ElementBuilder& b, Function) {
  const DataType type = b.input_type(0);
  const Class at_class = ClassOf(type);
  const uint8_t at = b.Load(0, at_class);
  b.ApplyScaleBias(at, at_class, type, /*store_next=*/true);
  if (b.program().instructions.size() > 1) return b.Store(at, at_class);
  b.program() = {};
  BuildMove(b);
}

void BuildBits(ElementBuilder& b, Function function) {
  b.ViewAsBits();
  const uint32_t bits = BitSize(b.input_type(0));
  const Class type = bits == 64 ? Class::kU64 : Class::kU32;
  const uint8_t first = b.Load(0, type);
  if (InfoOf(function).sources == 1) {
    b.program().Apply(function, type, {first});
  } else {
    b.program().Apply(function, type, {first, b.Load(1, type)}, bits - 1);  // for shifts: the mask of the
                                                                            // amount
  }
  b.Store(first, type);
}

// For FLOAT32 and FLOAT16 without ScaleBias it changes the sign bit, so that a NaN keeps its payload.
void BuildSign(ElementBuilder& b, Function function) {
  const DataType type = b.input_type(0);
  const bool has_scale_bias =
      FindField(*b.desc().schema, "ScaleBias") >= 0 && b.desc().scale_bias("ScaleBias") != nullptr;
  if (!IsFloat(ClassOf(type)) || has_scale_bias) return BuildSimple(b, function);
  const uint64_t sign = uint64_t{1} << (BitSize(type) - 1);
  b.ViewAsBits();
  const uint8_t at = b.Load(0, Class::kU32);
  if (function == Function::kAbs) {
    b.program().Apply(Function::kMaskAnd, Class::kU32, {at}, sign - 1);
  } else {
    b.program().Apply(Function::kMaskXor, Class::kU32, {at}, sign);
  }
  b.Store(at, Class::kU32);
}

void BuildRound(ElementBuilder& b, Function) {
  constexpr Function kByMode[] = {Function::kRoundHalfToEven, Function::kRoundTowardZero,
                                  Function::kRoundHalfAway};
  BuildSimple(b, kByMode[b.desc().uint("RoundingMode")]);
}

// A bound as an element of the tensor's type: FLOAT fields are converted, unions already hold such an
// element.
uint64_t Bound(const ElementBuilder& b, const char* name) {
  const FieldValue& value = b.desc().fields[FindField(*b.desc().schema, name)];
  const DataType type = b.input_type(0);
  if (const auto* number = std::get_if<float>(&value)) return ElementParameter(*number, type);
  return ElementParameter(std::get<Scalar>(value), type);
}

void BuildClip(ElementBuilder& b, Function function) {
  const DataType type = b.input_type(0);
  const Class at_class = ClassFor(function, type);
  const uint8_t at = b.Load(0, at_class);
  b.ApplyScaleBias(at, at_class, type);
  const bool has_max = FindField(*b.desc().schema, "Max") >= 0;  // ELEMENT_WISE_THRESHOLD has none
  const uint64_t max =
      has_max ? Bound(b, "Max") : ElementParameter(std::numeric_limits<float>::infinity(), type);
  if (function == Function::kClip) {
    b.program().Apply(function, at_class, {at}, Bound(b, "Min"), max);
  } else {
    b.program().Apply(function, at_class, {at, b.Load(1, at_class)}, Bound(b, "Min"), max);
  }
  b.Store(at, at_class);
}

// Powers of integers are computed in FLOAT64 and truncated.
void BuildConstantPower(ElementBuilder& b, Function) {
  const DataType type = b.input_type(0);
  const Class at_class = ClassOf(type);
  const uint8_t at = b.Load(0, at_class);
  b.ApplyScaleBias(at, at_class, type);
  const uint64_t exponent = FloatAttributes(b.desc(), Class::kF32)[0];
  if (at_class == Class::kF32 && exponent == ParameterOf(2.0f)) {
    b.program().Apply(Function::kMultiply, at_class, {at, at});  // as exact, and ten times as fast
  } else if (at_class == Class::kF32) {
    b.program().Apply(Function::kConstantPower, at_class, {at}, exponent);
  } else {
    b.program().Convert(at, at_class, Class::kF64, DataType::kFloat64);
    const uint8_t power = b.program().Constant(FloatAttributes(b.desc(), Class::kF64)[0], Class::kF64);
    b.program().Apply(Function::kPowerRounded, Class::kF64, {at, power});
    return b.Store(at, Class::kF64);
  }
  b.Store(at, at_class);
}

void BuildPower(ElementBuilder& b, Function) {
  const DataType base = b.input_type(0);
  const Class base_class = ClassOf(base);
  const Class exponent_class = ClassOf(b.input_type(1));
  const uint64_t flags = (exponent_class == Class::kU32 ? kUnsignedExponent : 0) |
                         (base_class == Class::kU32 ? kUnsignedBase : 0);
  const uint8_t at = b.Load(0, base_class);
  b.ApplyScaleBias(at, base_class, base);
  if (base_class == Class::kF32) {
    const Function function = exponent_class == Class::kF32 ? Function::kPower : Function::kPowerInteger;
    b.program().Apply(function, Class::kF32, {at, b.Load(1, exponent_class)}, flags);
    return b.Store(at, Class::kF32);
  }
  if (exponent_class != Class::kF32) {
    b.program().Apply(Function::kPowerWrap, Class::kI32, {at, b.Load(1, exponent_class)}, flags);
    return b.Store(at, Class::kI32);
  }
  b.program().Convert(at, base_class, Class::kF64, DataType::kFloat64);
  b.program().Apply(Function::kPowerRounded, Class::kF64, {at, b.Load(1, Class::kF64)});
  b.Store(at, Class::kF64);
}

void BuildSelect(ElementBuilder& b, Function function) {
  const Class type = BitSize(b.output_type(0)) == 64 ? Class::kU64 : Class::kU32;
  b.ViewAsBits();
  const uint8_t condition = b.Load(0, type);
  b.program().Apply(function, type, {condition, b.Load(1, type), b.Load(2, type)});
  b.Store(condition, type);
}

void BuildIsInfinity(ElementBuilder& b, Function function) {
  const uint8_t at = b.Load(0, Class::kF32);
  b.program().Apply(function, Class::kF32, {at}, b.desc().uint("InfinityMode"));
  b.Store(at, Class::kU32);
}

void BuildSoftplus(ElementBuilder& b, Function function) {
  const uint8_t at = b.Load(0, Class::kF32);
  AppendActivation(b.desc(), &b.program(), at);
  b.Store(at, Class::kF32);
}

struct Row {
  OperatorType type;
  Function function;
  void (*build)(ElementBuilder&, Function) = BuildSimple;
};

using Type = OperatorType;
constexpr Function kNone = Function::kLoad;

constexpr Row kRows[] = {
    {Type::kElementWiseIdentity, kNone, BuildIdentity},
    {Type::kElementWiseAbs, Function::kAbs, BuildSign},
    {Type::kElementWiseAcos, Function::kAcos},
    {Type::kElementWiseAdd, Function::kAdd},
    {Type::kElementWiseAsin, Function::kAsin},
    {Type::kElementWiseAtan, Function::kAtan},
    {Type::kElementWiseCeil, Function::kCeil},
    {Type::kElementWiseClip, Function::kClip, BuildClip},
    {Type::kElementWiseCos, Function::kCos},
    {Type::kElementWiseDivide, Function::kDivide},
    {Type::kElementWiseExp, Function::kExp},
    {Type::kElementWiseFloor, Function::kFloor},
    {Type::kElementWiseLog, Function::kLog},
    {Type::kElementWiseLogicalAnd, Function::kLogicalAnd},
    {Type::kElementWiseLogicalEquals, Function::kEqual},
    {Type::kElementWiseLogicalGreaterThan, Function::kGreater},
    {Type::kElementWiseLogicalLessThan, Function::kLess},
    {Type::kElementWiseLogicalNot, Function::kLogicalNot},
    {Type::kElementWiseLogicalOr, Function::kLogicalOr},
    {Type::kElementWiseLogicalXor, Function::kLogicalXor},
    {Type::kElementWiseMax, Function::kMaximum},
    {Type::kElementWiseMean, Function::kMean},
    {Type::kElementWiseMin, Function::kMinimum},
    {Type::kElementWiseMultiply, Function::kMultiply},
    {Type::kElementWisePow, kNone, BuildPower},
    {Type::kElementWiseConstantPow, kNone, BuildConstantPower},
    {Type::kElementWiseRecip, Function::kReciprocal},
    {Type::kElementWiseSin, Function::kSin},
    {Type::kElementWiseSqrt, Function::kSquareRoot},
    {Type::kElementWiseSubtract, Function::kSubtract},
    {Type::kElementWiseTan, Function::kTan},
    {Type::kElementWiseThreshold, Function::kClip, BuildClip},
    {Type::kElementWiseQuantizeLinear, kNone, BuildQuantize},
    {Type::kElementWiseDequantizeLinear, kNone, BuildDequantize},
    {Type::kElementWiseSign, Function::kSign},
    {Type::kElementWiseIsNan, Function::kIsNan},
    {Type::kElementWiseErf, Function::kErf, BuildByType},
    {Type::kElementWiseSinh, Function::kSinh},
    {Type::kElementWiseCosh, Function::kCosh},
    {Type::kElementWiseTanh, Function::kTanh},
    {Type::kElementWiseAsinh, Function::kAsinh},
    {Type::kElementWiseAcosh, Function::kAcosh},
    {Type::kElementWiseAtanh, Function::kAtanh},
    {Type::kElementWiseIf, Function::kSelect, BuildSelect},
    {Type::kElementWiseAdd1, Function::kAdd},
    {Type::kElementWiseBitShiftLeft, Function::kShiftLeft, BuildBits},
    {Type::kElementWiseBitShiftRight, Function::kShiftRight, BuildBits},
    {Type::kElementWiseRound, kNone, BuildRound},
    {Type::kElementWiseIsInfinity, Function::kIsInfinity, BuildIsInfinity},
    {Type::kElementWiseModulusTruncate, Function::kModulusTruncate},
    {Type::kElementWiseModulusFloor, Function::kModulusFloor},
    {Type::kElementWiseBitAnd, Function::kBitAnd, BuildBits},
    {Type::kElementWiseBitOr, Function::kBitOr, BuildBits},
    {Type::kElementWiseBitXor, Function::kBitXor, BuildBits},
    {Type::kElementWiseBitNot, Function::kBitNot, BuildBits},
    {Type::kElementWiseBitCount, Function::kBitCount, BuildBits},
    {Type::kElementWiseLogicalGreaterThanOrEqual, Function::kGreaterOrEqual},
    {Type::kElementWiseLogicalLessThanOrEqual, Function::kLessOrEqual},
    {Type::kElementWiseAtanYx, Function::kAtan2},
    {Type::kElementWiseClipGrad, Function::kClipGrad, BuildClip},
    {Type::kElementWiseDifferenceSquare, Function::kDifferenceSquare},
    {Type::kElementWiseQuantizedLinearAdd, kNone, BuildQuantizedAdd},
    {Type::kElementWiseClip1, Function::kClip, BuildClip},
    {Type::kElementWiseClipGrad1, Function::kClipGrad, BuildClip},
    {Type::kElementWiseNegate, Function::kNegate, BuildSign},
    {Type::kActivationElu, Function::kElu},
    {Type::kActivationHardSigmoid, Function::kHardSigmoid},
    {Type::kActivationIdentity, kNone, BuildIdentity},
    {Type::kActivationLeakyRelu, Function::kLeakyRelu},
    {Type::kActivationLinear, Function::kScaleBias},
    {Type::kActivationParameterizedRelu, Function::kParameterizedRelu},
    {Type::kActivationParametricSoftplus, Function::kSoftplus},
    {Type::kActivationRelu, Function::kRelu},
    {Type::kActivationScaledElu, Function::kScaledElu},
    {Type::kActivationScaledTanh, Function::kScaledTanh},
    {Type::kActivationSigmoid, Function::kSigmoid},
    {Type::kActivationSoftplus, Function::kSoftplus, BuildSoftplus},
    {Type::kActivationSoftsign, Function::kSoftsign},
    {Type::kActivationTanh, Function::kTanh},
    {Type::kActivationThresholdedRelu, Function::kThresholdedRelu},
    {Type::kActivationShrink, Function::kShrink},
    {Type::kActivationCelu, Function::kCelu},
    {Type::kActivationReluGrad, Function::kReluGrad},
    {Type::kActivationGelu, Function::kGelu, BuildByType},
    {Type::kActivationSwish, Function::kSwish},
    {Type::kActivationHardSwish, Function::kHardSwish},
    {Type::kCast, kNone, BuildCast},
    {Type::kQuantize, kNone, BuildQuantize},
    {Type::kDequantize, kNone, BuildDequantize},
    {Type::kAdamOptimizer, kNone, BuildAdam},
};

const Row* FindRow(OperatorType type) {
  for (const Row& row : kRows) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

constexpr auto kTypes = [] {
  std::array<OperatorType, std::size(kRows)> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = kRows[i].type;
  return types;
}();

}  // namespace

void AppendActivation(const OperatorDesc& fused, ElementProgram* program, uint8_t at) {
  const auto type = static_cast<OperatorType>(fused.schema->type);
  auto parameters = FloatAttributes(fused, Class::kF32);
  switch (type) {
    case Type::kActivationIdentity:
      return;
    case Type::kActivationSoftplus: {
      // ln(1 + e^(s x)) / s. A zero s, which clients of the recurrent operators leave in descriptions, means
      // 1.
      float steepness = std::bit_cast<float>(static_cast<uint32_t>(parameters[0]));
      if (steepness == 0) steepness = 1;
      parameters = {ParameterOf(1 / steepness), ParameterOf(steepness)};
      break;
    }
    default:
      break;
  }
  program->Apply(FindRow(type)->function, Class::kF32, {at}, parameters[0], parameters[1]);
}

std::span<const OperatorType> ElementOperatorTypes() { return kTypes; }

bool IsMove(const ElementProblem& problem) {
  // A pair of CASTs has two instructions as well, but its intermediate numbers may have fewer bits.
  const auto& instructions = problem.program.instructions;
  return instructions.size() == 2 && problem.inputs[0].type == problem.outputs[0].type &&
         !IsFloat(instructions[0].type);
}

ElementProblem BuildElementProblem(const OperatorDesc& desc) {
  ElementBuilder builder(desc);
  const Row& row = *FindRow(static_cast<OperatorType>(desc.schema->type));
  row.build(builder, row.function);
  return std::move(builder).Take();
}

}  // namespace anydml
