#include "ops/product/few_rows.h"

#include <cstring>

#include "base/half.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/few_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// The columns of a panel: three vectors, or two if registers are few. Vectors of unknown length cannot be
// array elements, so each has a name.
#undef ANYDML_FEW_WIDE
#define ANYDML_FEW_WIDE (HWY_ARCH_ARM || HWY_TARGET <= HWY_AVX3)

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

// Loads the last elements, fewer than a vector, padded with 0.
template <typename T>
HWY_INLINE hn::Vec<D> LoadRest(D d, const T* from, uint64_t count) {
  alignas(64) T rest[hn::MaxLanes(D())] = {};
  std::memcpy(rest, from, count * sizeof(T));
  return LoadVector(d, rest);
}

// Rows are read a few at a time, with prefetches of `count` elements from `at` on: on x86 of what comes next,
// or of the same rows if that is unknown; on Arm of the rows after these, because hardware prefetches the
// others. Prefetching beyond the matrix is harmless.
template <typename T>
HWY_INLINE void AskFor(const T* rows, uint64_t stride, uint64_t at, uint64_t count, uint64_t ahead) {
  constexpr uint64_t kOfLine = 64 / sizeof(T), kAhead = 1024 / sizeof(T);
  if (at % kOfLine != 0) return;
  const uint64_t first = at + (!HWY_ARCH_X86 ? kFewAtATime * stride : ahead != 0 ? ahead : kAhead);
  for (uint64_t of_row = first; of_row < first + count; of_row += kOfLine) {
    for (uint32_t r = 0; r < kFewAtATime; ++r) {
      const auto address = reinterpret_cast<uintptr_t>(rows) + (r * stride + of_row) * sizeof(T);
      __builtin_prefetch(reinterpret_cast<const void*>(address), /*rw=*/0, /*locality=*/HWY_ARCH_X86 ? 3 : 2);
    }
  }
}

template <typename T>
void Dot(const float* HWY_RESTRICT a, const void* matrix, uint64_t stride, uint64_t steps, float* sums,
         uint64_t ahead) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  const T* const b0 = static_cast<const T*>(matrix);
  const T* const b1 = b0 + stride;
  const T* const b2 = b1 + stride;
  const T* const b3 = b2 + stride;
  // Two sums per column, because an addition must wait for the previous one.
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  auto t0 = hn::Zero(d), t1 = hn::Zero(d), t2 = hn::Zero(d), t3 = hn::Zero(d);
  uint64_t i = 0;
  for (; i + 2 * lanes <= steps; i += 2 * lanes) {
    AskFor(b0, stride, i, 2 * lanes, ahead);
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
             float* HWY_RESTRICT sums, uint64_t ahead) {
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
      AskFor(b0, stride, j, lanes, ahead);
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

// One row. Two sums per column, because an addition must wait for the previous one.
template <typename T>
void PanelOfOne(const float* HWY_RESTRICT a, uint64_t, const void* panel, uint64_t steps,
                float* HWY_RESTRICT sums, uint64_t) {
  const D d;
  const uint64_t lanes = hn::Lanes(d), columns = (ANYDML_FEW_WIDE ? 3 : 2) * lanes;
  const T* HWY_RESTRICT b = static_cast<const T*>(panel);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, t0 = s0, t1 = s0, t2 = s0;
  uint64_t step = 0;
  for (; step + 2 <= steps; step += 2, b += 2 * columns) {
    const auto x = hn::Set(d, a[step]), y = hn::Set(d, a[step + 1]);
    s0 = hn::MulAdd(x, LoadVector(d, b), s0);
    s1 = hn::MulAdd(x, LoadVector(d, b + lanes), s1);
    if (ANYDML_FEW_WIDE) s2 = hn::MulAdd(x, LoadVector(d, b + 2 * lanes), s2);
    t0 = hn::MulAdd(y, LoadVector(d, b + columns), t0);
    t1 = hn::MulAdd(y, LoadVector(d, b + columns + lanes), t1);
    if (ANYDML_FEW_WIDE) t2 = hn::MulAdd(y, LoadVector(d, b + columns + 2 * lanes), t2);
  }
  if (step < steps) {
    const auto x = hn::Set(d, a[step]);
    s0 = hn::MulAdd(x, LoadVector(d, b), s0);
    s1 = hn::MulAdd(x, LoadVector(d, b + lanes), s1);
    if (ANYDML_FEW_WIDE) s2 = hn::MulAdd(x, LoadVector(d, b + 2 * lanes), s2);
  }
  hn::StoreU(hn::Add(s0, t0), d, sums);
  hn::StoreU(hn::Add(s1, t1), d, sums + lanes);
  if (ANYDML_FEW_WIDE) hn::StoreU(hn::Add(s2, t2), d, sums + 2 * lanes);
}

#define ANYDML_FEW_ROWS(V) V(0) V(1) V(2) V(3)
#define ANYDML_ZERO(i) auto c##i##0 = hn::Zero(d), c##i##1 = c##i##0, c##i##2 = c##i##0;
#define ANYDML_STEP(i)                                         \
  if ((i) < kRows) {                                           \
    const auto x = hn::Set(d, a[(i)*a_stride + step]);         \
    c##i##0 = hn::MulAdd(x, b0, c##i##0);                      \
    c##i##1 = hn::MulAdd(x, b1, c##i##1);                      \
    if (ANYDML_FEW_WIDE) c##i##2 = hn::MulAdd(x, b2, c##i##2); \
  }
#define ANYDML_PUT(i)                                                                \
  if ((i) < kRows) {                                                                 \
    hn::StoreU(c##i##0, d, sums + (i)*sums_stride);                                  \
    hn::StoreU(c##i##1, d, sums + (i)*sums_stride + lanes);                          \
    if (ANYDML_FEW_WIDE) hn::StoreU(c##i##2, d, sums + (i)*sums_stride + 2 * lanes); \
  }
template <typename T, uint32_t kRows>
void Panel(const float* HWY_RESTRICT a, uint64_t a_stride, const void* panel, uint64_t steps,
           float* HWY_RESTRICT sums, uint64_t sums_stride) {
  const D d;
  const uint64_t lanes = hn::Lanes(d), columns = (ANYDML_FEW_WIDE ? 3 : 2) * lanes;
  const T* HWY_RESTRICT b = static_cast<const T*>(panel);
  ANYDML_FEW_ROWS(ANYDML_ZERO)
  for (uint64_t step = 0; step < steps; ++step, b += columns) {
    const auto b0 = LoadVector(d, b), b1 = LoadVector(d, b + lanes);
    const auto b2 = ANYDML_FEW_WIDE ? LoadVector(d, b + 2 * lanes) : b0;
    ANYDML_FEW_ROWS(ANYDML_STEP)
  }
  ANYDML_FEW_ROWS(ANYDML_PUT)
}
#undef ANYDML_FEW_ROWS
#undef ANYDML_ZERO
#undef ANYDML_STEP
#undef ANYDML_PUT

template <typename T>
FewRows FindFewOf() {
  return {&Dot<T>,
          &AddRows<T>,
          {&PanelOfOne<T>, &Panel<T, 2>, &Panel<T, 3>, &Panel<T, 4>},
          static_cast<uint32_t>((ANYDML_FEW_WIDE ? 3 : 2) * hn::Lanes(D()))};
}
FewRows FindFew(bool half) { return half ? FindFewOf<hwy::float16_t>() : FindFewOf<float>(); }

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
void Dot(const float* a, const void* matrix, uint64_t stride, uint64_t steps, float* sums,
         uint64_t /*ahead*/) {
  for (uint32_t c = 0; c < kFewAtATime; ++c) {
    const T* const b = static_cast<const T*>(matrix) + c * stride;
    sums[c] = 0;
    for (uint64_t s = 0; s < steps; ++s) sums[c] += a[s] * NumberOf(b[s]);
  }
}

template <typename T>
void AddRows(const float* a, const void* matrix, uint64_t stride, uint32_t rows, uint64_t count, float* sums,
             uint64_t /*ahead*/) {
  for (uint32_t r = 0; r < rows; ++r) {
    const T* const b = static_cast<const T*>(matrix) + r * stride;
    for (uint64_t j = 0; j < count; ++j) sums[j] += a[r] * NumberOf(b[j]);
  }
}

constexpr uint32_t kPanelColumns = 8;

template <typename T, uint32_t kRows>
void Panel(const float* a, uint64_t a_stride, const void* panel, uint64_t steps, float* sums,
           uint64_t sums_stride) {
  for (uint32_t r = 0; r < kRows; ++r) {
    float row[kPanelColumns] = {};
    const T* b = static_cast<const T*>(panel);
    for (uint64_t s = 0; s < steps; ++s, b += kPanelColumns) {
      for (uint32_t c = 0; c < kPanelColumns; ++c) row[c] += a[r * a_stride + s] * NumberOf(b[c]);
    }
    std::memcpy(sums + r * sums_stride, row, sizeof(row));
  }
}

template <typename T>
FewRows FindFewOf() {
  return {&Dot<T>, &AddRows<T>, {&Panel<T, 1>, &Panel<T, 2>, &Panel<T, 3>, &Panel<T, 4>}, kPanelColumns};
}

}  // namespace

FewRows FindFewRows(DataType type) {
  return type == DataType::kFloat16 ? FindFewOf<Half>() : FindFewOf<float>();
}

}  // namespace anydml
#endif
