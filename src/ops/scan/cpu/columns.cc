#include "ops/scan/cpu/columns.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <type_traits>

#include "ops/common/best_target.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scan/cpu/columns.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
#else
namespace anydml {
#endif
namespace {

template <bool kMultiplies, bool kExclusive, typename T>
void StepByElements(const T* from, T* to, uint64_t count, T* __restrict totals) {
  for (uint64_t c = 0; c < count; ++c) {
    const T before = totals[c], total = kMultiplies ? before * from[c] : before + from[c];
    T result = kExclusive ? before : total;
    if constexpr (std::is_same_v<T, float>) {
      // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
      result = result == result ? result : std::bit_cast<float>(0x7FC00000u);
    }
    to[c] = result;
    totals[c] = total;
  }
}

#if ANYDML_HAVE_HIGHWAY
namespace hn = hwy::HWY_NAMESPACE;

// `count` elements of whole vectors.
template <bool kMultiplies, bool kExclusive, bool kStreams, typename T>
void StepByVectors(const T* from, T* to, uint64_t count, T* totals) {
  const hn::ScalableTag<T> d;
  const uint64_t lanes = hn::Lanes(d);
  for (uint64_t c = 0; c < count; c += lanes) {
    const auto before = hn::LoadU(d, totals + c), x = hn::LoadU(d, from + c);
    auto total = before;
    if constexpr (kMultiplies) {
      total = hn::Mul(before, x);
    } else {
      total = hn::Add(before, x);
    }
    auto result = kExclusive ? before : total;
    if constexpr (std::is_same_v<T, float>) {
      const auto nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), 0x7FC00000u));
      result = hn::IfThenElse(hn::IsNaN(result), nan, result);
    }
    if constexpr (kStreams) {
      hn::Stream(result, d, to + c);
    } else {
      hn::StoreU(result, d, to + c);
    }
    hn::StoreU(total, d, totals + c);
  }
}

template <bool kMultiplies, bool kExclusive, typename T>
void Steps(const T* from, T* to, uint64_t count, T* totals, bool streams) {
  uint64_t head = 0, end = 0;
  if constexpr (sizeof(T) == 4 || !kMultiplies) {  // few machines have vector multiplications of wider
                                                   // integers
    const uint64_t lanes = hn::Lanes(hn::ScalableTag<T>());
    // Streaming stores must be aligned.
    const uint64_t beside = reinterpret_cast<uintptr_t>(to) / sizeof(T) % lanes;
    head = streams && beside > 0 ? std::min(count, lanes - beside) : 0;
    end = head + (count - head) / lanes * lanes;
    if (streams) {
      StepByVectors<kMultiplies, kExclusive, true>(from + head, to + head, end - head, totals + head);
    } else {
      StepByVectors<kMultiplies, kExclusive, false>(from, to, end, totals);
    }
  }
  StepByElements<kMultiplies, kExclusive>(from, to, head, totals);
  StepByElements<kMultiplies, kExclusive>(from + end, to + end, count - end, totals + end);
}
#else
template <bool kMultiplies, bool kExclusive, typename T>
void Steps(const T* from, T* to, uint64_t count, T* totals, bool) {
  StepByElements<kMultiplies, kExclusive>(from, to, count, totals);
}
#endif

template <typename T>
void RunStep(const ScanStep& step, const T* from, T* to, uint64_t count, T* totals) {
  if (step.multiplies) {
    step.exclusive ? Steps<true, true>(from, to, count, totals, step.streams)
                   : Steps<true, false>(from, to, count, totals, step.streams);
  } else {
    step.exclusive ? Steps<false, true>(from, to, count, totals, step.streams)
                   : Steps<false, false>(from, to, count, totals, step.streams);
  }
}

}  // namespace

void StepOfFloats(const ScanStep& step, const float* from, float* to, uint64_t count, float* totals) {
  RunStep(step, from, to, count, totals);
}

void StepOfWords(const ScanStep& step, const uint32_t* from, uint32_t* to, uint64_t count, uint32_t* totals) {
  RunStep(step, from, to, count, totals);
}

void StepOfLongWords(const ScanStep& step, const uint64_t* from, uint64_t* to, uint64_t count,
                     uint64_t* totals) {
  RunStep(step, from, to, count, totals);
}

#if ANYDML_HAVE_HIGHWAY
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#else
}  // namespace anydml
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {
namespace {
ANYDML_EXPORT_BEST(StepOfFloats);
ANYDML_EXPORT_BEST(StepOfWords);
ANYDML_EXPORT_BEST(StepOfLongWords);
}  // namespace

void RunScanStep(const ScanStep& step, const float* from, float* to, uint64_t count, float* totals) {
  ANYDML_BEST(StepOfFloats)(step, from, to, count, totals);
}

void RunScanStep(const ScanStep& step, const uint32_t* from, uint32_t* to, uint64_t count, uint32_t* totals) {
  ANYDML_BEST(StepOfWords)(step, from, to, count, totals);
}

void RunScanStep(const ScanStep& step, const uint64_t* from, uint64_t* to, uint64_t count, uint64_t* totals) {
  ANYDML_BEST(StepOfLongWords)(step, from, to, count, totals);
}

}  // namespace anydml
#endif
