#include "ops/softmax/cpu/loops.h"

#include <algorithm>

#include "ops/element/lane_math.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax/cpu/loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/element/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVector = hn::Vec<F32>;

HWY_INLINE FloatVector PowersOf(F32 d, FloatVector x, FloatVector max) {
  return ExpInRange(d, AtLeast(d, hn::Sub(x, max), -104.0f));
}

// As much of a run as fits into whole vectors; how much that is.
template <bool kStores>
HWY_INLINE uint64_t WholeExp(const float* x, uint64_t count, float max, float* y, float* sum) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto maxima = hn::Set(d, max);
  auto a = hn::Zero(d), b = hn::Zero(d);
  uint64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto power_a = PowersOf(d, hn::LoadU(d, x + i), maxima);
    const auto power_b = PowersOf(d, hn::LoadU(d, x + i + lanes), maxima);
    if constexpr (kStores) {
      hn::StoreU(power_a, d, y + i);
      hn::StoreU(power_b, d, y + i + lanes);
    }
    a = hn::Add(a, power_a);
    b = hn::Add(b, power_b);
  }
  for (; i + lanes <= count; i += lanes) {
    const auto power = PowersOf(d, hn::LoadU(d, x + i), maxima);
    if constexpr (kStores) hn::StoreU(power, d, y + i);
    a = hn::Add(a, power);
  }
  *sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  return i;
}

uint64_t WholeExpOfRow(const float* x, uint64_t count, float max, float* y, float* sum) {
  return y != nullptr ? WholeExp<true>(x, count, max, y, sum) : WholeExp<false>(x, count, max, y, sum);
}

uint64_t WholeScaleRow(const float* x, uint64_t count, float factor, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto factors = hn::Set(d, factor);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(Canonical(d, hn::Mul(hn::LoadU(d, x + i), factors)), d, y + i);
  }
  return i;
}

uint64_t WholeShiftRow(const float* x, uint64_t count, float max, float log, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto maxima = hn::Set(d, max), logs = hn::Set(d, log);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(Canonical(d, hn::Sub(hn::Sub(hn::LoadU(d, x + i), maxima), logs)), d, y + i);
  }
  return i;
}

uint64_t WholeAddExp(const SoftmaxTile& tile, const float* maxima, float* sums) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= tile.columns; i += lanes) {
    const auto max = hn::LoadU(d, maxima + i);
    auto sum = hn::LoadU(d, sums + i);
    for (uint32_t r = 0; r < tile.rows; ++r) {
      sum = hn::Add(sum, PowersOf(d, hn::LoadU(d, tile.elements + r * tile.row_stride + i), max));
    }
    hn::StoreU(sum, d, sums + i);
  }
  return i;
}

uint64_t WholeSoftmax(const SoftmaxTile& tile, const float* maxima, const float* factors, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= tile.columns; i += lanes) {
    const auto max = hn::LoadU(d, maxima + i), factor = hn::LoadU(d, factors + i);
    for (uint32_t r = 0; r < tile.rows; ++r) {
      const auto power = PowersOf(d, hn::LoadU(d, tile.elements + r * tile.row_stride + i), max);
      hn::StoreU(Canonical(d, hn::Mul(power, factor)), d, y + uint64_t{r} * tile.columns + i);
    }
  }
  return i;
}

uint64_t WholeLogSoftmax(const SoftmaxTile& tile, const float* maxima, const float* logs, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= tile.columns; i += lanes) {
    const auto max = hn::LoadU(d, maxima + i), log = hn::LoadU(d, logs + i);
    for (uint32_t r = 0; r < tile.rows; ++r) {
      const auto difference = hn::Sub(hn::LoadU(d, tile.elements + r * tile.row_stride + i), max);
      hn::StoreU(Canonical(d, hn::Sub(difference, log)), d, y + uint64_t{r} * tile.columns + i);
    }
  }
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {

#if ANYDML_HAVE_HIGHWAY
namespace {
HWY_EXPORT(WholeExpOfRow);
HWY_EXPORT(WholeScaleRow);
HWY_EXPORT(WholeShiftRow);
HWY_EXPORT(WholeAddExp);
HWY_EXPORT(WholeSoftmax);
HWY_EXPORT(WholeLogSoftmax);
}  // namespace
// As much as fits into whole vectors; how much that is.
#define ANYDML_WHOLE(function, ...) HWY_DYNAMIC_DISPATCH(function)(__VA_ARGS__)
#else
#define ANYDML_WHOLE(function, ...) 0
#endif

namespace {

constexpr uint64_t kRun = 4096;  // additions in FLOAT32 before one in FLOAT64

// For what is left. Differences are not positive.
float PowerOf(float x, float max) {
  const lane::Tag<float> d;
  return lane::ExpInRange(d, lane::AtLeast(d, x - max, -104.0f));
}
float OneNan(float x) { return lane::Canonical(lane::Tag<float>(), x); }

}  // namespace

double ExpOfRow(const float* x, uint64_t count, float max, float* y) {
  double total = 0;
  for (uint64_t at = 0; at < count; at += kRun) {
    const uint64_t length = std::min(kRun, count - at);
    float* const run = y != nullptr ? y + at : nullptr;
    float sum = 0;
    for (uint64_t i = ANYDML_WHOLE(WholeExpOfRow, x + at, length, max, run, &sum); i < length; ++i) {
      const float power = PowerOf(x[at + i], max);
      if (run != nullptr) run[i] = power;
      sum += power;
    }
    total += double{sum};
  }
  return total;
}

void ScaleRow(const float* x, uint64_t count, float factor, float* y) {
  for (uint64_t i = ANYDML_WHOLE(WholeScaleRow, x, count, factor, y); i < count; ++i) {
    y[i] = OneNan(x[i] * factor);
  }
}

void ShiftRow(const float* x, uint64_t count, float max, float log, float* y) {
  for (uint64_t i = ANYDML_WHOLE(WholeShiftRow, x, count, max, log, y); i < count; ++i) {
    y[i] = OneNan(x[i] - max - log);
  }
}

void AddExpOfColumns(const SoftmaxTile& tile, const float* maxima, float* sums) {
  for (uint64_t i = ANYDML_WHOLE(WholeAddExp, tile, maxima, sums); i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      sums[i] += PowerOf(tile.elements[r * tile.row_stride + i], maxima[i]);
    }
  }
}

void SoftmaxOfColumns(const SoftmaxTile& tile, const float* maxima, const float* factors, float* y) {
  for (uint64_t i = ANYDML_WHOLE(WholeSoftmax, tile, maxima, factors, y); i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      const float power = PowerOf(tile.elements[r * tile.row_stride + i], maxima[i]);
      y[uint64_t{r} * tile.columns + i] = OneNan(power * factors[i]);
    }
  }
}

void LogSoftmaxOfColumns(const SoftmaxTile& tile, const float* maxima, const float* logs, float* y) {
  for (uint64_t i = ANYDML_WHOLE(WholeLogSoftmax, tile, maxima, logs, y); i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      const float x = tile.elements[r * tile.row_stride + i];
      y[uint64_t{r} * tile.columns + i] = OneNan(x - maxima[i] - logs[i]);
    }
  }
}

}  // namespace anydml
#endif
