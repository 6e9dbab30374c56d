#include <array>
#include <bit>
#include <cstring>

#include "base/half.h"
#include "ops/element/problem.h"
#include "ops/element/reference_functions.h"
#include "ops/numbers/math/narrow.h"
#include "ops/numbers/math/saturate.h"

namespace anydml {
namespace {

// A register: the bits of a number of its class.
using Bits = uint64_t;

template <typename T>
T As(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
Bits BitsOf(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
    if (value != value) value = std::numeric_limits<T>::quiet_NaN();  // NaN results are canonical
  }
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// A number converted to class `c`; integers keep their low bits.
template <typename T>
Bits ToClass(T value, Class c) {
  switch (c) {
    case Class::kF32: {
      const auto number = static_cast<float>(value);
      Bits bits = 0;
      std::memcpy(&bits, &number, sizeof(number));  // keeps the payload of a NaN that is only moved
      return bits;
    }
    case Class::kF64:
      return BitsOf(static_cast<double>(value));
    case Class::kI32:
    case Class::kU32:
      return static_cast<uint32_t>(static_cast<uint64_t>(value));
    default:
      return static_cast<uint64_t>(value);
  }
}

template <typename T>
T Read(const std::byte* data, uint64_t element) {
  T value;
  std::memcpy(&value, data + element * sizeof(T), sizeof(T));
  return value;
}

Bits LoadElement(DataType type, Class c, const std::byte* data, uint64_t element) {
  switch (type) {
    case DataType::kFloat32:
      return ToClass(Read<float>(data, element), c);
    case DataType::kFloat16:
      return ToClass(ToFloat(Read<Half>(data, element)), c);
    case DataType::kFloat64:
      return ToClass(Read<double>(data, element), c);
    case DataType::kUInt64:
      return ToClass(Read<uint64_t>(data, element), c);
    case DataType::kUInt32:
      return ToClass(Read<uint32_t>(data, element), c);
    case DataType::kUInt16:
      return ToClass(Read<uint16_t>(data, element), c);
    case DataType::kUInt8:
      return ToClass(Read<uint8_t>(data, element), c);
    case DataType::kInt64:
      return ToClass(Read<int64_t>(data, element), c);
    case DataType::kInt32:
      return ToClass(Read<int32_t>(data, element), c);
    case DataType::kInt16:
      return ToClass(Read<int16_t>(data, element), c);
    case DataType::kInt8:
      return ToClass(Read<int8_t>(data, element), c);
    default: {
      const int32_t value =
          Get4Bits(Read<uint8_t>(data, element / 2), element % 2 != 0, type == DataType::kInt4);
      return ToClass(value, c);
    }
  }
}

// A number converted to the integer type `type`.
Bits ToInteger(Bits bits, Class c, DataType type) {
  if (c == Class::kF32) return SaturatedBits(As<float>(bits), type);
  if (c == Class::kF64) return SaturatedBits(As<double>(bits), type);
  return bits;
}

void StoreElement(Bits bits, Class c, DataType type, std::byte* data, uint64_t element) {
  if (type == DataType::kFloat16) {
    const Half half = c == Class::kF64 ? RoundToHalf(As<double>(bits)) : RoundToHalf(As<float>(bits));
    bits = half.bits;
  } else if (type == DataType::kFloat32 && c == Class::kF64) {
    bits = BitsOf(static_cast<float>(As<double>(bits)));
  } else if (!IsFloat(ClassOf(type))) {
    bits = ToInteger(bits, c, type);
  }
  if (BitSize(type) == 4) {
    const auto byte = static_cast<uint8_t>(data[element / 2]);
    data[element / 2] = std::byte{Put4Bits(byte, element % 2 != 0, static_cast<uint32_t>(bits))};
    return;
  }
  const size_t width = BitSize(type) / 8;
  std::memcpy(data + element * width, &bits, width);
}

Bits ConvertClass(const Instruction& i, Bits a) {
  switch (i.type) {
    case Class::kF32:
      return IsFloat(i.to) ? ToClass(As<float>(a), i.to)
                           : ToClass(ToInteger(a, i.type, static_cast<DataType>(i.parameters[0])), i.to);
    case Class::kF64:
      return IsFloat(i.to) ? ToClass(As<double>(a), i.to)
                           : ToClass(ToInteger(a, i.type, static_cast<DataType>(i.parameters[0])), i.to);
    case Class::kI32:
      return ToClass(As<int32_t>(a), i.to);
    case Class::kU32:
      return ToClass(As<uint32_t>(a), i.to);
    case Class::kI64:
      return ToClass(As<int64_t>(a), i.to);
    default:
      return ToClass(a, i.to);
  }
}

template <typename T>
Bits ApplyInteger(const Instruction& i, Bits a, Bits b, Bits c) {
  return BitsOf(reference::Integer(i, As<T>(a), As<T>(b), As<T>(c)));
}

Bits ApplyComparison(const Instruction& i, Bits a, Bits b) {
  switch (i.type) {
    case Class::kF32:
      return reference::Compares(i.function, As<float>(a), As<float>(b));
    case Class::kI32:
      return reference::Compares(i.function, As<int32_t>(a), As<int32_t>(b));
    case Class::kU32:
      return reference::Compares(i.function, As<uint32_t>(a), As<uint32_t>(b));
    case Class::kI64:
      return reference::Compares(i.function, As<int64_t>(a), As<int64_t>(b));
    default:
      return reference::Compares(i.function, a, b);
  }
}

Bits Apply(const Instruction& i, Bits a, Bits b, Bits c) {
  if (i.function >= ElementFunction::kEqual && i.function <= ElementFunction::kLessOrEqual) {
    return ApplyComparison(i, a, b);
  }
  if (i.function == ElementFunction::kIsNan) return std::isnan(As<float>(a));
  if (i.function == ElementFunction::kIsInfinity) return reference::IsInfinity(As<float>(a), i.parameters[0]);
  if (i.function == ElementFunction::kFloatBits) return BitsOf(As<float>(a));
  if (i.function == ElementFunction::kHalfBits) return ToHalf(As<float>(BitsOf(As<float>(a)))).bits;
  if (i.function == ElementFunction::kHalfFromBits) {
    return std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(a)}));
  }
  switch (i.type) {
    case Class::kF32:
      return BitsOf(reference::Float(i, As<float>(a), As<float>(b), As<float>(c)));
    case Class::kF64:
      return BitsOf(reference::Double(i, As<double>(a), As<double>(b)));
    case Class::kI32:
      return ApplyInteger<int32_t>(i, a, b, c);
    case Class::kU32:
      return ApplyInteger<uint32_t>(i, a, b, c);
    case Class::kI64:
      return ApplyInteger<int64_t>(i, a, b, c);
    default:
      return ApplyInteger<uint64_t>(i, a, b, c);
  }
}

// Element by element, instruction by instruction.
class ElementReference final : public Kernel {
 public:
  explicit ElementReference(const ElementProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const uint64_t elements = problem_.Elements();
    for (uint64_t element = 0; element < elements; ++element) RunElement(element, arguments);
    return {};
  }

 private:
  uint64_t OffsetOf(const ElementOperand& operand, uint64_t element) const {
    uint64_t offset = 0;
    for (uint32_t d = problem_.rank; d-- > 0; element /= problem_.sizes[d]) {
      offset += element % problem_.sizes[d] * operand.strides[d];
    }
    return offset;
  }

  void RunElement(uint64_t element, const KernelArguments& arguments) const {
    std::array<Bits, kMaxRegisters> r{};
    for (const Instruction& i : problem_.program.instructions) {
      switch (i.function) {
        case ElementFunction::kLoad: {
          const ElementOperand& input = problem_.inputs[i.sources[0]];
          r[i.target] =
              LoadElement(input.type, i.type, arguments.inputs[i.sources[0]].data, OffsetOf(input, element));
          break;
        }
        case ElementFunction::kStore: {
          const ElementOperand& output = problem_.outputs[i.target];
          StoreElement(r[i.sources[0]], i.type, output.type, arguments.outputs[i.target].data,
                       OffsetOf(output, element));
          break;
        }
        case ElementFunction::kConstant:
          r[i.target] = i.parameters[0];
          break;
        case ElementFunction::kConvert:
          r[i.target] = ConvertClass(i, r[i.sources[0]]);
          break;
        default:
          r[i.target] = Apply(i, r[i.sources[0]], r[i.sources[1]], r[i.sources[2]]);
      }
    }
  }

  ElementProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementReference(const ElementProblem& problem, const LowerContext&,
                                                     std::string*) {
  return std::make_unique<ElementReference>(problem);
}

}  // namespace anydml
