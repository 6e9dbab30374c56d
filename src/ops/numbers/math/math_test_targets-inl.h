// math-inl.h as math_test.cc calls it, once per SIMD target.
#if defined(ANYDML_ELEMENT_MATH_TEST_TARGETS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANYDML_ELEMENT_MATH_TEST_TARGETS_INL_H_
#undef ANYDML_ELEMENT_MATH_TEST_TARGETS_INL_H_
#else
#define ANYDML_ELEMENT_MATH_TEST_TARGETS_INL_H_
#endif

#include "ops/numbers/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml::testing {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace math = anydml::HWY_NAMESPACE;

template <class Body>
void ForEachVector(const float* x, const float* y, float* results, size_t count, Body&& body) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(math::Canonical(d, body(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i))), d, results + i);
  }
}

// `count` is a multiple of the most lanes.
void EvaluateVectors(Function function, const float* x, const float* y, float* results, size_t count) {
  switch (function) {
#define ANYDML_CASE(name)                                                                                \
  case Function::k##name:                                                                                \
    ForEachVector(x, y, results, count, [](auto d, auto a, auto) HWY_ATTR { return math::name(d, a); }); \
    break;
    ANYDML_UNARY(ANYDML_CASE)
#undef ANYDML_CASE
#define ANYDML_CASE(name)                                                               \
  case Function::k##name:                                                               \
    ForEachVector(x, y, results, count,                                                 \
                  [](auto d, auto a, auto b) HWY_ATTR { return math::name(d, a, b); }); \
    break;
    ANYDML_BINARY(ANYDML_CASE)
#undef ANYDML_CASE
  }
}

bool IsFused() { return math::kFused; }

}  // namespace HWY_NAMESPACE
}  // namespace anydml::testing
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
