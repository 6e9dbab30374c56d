#include "ops/gemm/cpu/few_rows.h"

#include <cstring>

#include "base/half.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gemm/cpu/few_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

HWY_INLINE hn::Vec<D> LoadVector(D d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE hn::Vec<D> LoadVector(D d, const hwy::float16_t* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), from));
}

// The last elements, which are fewer than a vector has; 0 behind them.
template <typename T>
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* from, uint64_t count) {
  alignas(64) T rest[hn::MaxLanes(D())] = {};
  std::memcpy(rest, from, count * sizeof(T));
  return LoadVector(d, rest);
}

template <typename T>
void Dot(const float* HWY_RESTRICT a, const void* matrix, uint64_t stride, uint64_t steps, float* sums) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const T* const b0 = static_cast<const T*>(matrix);
  const T* const b1 = b0 + stride;
  const T* const b2 = b1 + stride;
  const T* const b3 = b2 + stride;
  // Two sums for each column: an addition waits for the one before it.
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  auto t0 = hn::Zero(d), t1 = hn::Zero(d), t2 = hn::Zero(d), t3 = hn::Zero(d);
  uint64_t i = 0;
  for (; i + 2 * lanes <= steps; i += 2 * lanes) {
    const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, a + i + lanes);
    s0 = hn::MulAdd(x, LoadVector(d, b0 + i), s0);
    s1 = hn::MulAdd(x, LoadVector(d, b1 + i), s1);
    s2 = hn::MulAdd(x, LoadVector(d, b2 + i), s2);
    s3 = hn::MulAdd(x, LoadVector(d, b3 + i), s3);
    t0 = hn::MulAdd(y, LoadVector(d, b0 + i + lanes), t0);
    t1 = hn::MulAdd(y, LoadVector(d, b1 + i + lanes), t1);
    t2 = hn::MulAdd(y, LoadVector(d, b2 + i + lanes), t2);
    t3 = hn::MulAdd(y, LoadVector(d, b3 + i + lanes), t3);
  }
  for (; i < steps; i += lanes) {
    const uint64_t count = HWY_MIN(lanes, steps - i);
    const auto x = LoadRest(d, a + i, count);
    s0 = hn::MulAdd(x, LoadRest(d, b0 + i, count), s0);
    s1 = hn::MulAdd(x, LoadRest(d, b1 + i, count), s1);
    s2 = hn::MulAdd(x, LoadRest(d, b2 + i, count), s2);
    s3 = hn::MulAdd(x, LoadRest(d, b3 + i, count), s3);
  }
  sums[0] = hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, t0)));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, hn::Add(s1, t1)));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, hn::Add(s2, t2)));
  sums[3] = hn::GetLane(hn::SumOfLanes(d, hn::Add(s3, t3)));
}

template <typename T>
void AddOne(float a, const T* HWY_RESTRICT b, uint64_t count, float* HWY_RESTRICT sums) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const auto x = hn::Set(d, a);
  uint64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    hn::StoreU(hn::MulAdd(x, LoadVector(d, b + j), hn::LoadU(d, sums + j)), d, sums + j);
  }
  if (j == count) return;
  alignas(64) float rest[hn::MaxLanes(D())];
  hn::StoreU(hn::MulAdd(x, LoadRest(d, b + j, count - j), LoadRest(d, sums + j, count - j)), d, rest);
  std::memcpy(sums + j, rest, (count - j) * sizeof(float));
}

template <typename T>
void AddRows(const float* a, const void* matrix, uint64_t stride, uint32_t rows, uint64_t count,
             float* HWY_RESTRICT sums) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const T* const b0 = static_cast<const T*>(matrix);
  uint64_t j = 0;
  if (rows == kFewAtATime) {
    const T* const b1 = b0 + stride;
    const T* const b2 = b1 + stride;
    const T* const b3 = b2 + stride;
    const auto x0 = hn::Set(d, a[0]), x1 = hn::Set(d, a[1]), x2 = hn::Set(d, a[2]), x3 = hn::Set(d, a[3]);
    for (; j + lanes <= count; j += lanes) {
      auto sum = hn::LoadU(d, sums + j);
      sum = hn::MulAdd(x0, LoadVector(d, b0 + j), sum);
      sum = hn::MulAdd(x1, LoadVector(d, b1 + j), sum);
      sum = hn::MulAdd(x2, LoadVector(d, b2 + j), sum);
      sum = hn::MulAdd(x3, LoadVector(d, b3 + j), sum);
      hn::StoreU(sum, d, sums + j);
    }
  }
  for (uint32_t r = 0; r < rows; ++r) AddOne(a[r], b0 + r * stride + j, count - j, sums + j);
}

FewRows FindFew(bool half) {
  if (half) return {&Dot<hwy::float16_t>, &AddRows<hwy::float16_t>};
  return {&Dot<float>, &AddRows<float>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindFew);
}  // namespace

FewRows FindFewRows(DataType type) { return HWY_DYNAMIC_DISPATCH(FindFew)(type == DataType::kFloat16); }

}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
namespace {

float NumberOf(float x) { return x; }
float NumberOf(Half x) { return ToFloat(x); }

template <typename T>
void Dot(const float* a, const void* matrix, uint64_t stride, uint64_t steps, float* sums) {
  for (uint32_t c = 0; c < kFewAtATime; ++c) {
    const T* const b = static_cast<const T*>(matrix) + c * stride;
    sums[c] = 0;
    for (uint64_t s = 0; s < steps; ++s) sums[c] += a[s] * NumberOf(b[s]);
  }
}

template <typename T>
void AddRows(const float* a, const void* matrix, uint64_t stride, uint32_t rows, uint64_t count,
             float* sums) {
  for (uint32_t r = 0; r < rows; ++r) {
    const T* const b = static_cast<const T*>(matrix) + r * stride;
    for (uint64_t j = 0; j < count; ++j) sums[j] += a[r] * NumberOf(b[j]);
  }
}

}  // namespace

FewRows FindFewRows(DataType type) {
  if (type == DataType::kFloat16) return {&Dot<Half>, &AddRows<Half>};
  return {&Dot<float>, &AddRows<float>};
}

}  // namespace anydml
#endif
