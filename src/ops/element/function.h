// The table of element functions, which the instructions of element programs apply. A row names a function,
// the number of its sources and parameters, the register classes for which it is defined, and the error bound
// of its result.
//
// Each function has one body, in functions-inl.h (written in Highway's vocabulary: vectors on CPUs, one lane
// on GPUs and without Highway) or in scalar_functions.h (one lane everywhere), and one line in
// reference_functions.h, against which all others are tested.
#pragma once

#include <cstdint>

namespace anydml {

// The content of a register. Elements are converted when they are loaded and stored.
enum class Class : uint8_t { kF32, kI32, kU32, kF64, kI64, kU64 };
inline constexpr uint32_t kClassCount = 6;

constexpr uint32_t Bit(Class c) { return 1u << static_cast<uint32_t>(c); }
constexpr bool IsWide(Class c) { return c >= Class::kF64; }
constexpr bool IsFloat(Class c) { return c == Class::kF32 || c == Class::kF64; }

namespace element_table {
inline constexpr uint32_t F = Bit(Class::kF32), I = Bit(Class::kI32), U = Bit(Class::kU32);
inline constexpr uint32_t D = Bit(Class::kF64), L = Bit(Class::kI64), Q = Bit(Class::kU64);
inline constexpr uint32_t N = 0;  // none
}  // namespace element_table

// V(name, sources, parameters, classes with a body in functions-inl.h,
//   classes with a body in scalar_functions.h, ulps of FLOAT32; 0: exact)
// If a function does not depend on the sign (Add), the signed class serves the unsigned one, too.
// RoundToHalf, FloatBits, HalfBits and HalfFromBits do what storing an element and loading it again does, as
// a number or as bits; the results of FloatBits and HalfBits are UINT32, that of HalfFromBits is FLOAT32.
#define ANYDML_ARITHMETIC_FUNCTIONS(V)          \
  V(Add, 2, 0, F | I, L, 0)                     \
  V(Subtract, 2, 0, F | I, L, 0)                \
  V(Multiply, 2, 0, F | I, L, 0)                \
  V(Divide, 2, 0, F, I | U | L | Q, 0)          \
  V(Mean, 2, 0, F, L, 0)                        \
  V(Maximum, 2, 0, F | I | U, L | Q, 0)         \
  V(Minimum, 2, 0, F | I | U, L | Q, 0)         \
  V(DifferenceSquare, 2, 0, F | I, N, 0)        \
  V(ModulusTruncate, 2, 0, F, I | U | L | Q, 0) \
  V(ModulusFloor, 2, 0, F, I | U | L | Q, 0)    \
  V(PowerWrap, 2, 1, N, I, 0)                   \
  V(PowerRounded, 2, 0, N, D, 0)                \
  V(Abs, 1, 0, F | I, L, 0)                     \
  V(Negate, 1, 0, I, L, 0)                      \
  V(Sign, 1, 0, F | I | U, L | Q, 0)            \
  V(Reciprocal, 1, 0, F, N, 0)                  \
  V(SquareRoot, 1, 0, F, N, 0)                  \
  V(Ceil, 1, 0, F, N, 0)                        \
  V(Floor, 1, 0, F, N, 0)                       \
  V(RoundHalfToEven, 1, 0, F, N, 0)             \
  V(RoundTowardZero, 1, 0, F, N, 0)             \
  V(RoundHalfAway, 1, 0, F, N, 0)               \
  V(ScaleBias, 1, 2, F | I, D | L, 0)           \
  V(Canonical, 1, 0, F, D, 0)                   \
  V(Clip, 1, 2, F | I | U, L | Q, 0)            \
  V(Relu, 1, 0, F | I, N, 0)                    \
  V(LeakyRelu, 1, 1, F, N, 0)                   \
  V(ParameterizedRelu, 2, 0, F | I, N, 0)       \
  V(ThresholdedRelu, 1, 1, F, N, 0)             \
  V(Shrink, 1, 2, F, D, 0)                      \
  V(HardSigmoid, 1, 2, F, N, 0)                 \
  V(HardSwish, 1, 2, F, N, 0)                   \
  V(Softsign, 1, 0, F, N, 0)                    \
  V(ReluGrad, 2, 0, F | I, N, 0)                \
  V(ClipGrad, 2, 2, F | I | U, L | Q, 0)        \
  V(Quantize, 3, 2, F, N, 0)                    \
  V(Blend, 2, 1, F, N, 0)                       \
  V(BlendSquare, 2, 1, F, N, 0)                 \
  V(AdamUpdate, 3, 2, F, N, 0)                  \
  V(RoundToHalf, 1, 0, F, N, 0)                 \
  V(FloatBits, 1, 0, F, N, 0)                   \
  V(HalfBits, 1, 0, F, N, 0)                    \
  V(HalfFromBits, 1, 0, U, N, 0)

// The result of a comparison is 0 or 1 in the unsigned class of the same width.
#define ANYDML_LOGICAL_FUNCTIONS(V)            \
  V(Equal, 2, 0, F | I, L, 0)                  \
  V(Greater, 2, 0, F | I | U, L | Q, 0)        \
  V(Less, 2, 0, F | I | U, L | Q, 0)           \
  V(GreaterOrEqual, 2, 0, F | I | U, L | Q, 0) \
  V(LessOrEqual, 2, 0, F | I | U, L | Q, 0)    \
  V(IsNan, 1, 0, F, N, 0)                      \
  V(IsInfinity, 1, 1, F, N, 0)                 \
  V(LogicalAnd, 2, 0, U, N, 0)                 \
  V(LogicalOr, 2, 0, U, N, 0)                  \
  V(LogicalXor, 2, 0, U, N, 0)                 \
  V(LogicalNot, 1, 0, U, N, 0)                 \
  V(Select, 3, 0, U, Q, 0)                     \
  V(BitAnd, 2, 0, U, Q, 0)                     \
  V(BitOr, 2, 0, U, Q, 0)                      \
  V(BitXor, 2, 0, U, Q, 0)                     \
  V(BitNot, 1, 0, U, Q, 0)                     \
  V(MaskAnd, 1, 1, U, Q, 0)                    \
  V(MaskXor, 1, 1, U, Q, 0)                    \
  V(ShiftLeft, 2, 1, N, U | Q, 0)              \
  V(ShiftRight, 2, 1, N, U | Q, 0)             \
  V(BitCount, 1, 0, N, U | Q, 0)

#define ANYDML_TRANSCENDENTAL_FUNCTIONS(V) \
  V(Exp, 1, 0, F, N, 2)                    \
  V(Log, 1, 0, F, N, 2)                    \
  V(Sin, 1, 0, F, N, 2)                    \
  V(Cos, 1, 0, F, N, 2)                    \
  V(Tan, 1, 0, F, N, 2)                    \
  V(Asin, 1, 0, F, N, 2)                   \
  V(Acos, 1, 0, F, N, 2)                   \
  V(Atan, 1, 0, F, N, 2)                   \
  V(Atan2, 2, 0, F, N, 2)                  \
  V(Sinh, 1, 0, F, N, 2)                   \
  V(Cosh, 1, 0, F, N, 2)                   \
  V(Tanh, 1, 0, F, N, 2)                   \
  V(Asinh, 1, 0, F, N, 2)                  \
  V(Acosh, 1, 0, F, N, 2)                  \
  V(Atanh, 1, 0, F, N, 2)                  \
  V(Erf, 1, 0, F, N, 2)                    \
  V(ErfOfHalf, 1, 0, F, N, 2)              \
  V(Power, 2, 0, F, N, 4)                  \
  V(PowerInteger, 2, 1, F, N, 4)           \
  V(ConstantPower, 1, 1, F, N, 4)          \
  V(Sigmoid, 1, 0, F, N, 4)                \
  V(ScaledTanh, 1, 2, F, N, 4)             \
  V(Elu, 1, 1, F, N, 4)                    \
  V(ScaledElu, 1, 2, F, N, 4)              \
  V(Celu, 1, 1, F, N, 4)                   \
  V(Softplus, 1, 2, F, N, 4)               \
  V(Gelu, 1, 0, F, N, 4)                   \
  V(GeluOfHalf, 1, 0, F, N, 4)             \
  V(Swish, 1, 1, F, N, 4)                  \
  V(AdamRate, 1, 2, N, F, 4)

#define ANYDML_ELEMENT_FUNCTIONS(V) \
  ANYDML_ARITHMETIC_FUNCTIONS(V)    \
  ANYDML_LOGICAL_FUNCTIONS(V)       \
  ANYDML_TRANSCENDENTAL_FUNCTIONS(V)

enum class ElementFunction : uint8_t {
  // Sources and targets of registers: an input, an output, or (kConstant) the parameter.
  kLoad,
  kStore,
  kConstant,
  // Between classes: integers to floating point round to nearest; floating point to integers truncate and
  // saturate to the range of a data type (the parameter), with NaN to 0.
  kConvert,
#define ANYDML_ENUMERATOR(name, ...) k##name,
  ANYDML_ELEMENT_FUNCTIONS(ANYDML_ENUMERATOR)
#undef ANYDML_ENUMERATOR
};

struct ElementFunctionInfo {
  const char* name;
  uint8_t sources;
  uint8_t parameters;
  uint8_t vector_classes;  // Bit(Class)
  uint8_t scalar_classes;
  uint8_t ulps;
};

const ElementFunctionInfo& InfoOf(ElementFunction function);

}  // namespace anydml
