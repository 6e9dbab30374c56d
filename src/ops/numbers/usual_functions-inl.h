// Bodies of functions for the usual range of numbers, with fewer instructions; one test covers four vectors.
// Included inside a namespace of element_loops_group-inl.h, where `hn` and `fn` are defined.

// The body that gives the same bits as `Function` for usual numbers, and tells whether all are usual; void:
// none.
template <class Function>
struct Usual {
  using Body = void;
};

#if ANYDML_HAVE_HIGHWAY && (HWY_ARCH_ARM || HWY_ARCH_X86)
namespace usual {
namespace math = fn::math;

struct Exp {
  template <class D, class V>
  static ANYDML_BODY bool Are(D d, V a, V b, V c, V e) {
    return math::HaveNormalExp(d, a, b, c, e);
  }
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a) {
    return math::NormalExp(d, a);
  }
};
#if HWY_ARCH_ARM
struct Log {
  template <class D, class V>
  static ANYDML_BODY bool Are(D d, V a, V b, V c, V e) {
    return math::ArePositiveNormals(d, a, b, c, e);
  }
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a) {
    return math::Log<true>(d, a);
  }
};
template <int kQuarters>
struct SinFrom {
  template <class D, class V>
  static ANYDML_BODY bool Are(D d, V a, V b, V c, V e) {
    return math::AreSmallAngles(d, a, b, c, e);
  }
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a) {
    return math::SinFrom<kQuarters, true>(d, a);
  }
};
using Sin = SinFrom<0>;
using Cos = SinFrom<1>;
struct Gelu {
  template <class D, class V>
  static ANYDML_BODY bool Are(D d, V a, V b, V c, V e) {
    return math::AreNearGelus(d, a, b, c, e);
  }
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a) {
    return math::Gelu<true>(d, a);
  }
};
struct Power {
  // Whether the exponents are numbers; may be false without need.
  template <class D, class V>
  static ANYDML_BODY bool AreSecond(D d, V a, V b, V c, V e) {
    const V sum = hn::Add(hn::Add(a, b), hn::Add(c, e));
    return hn::AllTrue(d, hn::Eq(sum, sum));
  }
  template <class D, class V>
  static ANYDML_BODY bool Are(D d, V a, V b, V c, V e) {
    return math::ArePositiveNormals(d, a, b, c, e);
  }
  template <class D, class V>
  static ANYDML_BODY V Call(D d, V a, V b) {
    return math::PowOfPositive<true>(d, a, b);
  }
};
#endif
}  // namespace usual

#define ANYDML_USUAL(function)    \
  template <>                     \
  struct Usual<fn::function> {    \
    using Body = usual::function; \
  };
ANYDML_USUAL(Exp)
#if HWY_ARCH_ARM
ANYDML_USUAL(Log)
ANYDML_USUAL(Sin)
ANYDML_USUAL(Cos)
ANYDML_USUAL(Gelu)
ANYDML_USUAL(Power)
#endif
#undef ANYDML_USUAL
#endif
