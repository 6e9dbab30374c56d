// Bodies of functions for processors in the mode that makes every NaN result the canonical one (DefaultNans):
// they need not test for NaNs. Included inside a namespace of element_loops_group-inl.h, where `hn` and `fn`
// are defined.

// The body that does what `Function` does in that mode; void: none.
template <class Function>
struct Bare {
  using Body = void;
};

// Whether a body is faster on four vectors at a time (see kHasFours).
template <class Body>
inline constexpr bool kInFours = false;

#if defined(HWY_NEON)
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
namespace bare {
namespace math = anydml::HWY_NAMESPACE;
#define ANYDML_KEEPS_NANS
#include "ops/element/functions-inl.h"
#include "ops/element/transcendental_functions-inl.h"
#undef ANYDML_KEEPS_NANS

// Arm's instructions return NaN if either operand is NaN, and order -0 before +0.
struct Larger {
  template <class D, class V>
  static ANYDML_BODY V Call(D, V a, V b, const Instruction&) {
    return V{vmaxq_f32(a.raw, b.raw)};
  }
};
struct Smaller {
  template <class D, class V>
  static ANYDML_BODY V Call(D, V a, V b, const Instruction&) {
    return V{vminq_f32(a.raw, b.raw)};
  }
};
struct Within {
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a, const Instruction& instruction) {
    const V low = Parameter(d, instruction, 0), high = Parameter(d, instruction, 1);
    return V{vmaxq_f32(low.raw, vminq_f32(a.raw, high.raw))};
  }
};
struct Positive {
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a, const Instruction&) {
    return V{vmaxq_f32(a.raw, hn::Zero(d).raw)};
  }
};
// A NaN gets the argument's sign here, and the maximum with itself makes it canonical.
struct ErfOfAny {
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a, const Instruction&) {
    const V y = math::Erf(d, a);
    return V{vmaxq_f32(y.raw, y.raw)};
  }
};
}  // namespace bare

#define ANYDML_BARE(function, body) \
  template <>                       \
  struct Bare<fn::function> {       \
    using Body = bare::body;        \
  };
ANYDML_BARE(Add, Add)
ANYDML_BARE(Subtract, Subtract)
ANYDML_BARE(Multiply, Multiply)
ANYDML_BARE(Mean, Mean)
ANYDML_BARE(DifferenceSquare, DifferenceSquare)
ANYDML_BARE(Ceil, Ceil)
ANYDML_BARE(Floor, Floor)
ANYDML_BARE(RoundHalfToEven, RoundHalfToEven)
ANYDML_BARE(RoundTowardZero, RoundTowardZero)
ANYDML_BARE(ScaleBias, ScaleBias)
ANYDML_BARE(LeakyRelu, LeakyRelu)
ANYDML_BARE(Maximum, Larger)
ANYDML_BARE(Minimum, Smaller)
ANYDML_BARE(Clip, Within)
ANYDML_BARE(Relu, Positive)
ANYDML_BARE(Tanh, Tanh)
ANYDML_BARE(Sigmoid, Sigmoid)
ANYDML_BARE(Erf, ErfOfAny)
ANYDML_BARE(ErfOfHalf, ErfOfHalf)
ANYDML_BARE(GeluOfHalf, GeluOfHalf)
// Conversions from or to FLOAT16 are operations, which canonicalise NaNs (see UsesBare in element_loops.cc).
ANYDML_BARE(Canonical, Canonical)
#undef ANYDML_BARE

#define ANYDML_IN_FOURS(body) \
  template <>                 \
  inline constexpr bool kInFours<bare::body> = true;
ANYDML_IN_FOURS(Tanh)
ANYDML_IN_FOURS(Sigmoid)
ANYDML_IN_FOURS(ErfOfAny)
ANYDML_IN_FOURS(ErfOfHalf)
ANYDML_IN_FOURS(GeluOfHalf)
#undef ANYDML_IN_FOURS
#endif
#endif
