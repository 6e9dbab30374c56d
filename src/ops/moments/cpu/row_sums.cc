#include "ops/moments/cpu/row_sums.h"

#include <cmath>

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/moments/cpu/row_sums.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of term(i) over whole vectors, which contain *done elements. Four independent sums hide the latency
// of additions.
template <class Term>
HWY_INLINE float SumOfVectors(uint64_t count, uint64_t* done, const Term& term) {
  const hn::ScalableTag<float> d;
  const uint64_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, term(i));
    b = hn::Add(b, term(i + lanes));
    c = hn::Add(c, term(i + 2 * lanes));
    e = hn::Add(e, term(i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Add(a, term(i));
  *done = i;
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

float WholeSum(const float* x, uint64_t count, uint64_t* done) {
  const hn::ScalableTag<float> d;
  return SumOfVectors(count, done, [&](uint64_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
}

float WholeMagnitudes(const float* x, uint64_t count, uint64_t* done) {
  const hn::ScalableTag<float> d;
  return SumOfVectors(count, done, [&](uint64_t i) HWY_ATTR { return hn::Abs(hn::LoadU(d, x + i)); });
}

float WholeSquares(const float* x, uint64_t count, float center, uint64_t* done) {
  const hn::ScalableTag<float> d;
  const auto c = hn::Set(d, center);
  return SumOfVectors(count, done, [&](uint64_t i) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, x + i), c);
    return hn::Mul(distance, distance);
  });
}

float WholeProducts(const float* g, const float* x, uint64_t count, float center, uint64_t* done) {
  const hn::ScalableTag<float> d;
  const auto c = hn::Set(d, center);
  return SumOfVectors(count, done, [&](uint64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, g + i), hn::Sub(hn::LoadU(d, x + i), c));
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {

#if ANYDML_HAVE_HIGHWAY
namespace {
HWY_EXPORT(WholeSum);
HWY_EXPORT(WholeMagnitudes);
HWY_EXPORT(WholeSquares);
HWY_EXPORT(WholeProducts);
}  // namespace
#define ANYDML_WHOLE(function, ...) HWY_DYNAMIC_DISPATCH(function)(__VA_ARGS__, &i)
#else
#define ANYDML_WHOLE(function, ...) 0.0f
#endif

// The remainder after the vectors (without Highway everything) is one long sum, hence in FLOAT64.
float SumOf(const float* x, uint64_t count) {
  uint64_t i = 0;
  double sum = ANYDML_WHOLE(WholeSum, x, count);
  for (; i < count; ++i) sum += double{x[i]};
  return static_cast<float>(sum);
}

float SumOfMagnitudes(const float* x, uint64_t count) {
  uint64_t i = 0;
  double sum = ANYDML_WHOLE(WholeMagnitudes, x, count);
  for (; i < count; ++i) sum += double{std::abs(x[i])};
  return static_cast<float>(sum);
}

float SumOfSquares(const float* x, uint64_t count, float center) {
  uint64_t i = 0;
  double sum = ANYDML_WHOLE(WholeSquares, x, count, center);
  for (; i < count; ++i) sum += double{(x[i] - center) * (x[i] - center)};
  return static_cast<float>(sum);
}

float SumOfProducts(const float* g, const float* x, uint64_t count, float center) {
  uint64_t i = 0;
  double sum = ANYDML_WHOLE(WholeProducts, g, x, count, center);
  for (; i < count; ++i) sum += double{g[i] * (x[i] - center)};
  return static_cast<float>(sum);
}

}  // namespace anydml
#endif
