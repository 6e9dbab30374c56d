#include "ops/element/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "base/half.h"
#include "ops/numbers/math/saturate.h"

namespace anydml {
namespace {

bool IsIntegral(float value) { return std::isfinite(value) && std::trunc(value) == value; }

// The number modulo 2^64.
uint64_t Modulo64(float integral) {
  integral = std::fmod(integral, 0x1p64f);
  if (integral < -0x1p63f) integral += 0x1p64f;
  return integral < 0 ? static_cast<uint64_t>(static_cast<int64_t>(integral))
                      : static_cast<uint64_t>(integral);
}

const ScaleBias* FindScaleBias(const OperatorDesc& desc) {
  for (const FieldValue& value : desc.fields) {
    if (const auto* scale_bias = std::get_if<ScaleBias>(&value)) return scale_bias;
  }
  return nullptr;
}

Class Signed(Class c) { return c == Class::kU32 ? Class::kI32 : c == Class::kU64 ? Class::kI64 : c; }

}  // namespace

DataType BitsOf(DataType type) {
  switch (BitSize(type)) {
    case 8:
      return DataType::kUInt8;
    case 16:
      return DataType::kUInt16;
    case 32:
      return DataType::kUInt32;
    case 64:
      return DataType::kUInt64;
    default:
      return type;
  }
}

ElementBuilder::ElementBuilder(const OperatorDesc& desc)
    : desc_(desc), inputs_(desc.inputs()), outputs_(desc.outputs()) {
  const TensorDesc& whole = *outputs_[0];
  // A dimension in which some tensors have blocks becomes several loops, the coarsest blocks first.
  for (uint32_t d = 0; d < whole.rank; ++d) {
    uint32_t blocks = 1;
    while (blocks != whole.sizes[d]) {
      uint32_t next = whole.sizes[d];
      for (const TensorDesc* tensor : inputs_) {
        if (tensor != nullptr && d < tensor->rank && tensor->sizes[d] > blocks) {
          next = std::min(next, tensor->sizes[d]);
        }
      }
      problem_.sizes[problem_.rank++] = next / blocks;
      blocks = next;
    }
    if (whole.sizes[d] == 1) problem_.sizes[problem_.rank++] = 1;
  }
  for (const TensorDesc* tensor : inputs_) Append(tensor, &problem_.inputs);
  for (const TensorDesc* tensor : outputs_) Append(tensor, &problem_.outputs);
}

void ElementBuilder::Append(const TensorDesc* tensor, std::vector<ElementOperand>* operands) {
  ElementOperand& operand = operands->emplace_back();
  if (tensor == nullptr) return;
  operand.type = tensor->type;
  if (ElementCount(*tensor) == 1) return;  // broadcast; its rank does not matter
  uint32_t loop = 0;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    const uint64_t elements = tensor->sizes[d];
    uint64_t blocks = 1;  // blocks of the loops so far
    do {
      blocks *= problem_.sizes[loop];
      operand.strides[loop++] =
          elements > 1 && blocks <= elements ? tensor->strides[d] * (elements / blocks) : 0;
    } while (blocks < outputs_[0]->sizes[d]);
  }
}

uint8_t ElementBuilder::LoadOr(uint32_t input, float otherwise) {
  return has_input(input) ? Load(input, Class::kF32)
                          : program().Constant(ParameterOf(otherwise), Class::kF32);
}

void ElementBuilder::ViewAsBits() {
  for (auto* operands : {&problem_.inputs, &problem_.outputs}) {
    for (ElementOperand& operand : *operands) operand.type = BitsOf(operand.type);
  }
}

// Wraps a number of 32 bits to the bits and sign of `type`: ((x & mask) ^ sign) - sign.
void ElementBuilder::WrapTo(uint8_t at, DataType type) {
  const uint32_t bits = BitSize(type);
  if (bits >= 32) return;
  program().Apply(ElementFunction::kMaskAnd, Class::kU32, {at}, (uint64_t{1} << bits) - 1);
  if (ClassOf(type) == Class::kU32) return;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  program().Apply(ElementFunction::kMaskXor, Class::kU32, {at}, sign);
  program().Apply(ElementFunction::kScaleBias, Class::kI32, {at}, 1, uint64_t{0} - sign);
}

void ElementBuilder::ApplyScaleBias(uint8_t at, Class at_class, DataType type, bool store_next) {
  const ScaleBias* s = FindScaleBias(desc_);
  if (s == nullptr) return;
  constexpr auto kFunction = ElementFunction::kScaleBias;
  const auto in_double = [&] {
    program().Apply(kFunction, Class::kF64, {at}, ParameterOf(double{s->scale}),
                    ParameterOf(double{s->bias}));
  };
  if (at_class == Class::kF32) {
    program().Apply(kFunction, at_class, {at}, ParameterOf(s->scale), ParameterOf(s->bias));
  } else if (at_class == Class::kF64) {
    in_double();
  } else if (IsIntegral(s->scale) && IsIntegral(s->bias)) {
    program().Apply(kFunction, Signed(at_class), {at}, Modulo64(s->scale), Modulo64(s->bias));
    if (!store_next) WrapTo(at, type);
  } else {
    program().Convert(at, at_class, Class::kF64, DataType::kFloat64);
    in_double();
    program().Convert(at, Class::kF64, at_class, type);
  }
}

Class ClassFor(ElementFunction function, DataType type) {
  const ElementFunctionInfo& info = InfoOf(function);
  const uint32_t classes = info.vector_classes | info.scalar_classes;
  const Class natural = ClassOf(type);
  for (const Class candidate : {natural, Signed(natural), Class::kI64}) {
    if ((classes & Bit(candidate)) != 0) return candidate;
  }
  return Class::kF64;
}

uint64_t ElementParameter(float value, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return ParameterOf(value);
    case DataType::kFloat16:
      return ParameterOf(ToFloat(ToHalf(value)));
    case DataType::kFloat64:
      return ParameterOf(double{value});
    default:
      return SaturatedBits(value, type);
  }
}

uint64_t ElementParameter(const Scalar& value, DataType type) {
  const auto as = [&]<typename T>(T element) {
    std::memcpy(&element, value.bytes.data(), sizeof(T));
    return element;
  };
  switch (type) {
    case DataType::kFloat32:
      return ParameterOf(as(float{}));
    case DataType::kFloat16:
      return ParameterOf(ToFloat(as(Half{})));
    case DataType::kInt8:
      return static_cast<uint64_t>(as(int8_t{}));
    case DataType::kInt16:
      return static_cast<uint64_t>(as(int16_t{}));
    case DataType::kInt32:
      return static_cast<uint64_t>(as(int32_t{}));
    case DataType::kUInt8:
      return as(uint8_t{});
    case DataType::kUInt16:
      return as(uint16_t{});
    case DataType::kUInt32:
      return as(uint32_t{});
    default:
      return as(uint64_t{});
  }
}

}  // namespace anydml
