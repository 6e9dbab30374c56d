#include "ops/product/panel_copies.h"

#if ANYDML_HAVE_HIGHWAY
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/product/panel_copies.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// Needs vectors of 32 bytes or more, and conversions of FLOAT16.
#undef ANYDML_LONG_VECTORS
#define ANYDML_LONG_VECTORS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)
#undef ANYDML_HALF_VECTORS
#define ANYDML_HALF_VECTORS (ANYDML_LONG_VECTORS || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64))

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

#if ANYDML_HALF_VECTORS
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

#include "ops/numbers/half_vectors-inl.h"

constexpr uint32_t kMostVectors = 3;  // at a time: the width of most panels

// Copies less than a vector.
HWY_INLINE void CopyRest(D d, const uint16_t* from, uint64_t count, float* to) {
  alignas(64) uint16_t halves[hn::MaxLanes(D())] = {};
  alignas(64) float numbers[hn::MaxLanes(D())];
  std::memcpy(halves, from, count * sizeof(halves[0]));
  hn::Store(LoadNumbers(d, halves), d, numbers);
  std::memcpy(to, numbers, count * sizeof(float));
}

#if ANYDML_LONG_VECTORS
HWY_INLINE void CopyRest(D d, const float* from, uint64_t count, float* to) {
#if HWY_TARGET <= HWY_AVX3
  const auto mask = hn::FirstN(d, count);
  hn::BlendedStore(hn::MaskedLoad(mask, d, from), mask, d, to);
#else
  (void)d;
  constexpr uint64_t kSome = 4;
  if (count < kSome) {
    for (uint64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  std::memcpy(to, from, kSome * sizeof(float));
  std::memcpy(to + count - kSome, from + count - kSome, kSome * sizeof(float));
#endif
}
#endif

// Copies kVectors vectors and `rest` more elements per step; at(step) is their place. If rows are on pages of
// their own, hardware does not prefetch them, so at(steps + step) is prefetched.
template <bool kAsks, uint32_t kVectors, class At>
HWY_INLINE void CopyVectors(At&& at, uint64_t steps, uint64_t rest, uint32_t width, float* HWY_RESTRICT to) {
  const D d;
  constexpr uint64_t kLanes = hn::MaxLanes(D());
  for (uint64_t s = 0; s < steps; ++s, to += width) {
    const auto* HWY_RESTRICT const from = at(s);
    if constexpr (kAsks) {
      constexpr uint64_t kOfLine = 64 / sizeof(*from);
      const auto* const next = at(steps + s);
      for (uint64_t i = 0; i < HWY_MAX(kVectors, 1) * kLanes; i += kOfLine) __builtin_prefetch(next + i);
    }
    if (kVectors > 0) hn::StoreU(LoadNumbers(d, from), d, to);
    if (kVectors > 1) hn::StoreU(LoadNumbers(d, from + kLanes), d, to + kLanes);
    if (kVectors > 2) hn::StoreU(LoadNumbers(d, from + 2 * kLanes), d, to + 2 * kLanes);
    if (kVectors < kMostVectors && rest != 0) {
      CopyRest(d, from + kVectors * kLanes, rest, to + kVectors * kLanes);
    }
  }
}

template <bool kAsks, class At>
HWY_INLINE void CopyAll(At&& at, uint64_t steps, uint32_t count, uint32_t width, float* to) {
  constexpr uint32_t kLanes = hn::MaxLanes(D()), kMost = kMostVectors * kLanes;
  uint32_t done = 0;
  const auto behind = [&](uint64_t s) HWY_ATTR { return at(s) + done; };
  for (; count > kMost; count -= kMost, done += kMost)
    CopyVectors<kAsks, 3>(behind, steps, 0, width, to + done);
  const uint32_t rest = count % kLanes;
  switch (count / kLanes) {
    case 0:
      return CopyVectors<kAsks, 0>(behind, steps, rest, width, to + done);
    case 1:
      return CopyVectors<kAsks, 1>(behind, steps, rest, width, to + done);
    case 2:
      return CopyVectors<kAsks, 2>(behind, steps, rest, width, to + done);
    default:
      return CopyVectors<kAsks, 3>(behind, steps, rest, width, to + done);
  }
}

#if ANYDML_LONG_VECTORS
void CopySteps(const float* from, const uint64_t* offsets, uint64_t steps, uint32_t count, uint32_t width,
               float* to) {
  CopyAll<false>([=](uint64_t s) HWY_ATTR { return from + offsets[s]; }, steps, count, width, to);
}
void CopyRows(const float* from, uint64_t stride, uint64_t steps, uint32_t count, uint32_t width, float* to) {
  CopyAll<HWY_ARCH_X86>([=](uint64_t s) HWY_ATTR { return from + s * stride; }, steps, count, width, to);
}
#endif
void CopyHalfRows(const uint16_t* from, uint64_t stride, uint64_t steps, uint32_t count, uint32_t width,
                  float* to) {
  CopyAll<HWY_ARCH_X86>([=](uint64_t s) HWY_ATTR { return from + s * stride; }, steps, count, width, to);
}
#endif

PanelCopies FindCopies() {
  PanelCopies copies;
#if ANYDML_LONG_VECTORS
  copies.steps = &CopySteps;
  copies.rows = &CopyRows;
#endif
#if ANYDML_HALF_VECTORS
  copies.half_rows = &CopyHalfRows;
#endif
  return copies;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindCopies);
}  // namespace

const PanelCopies& FindPanelCopies() {
  static const PanelCopies copies = HWY_DYNAMIC_DISPATCH(FindCopies)();
  return copies;
}
}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
const PanelCopies& FindPanelCopies() {
  static constexpr PanelCopies kNone;
  return kNone;
}
}  // namespace anydml
#endif
