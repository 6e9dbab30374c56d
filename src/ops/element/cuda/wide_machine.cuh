// The steps of the machine with 64-bit registers, which hold numbers of every class. Operations on an element
// are called, not inlined: memory is slow enough for that.
#pragma once

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/element_functions.cuh"
#include "ops/element/cuda/thread.cuh"

namespace anydml::element_cuda {

using WideThread = Thread<uint64_t>;
using WideRegister = Pack<uint64_t, WideThread::kElements>;

// Converts a register's bits to a number, and back.
template <typename T>
ANYDML_LANE T AsNumber(uint64_t bits) {
  if constexpr (sizeof(T) == 8) {
    return lane::detail::Cast<T>(bits);
  } else {
    return lane::detail::Cast<T>(static_cast<uint32_t>(bits));
  }
}
template <typename T>
ANYDML_LANE uint64_t AsWideBits(T value) {
  if constexpr (sizeof(T) == 8) {
    return lane::detail::Cast<uint64_t>(value);
  } else {
    return lane::detail::Cast<uint32_t>(value);
  }
}

// Converts a number to class `to`; integers keep their low bits.
template <typename T>
ANYDML_LANE uint64_t NumberToClass(T value, Class to) {
  switch (to) {
    case Class::kF32:
      return AsWideBits(static_cast<float>(value));
    case Class::kF64:
      return AsWideBits(static_cast<double>(value));
    case Class::kI32:
    case Class::kU32:
      return static_cast<uint32_t>(static_cast<uint64_t>(value));
    default:
      return static_cast<uint64_t>(value);
  }
}
// Floating point is converted to an integer by its range.
template <typename T>
ANYDML_LANE uint64_t FloatToClass(T value, Class to, DataType range) {
  if (to == Class::kF32) return AsWideBits(static_cast<float>(value));
  if (to == Class::kF64) return AsWideBits(static_cast<double>(value));
  const uint64_t whole = SaturatedBits(value, range);
  return IsWide(to) ? whole : static_cast<uint32_t>(whole);
}

// Converts an element's bits to a number of a class.
ANYDML_CALLED inline uint64_t FromElement(uint64_t bits, DataType type, Class to) {
  switch (type) {
    case DataType::kFloat32:
      return FloatToClass(AsNumber<float>(bits), to, DataType::kInt64);
    case DataType::kFloat16:
      return FloatToClass(HalfToFloat(static_cast<uint16_t>(bits)), to, DataType::kInt64);
    case DataType::kFloat64:
      return FloatToClass(AsNumber<double>(bits), to, DataType::kInt64);
    case DataType::kInt64:
      return NumberToClass(static_cast<int64_t>(bits), to);
    case DataType::kInt32:
      return NumberToClass(static_cast<int32_t>(bits), to);
    case DataType::kInt16:
      return NumberToClass(static_cast<int16_t>(bits), to);
    case DataType::kInt8:
      return NumberToClass(static_cast<int8_t>(bits), to);
    default:
      return NumberToClass(bits, to);
  }
}

// Converts a number to the bits of an element.
ANYDML_CALLED inline uint64_t ToElement(uint64_t bits, Class from, DataType type) {
  if (!IsFloat(from)) return bits;
  const bool is_wide = from == Class::kF64;
  const double value = is_wide ? AsNumber<double>(bits) : double{AsNumber<float>(bits)};  // exact
  const bool is_nan = value != value;
  switch (type) {
    case DataType::kFloat64:
      return is_nan ? 0x7FF8000000000000u : AsWideBits(value);
    case DataType::kFloat32:
      return is_nan ? 0x7FC00000u : AsWideBits(static_cast<float>(value));
    case DataType::kFloat16:
      return is_nan ? 0x7E00u : RoundToHalf(value).bits;
    default:
      return SaturatedBits(value, type);
  }
}

ANYDML_CALLED inline uint64_t ConvertNumber(uint64_t bits, Class from, Class to, DataType range) {
  switch (from) {
    case Class::kF32:
      return FloatToClass(AsNumber<float>(bits), to, range);
    case Class::kF64:
      return FloatToClass(AsNumber<double>(bits), to, range);
    case Class::kI32:
      return NumberToClass(AsNumber<int32_t>(bits), to);
    case Class::kU32:
      return NumberToClass(AsNumber<uint32_t>(bits), to);
    case Class::kI64:
      return NumberToClass(AsNumber<int64_t>(bits), to);
    default:
      return NumberToClass(bits, to);
  }
}

template <typename Row, Class kClass>
ANYDML_LANE uint64_t CallRow(uint64_t a, uint64_t b, uint64_t c, const Instruction& instruction) {
  if constexpr (Row::Has(kClass)) {
    using T = Number<kClass>;
    return AsWideBits(
        Row::template Call<kClass>(AsNumber<T>(a), AsNumber<T>(b), AsNumber<T>(c), instruction));
  } else {
    return a;
  }
}

ANYDML_CALLED inline uint64_t CallFunction(uint64_t a, uint64_t b, uint64_t c, ElementFunction function,
                                           Class type, uint64_t parameter0, uint64_t parameter1) {
  const Instruction instruction = {function, type, type, 0, {0, 0, 0}, {parameter0, parameter1}};
  switch (WideCode(function, type)) {
#define ANYDML_CASE(name, type)                         \
  case WideCode(ElementFunction::k##name, Class::type): \
    return CallRow<rows::name, Class::type>(a, b, c, instruction);
#define ANYDML_CASES(name, ...) \
  ANYDML_CASE(name, kF32)       \
  ANYDML_CASE(name, kI32)       \
  ANYDML_CASE(name, kU32)       \
  ANYDML_CASE(name, kF64)       \
  ANYDML_CASE(name, kI64)       \
  ANYDML_CASE(name, kU64)
    ANYDML_ELEMENT_FUNCTIONS(ANYDML_CASES)
#undef ANYDML_CASES
#undef ANYDML_CASE
    default:
      return a;
  }
}

template <typename F>
ANYDML_LANE void ForAll(WideRegister& a, F&& f) {
  ANYDML_UNROLL
  for (uint32_t e = 0; e < WideThread::kElements; ++e) a.elements[e] = f(e);
}

ANYDML_LANE void Fetch(const WideThread& thread, const Source& source, WideRegister& to) {
  if (source.kind == Source::kConstant) {
    const uint64_t constant = thread.machine().constants[source.index];
    ForAll(to, [&](uint32_t) { return constant; });
    return;
  }
  const auto type = static_cast<DataType>(source.type);
  const auto to_class = static_cast<Class>(source.to);
  const uint32_t bytes = BitSize(type) / 8;
  ForWidth(bytes, [&]<typename T>() {
    const auto elements =
        source.is_tile ? thread.Elements<true, T>(source.index) : thread.Elements<false, T>(source.index);
    ForAll(to, [&](uint32_t e) { return elements.elements[e]; });
  });
  // 64-bit integers need no conversion.
  if ((type == DataType::kInt64 || type == DataType::kUInt64) && !IsFloat(to_class) && IsWide(to_class))
    return;
  ForAll(to, [&](uint32_t e) { return FromElement(to.elements[e], type, to_class); });
}

ANYDML_LANE void Store(const WideThread& thread, const Step& step, WideRegister a) {
  const MachineOperand& operand = thread.machine().operands[step.output];
  const Class from = step.instruction.to;
  if (IsFloat(from)) {
    ForAll(a, [&](uint32_t e) { return ToElement(a.elements[e], from, operand.type); });
  }
  const auto low_bits = [&]<typename T>() {
    Pack<T, WideThread::kElements> low;
    ANYDML_UNROLL
    for (uint32_t e = 0; e < WideThread::kElements; ++e) low.elements[e] = static_cast<T>(a.elements[e]);
    return low;
  };
  if (operand.bits == 4) {
    thread.Store4Bits(operand, low_bits.template operator()<uint8_t>());
  } else {
    ForWidth(operand.bits / 8,
             [&]<typename T>() { thread.Store(operand, low_bits.template operator()<T>()); });
  }
}

// a = f(a, b, c)
ANYDML_LANE void Apply(const Step& step, WideRegister& a, const WideRegister& b, const WideRegister& c) {
  const Instruction& i = step.instruction;
  if (step.code == kNoFunction) return;
  if (i.function == ElementFunction::kConvert) {
    const auto range = static_cast<DataType>(i.parameters[0]);
    ForAll(a, [&](uint32_t e) { return ConvertNumber(a.elements[e], i.type, i.to, range); });
    return;
  }
  ForAll(a, [&](uint32_t e) {
    if (e > 0 && step.uniform) return a.elements[0];
    return CallFunction(a.elements[e], b.elements[e], c.elements[e], i.function, i.type, i.parameters[0],
                        i.parameters[1]);
  });
}

ANYDML_LANE void RunSteps(const WideThread& thread) {
  const Machine& machine = thread.machine();
  WideRegister a;
  ANYDML_LOOP
  for (uint32_t s = 0; s < machine.steps_end; ++s) {
    const Step& step = machine.steps[s];
    WideRegister b, c;  // left uninitialised if the function has fewer sources
    if ((step.flags & Step::kFirst) != 0) Fetch(thread, step.sources[0], a);
    if ((step.flags & Step::kSecond) != 0) Fetch(thread, step.sources[1], b);
    if ((step.flags & Step::kThird) != 0) Fetch(thread, step.sources[2], c);
    Apply(step, a, b, c);
    if ((step.flags & Step::kKeep) != 0) thread.Keep(step.slot, a);
    if ((step.flags & Step::kStore) != 0) Store(thread, step, a);
  }
}

}  // namespace anydml::element_cuda
