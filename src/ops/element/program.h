// Element programs: a few instructions on registers, run for every element of some tensors. Operators, fused
// activations and chains of operators in a graph are such programs.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "ops/element/function.h"

namespace anydml {

inline constexpr uint32_t kMaxRegisters = 8;

// POD, since kernels of devices take it as it is.
struct Instruction {
  ElementFunction function;
  Class type;              // of the sources; for kLoad and kConstant, of the target
  Class to;                // of the target
  uint8_t target;          // a register; kStore: an output
  uint8_t sources[3];      // registers; kLoad: an input
  uint64_t parameters[2];  // bits of a number of class `type`, or as the function defines
};

inline float FloatParameter(const Instruction& instruction, int i) {
  return std::bit_cast<float>(static_cast<uint32_t>(instruction.parameters[i]));
}
inline uint64_t ParameterOf(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t ParameterOf(double value) { return std::bit_cast<uint64_t>(value); }

// Flags of kPowerWrap and kPowerInteger.
inline constexpr uint64_t kUnsignedExponent = 1;
inline constexpr uint64_t kUnsignedBase = 2;

struct ElementProgram {
  std::vector<Instruction> instructions;
  uint32_t registers = 0;  // the number in use

  // A new register; the class of a register's number follows from the instructions.
  uint8_t NewRegister() { return static_cast<uint8_t>(registers++); }

  uint8_t Load(uint32_t input, Class type);
  uint8_t Constant(uint64_t bits, Class type);
  void Store(uint32_t output, uint8_t source, Class type);
  // Applies f(sources) and puts the result into the first source's register, whose old value is lost.
  uint8_t Apply(ElementFunction function, Class type, std::initializer_list<uint8_t> sources,
                uint64_t parameter0 = 0, uint64_t parameter1 = 0);
  uint8_t Convert(uint8_t source, Class from, Class to, DataType range);

  bool wide() const;      // whether any register has 64 bits
  uint32_t ulps() const;  // the sum over the instructions (function.h); 0: exact
  std::string ToString() const;
};

// The class in which elements of a type are compared and computed.
Class ClassOf(DataType type);

}  // namespace anydml
