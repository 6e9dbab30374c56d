// The steps of the machine with 32-bit registers. Everything here is inside unrolled loops over a thread's
// elements, so that these stay in registers.
#pragma once

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/element_functions.cuh"
#include "ops/element/cuda/thread.cuh"

namespace anydml::element_cuda {

using NarrowThread = Thread<uint32_t>;
using NarrowRegister = Pack<uint32_t, NarrowThread::kElements>;

// Functions with long code. Programs without them run on a machine that inlines all other functions; programs
// with one run on a machine that calls every function for each element, so that its code exists once.
constexpr bool IsLong(ElementFunction function, Class type) {
  using F = ElementFunction;
  switch (function) {
    case F::kDivide:
      return type != Class::kF32;
    case F::kModulusTruncate:
    case F::kModulusFloor:
    case F::kPowerWrap:
    case F::kAdamUpdate:
    case F::kAdamRate:
      return true;
    case F::kExp:
    case F::kLog:
    case F::kTanh:
    case F::kErf:
    case F::kErfOfHalf:
    case F::kSigmoid:
    case F::kGelu:
    case F::kGeluOfHalf:
    case F::kSwish:
    case F::kElu:
      return false;
    default:
      return function >= F::kExp;  // the transcendental functions are at the end of the table
  }
}

template <typename Row, Class kClass>
ANYDML_LANE uint32_t CallRow(uint32_t a, uint32_t b, uint32_t c, const Instruction& instruction) {
  using T = Number<kClass>;
  using lane::detail::Cast;
  if constexpr (Row::Has(kClass)) {
    return Cast<uint32_t>(Row::template Call<kClass>(Cast<T>(a), Cast<T>(b), Cast<T>(c), instruction));
  } else {
    return a;
  }
}

// All cases of the table: the three classes of each function.
#define ANYDML_NARROW_CASE(name, type)                    \
  case NarrowCode(ElementFunction::k##name, Class::type): \
    return ANYDML_CALL_ROW(rows::name, Class::type);
#define ANYDML_NARROW_CASES(name, ...) \
  ANYDML_NARROW_CASE(name, kF32)       \
  ANYDML_NARROW_CASE(name, kI32)       \
  ANYDML_NARROW_CASE(name, kU32)

ANYDML_CALLED inline uint32_t CallFunction(uint32_t code, uint32_t a, uint32_t b, uint32_t c,
                                           uint32_t parameter0, uint32_t parameter1) {
  const Instruction instruction = {{}, {}, {}, 0, {0, 0, 0}, {parameter0, parameter1}};
  switch (code) {
#define ANYDML_CALL_ROW(...) CallRow<__VA_ARGS__>(a, b, c, instruction)
    ANYDML_ELEMENT_FUNCTIONS(ANYDML_NARROW_CASES)
#undef ANYDML_CALL_ROW
    default:
      return a;
  }
}

template <typename Row, Class kClass>
ANYDML_LANE void ApplyRow(const Instruction& instruction, NarrowRegister& a, const NarrowRegister& b,
                          const NarrowRegister& c) {
  if constexpr (!IsLong(Row::kFunction, kClass)) {
    ANYDML_UNROLL
    for (uint32_t e = 0; e < NarrowThread::kElements; ++e) {
      a.elements[e] = CallRow<Row, kClass>(a.elements[e], b.elements[e], c.elements[e], instruction);
    }
  }
}

// Sets each element of a register to f(element).
template <typename T, typename F>
ANYDML_LANE void Convert(const Pack<T, NarrowThread::kElements>& from, NarrowRegister& to, F&& f) {
  ANYDML_UNROLL
  for (uint32_t e = 0; e < NarrowThread::kElements; ++e) to.elements[e] = f(from.elements[e]);
}

template <bool kTile, typename T>
ANYDML_LANE void FetchIntegers(const NarrowThread& thread, uint32_t slot, NarrowRegister& to) {
  Convert(thread.Elements<kTile, T>(slot), to, [](T x) { return static_cast<uint32_t>(x); });
}
template <bool kTile, typename T>
ANYDML_LANE void FetchFloats(const NarrowThread& thread, uint32_t slot, NarrowRegister& to) {
  Convert(thread.Elements<kTile, T>(slot), to, [](T x) { return AsBits(static_cast<float>(x)); });
}

template <bool kTile>
ANYDML_LANE void FetchSlot(const NarrowThread& thread, Form form, uint32_t slot, NarrowRegister& to) {
  switch (form) {
    case Form::kWords:
      to = thread.Elements<kTile, uint32_t>(slot);
      return;
    case Form::kHalfToFloat:
      return Convert(thread.Elements<kTile, uint16_t>(slot), to,
                     [](uint16_t x) { return AsBits(HalfToFloat(x)); });
    case Form::kInt8:
      return FetchIntegers<kTile, int8_t>(thread, slot, to);
    case Form::kUInt8:
      return FetchIntegers<kTile, uint8_t>(thread, slot, to);
    case Form::kInt16:
      return FetchIntegers<kTile, int16_t>(thread, slot, to);
    case Form::kUInt16:
      return FetchIntegers<kTile, uint16_t>(thread, slot, to);
    case Form::kInt8ToFloat:
      return FetchFloats<kTile, int8_t>(thread, slot, to);
    case Form::kUInt8ToFloat:
      return FetchFloats<kTile, uint8_t>(thread, slot, to);
    case Form::kInt16ToFloat:
      return FetchFloats<kTile, int16_t>(thread, slot, to);
    case Form::kUInt16ToFloat:
      return FetchFloats<kTile, uint16_t>(thread, slot, to);
    case Form::kInt32ToFloat:
      return FetchFloats<kTile, int32_t>(thread, slot, to);
    case Form::kUInt32ToFloat:
      return FetchFloats<kTile, uint32_t>(thread, slot, to);
    case Form::kConstant: {
      const auto constant = static_cast<uint32_t>(thread.machine().constants[slot]);
      return Convert(to, to, [constant](uint32_t) { return constant; });
    }
  }
}

ANYDML_LANE void Fetch(const NarrowThread& thread, const Source& source, NarrowRegister& to) {
  if (source.is_tile) {
    FetchSlot<true>(thread, source.form, source.index, to);
  } else {
    FetchSlot<false>(thread, source.form, source.index, to);
  }
}

// Converts numbers to integers of a type.
ANYDML_LANE void ToIntegers(Class from, DataType type, NarrowRegister& a) {
  if (from != Class::kF32) return;
  if (type == DataType::kUInt32) {
    Convert(a, a, [](uint32_t x) { return FloatToUInt32(AsFloat(x)); });
  } else {
    const Range range = RangeOf(type);
    Convert(a, a, [range](uint32_t x) { return FloatToInteger(AsFloat(x), range); });
  }
}

template <typename T>
ANYDML_LANE Pack<T, NarrowThread::kElements> LowBits(const NarrowRegister& a) {
  Pack<T, NarrowThread::kElements> low;
  ANYDML_UNROLL
  for (uint32_t e = 0; e < NarrowThread::kElements; ++e) low.elements[e] = static_cast<T>(a.elements[e]);
  return low;
}

// Stores a copy; the accumulator does not change.
ANYDML_LANE void Store(const NarrowThread& thread, const Step& step, NarrowRegister a) {
  const MachineOperand& operand = thread.machine().operands[step.output];
  const Class from = step.instruction.to;
  if (operand.type == DataType::kFloat32) {
    Convert(a, a, [](uint32_t x) { return WithOneNan(x); });
    return thread.Store(operand, a);
  }
  if (operand.type == DataType::kFloat16) {
    Pack<uint16_t, NarrowThread::kElements> halves;
    ANYDML_UNROLL
    for (uint32_t e = 0; e < NarrowThread::kElements; e += 2) {
      const uint32_t both = FloatsToHalves(AsFloat(a.elements[e]), AsFloat(a.elements[e + 1]));
      halves.elements[e] = static_cast<uint16_t>(both);
      halves.elements[e + 1] = static_cast<uint16_t>(both >> 16);
    }
    return thread.Store(operand, halves);
  }
  ToIntegers(from, operand.type, a);
  switch (operand.bits) {
    case 32:
      return thread.Store(operand, a);
    case 16:
      return thread.Store(operand, LowBits<uint16_t>(a));
    case 8:
      return thread.Store(operand, LowBits<uint8_t>(a));
    default:
      return thread.Store4Bits(operand, LowBits<uint8_t>(a));
  }
}

ANYDML_LANE void ConvertClass(const Instruction& instruction, NarrowRegister& a) {
  if (instruction.type == Class::kF32) {
    if (instruction.to != Class::kF32) {
      ToIntegers(Class::kF32, static_cast<DataType>(instruction.parameters[0]), a);
    }
  } else if (instruction.to == Class::kF32) {
    if (instruction.type == Class::kI32) {
      Convert(a, a, [](uint32_t x) { return AsBits(static_cast<float>(static_cast<int32_t>(x))); });
    } else {
      Convert(a, a, [](uint32_t x) { return AsBits(static_cast<float>(x)); });
    }
  }
}

// a = f(a, b, c)
ANYDML_LANE void ApplyInLine(const Step& step, NarrowRegister& a, const NarrowRegister& b,
                             const NarrowRegister& c) {
  switch (step.code) {
#define ANYDML_CALL_ROW(...) ApplyRow<__VA_ARGS__>(step.instruction, a, b, c)
    ANYDML_ELEMENT_FUNCTIONS(ANYDML_NARROW_CASES)
#undef ANYDML_CALL_ROW
    case NarrowCode(ElementFunction::kConvert, Class::kF32):
    case NarrowCode(ElementFunction::kConvert, Class::kI32):
    case NarrowCode(ElementFunction::kConvert, Class::kU32):
      return ConvertClass(step.instruction, a);
    default:  // kNoFunction
      return;
  }
}
ANYDML_LANE void ApplyCalling(const Step& step, NarrowRegister& a, const NarrowRegister& b,
                              const NarrowRegister& c) {
  if (step.instruction.function == ElementFunction::kConvert) return ConvertClass(step.instruction, a);
  if (step.code == kNoFunction) return;
  const uint32_t code = step.code;
  const auto p = static_cast<uint32_t>(step.instruction.parameters[0]);
  const auto q = static_cast<uint32_t>(step.instruction.parameters[1]);
  const bool uniform = step.uniform;
  ANYDML_UNROLL
  for (uint32_t e = 0; e < NarrowThread::kElements; ++e) {
    if (e > 0 && uniform) {
      a.elements[e] = a.elements[0];
    } else {
      a.elements[e] = CallFunction(code, a.elements[e], b.elements[e], c.elements[e], p, q);
    }
  }
}

template <bool kInLine>
ANYDML_LANE void RunSteps(const NarrowThread& thread) {
  const Machine& machine = thread.machine();
  NarrowRegister a;
  ANYDML_LOOP
  for (uint32_t s = 0; s < machine.steps_end; ++s) {
    const Step& step = machine.steps[s];
    const uint32_t flags = step.flags;
    NarrowRegister b, c;  // left uninitialised if the function has fewer sources
    if ((flags & (Step::kFirst | Step::kSecond | Step::kThird)) != 0) {
      if ((flags & Step::kFirst) != 0) Fetch(thread, step.sources[0], a);
      if ((flags & Step::kSecond) != 0) Fetch(thread, step.sources[1], b);
      if ((flags & Step::kThird) != 0) Fetch(thread, step.sources[2], c);
    }
    if constexpr (kInLine) {
      ApplyInLine(step, a, b, c);
    } else {
      ApplyCalling(step, a, b, c);
    }
    if ((flags & (Step::kKeep | Step::kStore)) != 0) {
      if ((flags & Step::kKeep) != 0) thread.Keep(step.slot, a);
      if ((flags & Step::kStore) != 0) Store(thread, step, a);
    }
  }
}

#undef ANYDML_NARROW_CASES
#undef ANYDML_NARROW_CASE

}  // namespace anydml::element_cuda
