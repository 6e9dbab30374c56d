#include "ops/numbers/softmax_loops.h"

#include <algorithm>
#include <limits>

#include "ops/numbers/math/lane_math.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/numbers/softmax_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/numbers/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint64_t kLine = 16;  // floats per cache line

using F32 = hn::ScalableTag<float>;
using FloatVector = hn::Vec<F32>;

HWY_INLINE FloatVector PowersOf(F32 d, FloatVector x, FloatVector max) {
  return ExpInRange(d, AtLeast(d, hn::Sub(x, max), -104.0f));
}

// Processes as much of a run as fits into whole vectors; returns its length. With kScales it uses scale * x
// and prefetches as much at `next`.
template <bool kStores, bool kScales = false>
HWY_INLINE uint64_t WholeExp(const float* x, uint64_t count, float max, float* y, float* sum, float scale = 1,
                             uintptr_t next = 0) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto maxima = hn::Set(d, max), scales = hn::Set(d, scale);
  const auto powers_at = [&](uint64_t at) HWY_ATTR {
    const auto numbers = hn::LoadU(d, x + at);
    return PowersOf(d, kScales ? hn::Mul(numbers, scales) : numbers, maxima);
  };
  auto a = hn::Zero(d), b = a, c = a, e = a;
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    if constexpr (kScales) {
      for (uint64_t k = 0; k < 4 * lanes; k += kLine) {
        __builtin_prefetch(reinterpret_cast<const void*>(next + (i + k) * sizeof(float)));
      }
    }
    const auto power_a = powers_at(i);
    const auto power_b = powers_at(i + lanes);
    const auto power_c = powers_at(i + 2 * lanes);
    const auto power_e = powers_at(i + 3 * lanes);
    if constexpr (kStores) {
      hn::StoreU(power_a, d, y + i);
      hn::StoreU(power_b, d, y + i + lanes);
      hn::StoreU(power_c, d, y + i + 2 * lanes);
      hn::StoreU(power_e, d, y + i + 3 * lanes);
    }
    a = hn::Add(a, power_a);
    b = hn::Add(b, power_b);
    c = hn::Add(c, power_c);
    e = hn::Add(e, power_e);
  }
  for (; i + lanes <= count; i += lanes) {
    const auto power = powers_at(i);
    if constexpr (kStores) hn::StoreU(power, d, y + i);
    a = hn::Add(a, power);
  }
  *sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
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
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), factors), d, y + i);
  }
  return i;
}

// The largest of scale * x in whole vectors; unspecified for NaNs.
HWY_INLINE float WholeLargest(const float* x, uint64_t count, float scale) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto scales = hn::Set(d, scale);
  auto a = hn::Set(d, -std::numeric_limits<float>::infinity()), b = a;
  uint64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    a = hn::Max(a, hn::Mul(hn::LoadU(d, x + i), scales));
    b = hn::Max(b, hn::Mul(hn::LoadU(d, x + i + lanes), scales));
  }
  if (i + lanes <= count) a = hn::Max(a, hn::Mul(hn::LoadU(d, x + i), scales));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
}

// The elements after whole vectors are processed one by one. `next` assumes that rows are consecutive.
void SoftmaxOfWhole(float* x, uint64_t count, float scale) {
  const lane::Tag<float> one;
  const uint64_t lanes = hn::Lanes(F32());
  float largest = WholeLargest(x, count, scale);
  for (uint64_t i = count / lanes * lanes; i < count; ++i) largest = std::max(largest, x[i] * scale);
  double total = 0;
  for (uint64_t at = 0; at < count; at += kSoftmaxRun) {
    const uint64_t length = std::min(kSoftmaxRun, count - at);
    float* const run = x + at;
    float sum = 0;
    const uintptr_t next = reinterpret_cast<uintptr_t>(run) + count * sizeof(float);
    for (uint64_t i = WholeExp<true, true>(run, length, largest, run, &sum, scale, next); i < length; ++i) {
      run[i] = lane::ExpInRange(one, lane::AtLeast(one, run[i] * scale - largest, -104.0f));
      sum += run[i];
    }
    total += double{sum};
  }
  const auto factor = static_cast<float>(1 / total);
  for (uint64_t i = WholeScaleRow(x, count, factor, x); i < count; ++i) x[i] *= factor;
}

uint64_t WholeShiftRow(const float* x, uint64_t count, float max, float log, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto maxima = hn::Set(d, max), logs = hn::Set(d, log);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, x + i), maxima), logs), d, y + i);
  }
  return i;
}

// Row by row, because cache lines of rows that are a power of two apart evict each other.
uint64_t WholeAddExp(const SoftmaxTile& tile, const float* maxima, float* sums, float* y, uint64_t y_stride) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const uint64_t whole = tile.columns / lanes * lanes;
  for (uint32_t r = 0; r < tile.rows; ++r) {
    const float* const x = tile.elements + r * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      const auto power = PowersOf(d, hn::LoadU(d, x + i), hn::LoadU(d, maxima + i));
      hn::StoreU(hn::Add(hn::LoadU(d, sums + i), power), d, sums + i);
      if (y != nullptr) hn::StoreU(power, d, y + r * y_stride + i);
    }
  }
  return whole;
}

uint64_t WholeScale(const SoftmaxTile& tile, const float* factors, float* y, uint64_t y_stride) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const uint64_t whole = tile.columns / lanes * lanes;
  for (uint32_t r = 0; r < tile.rows; ++r, y += y_stride) {
    for (uint64_t i = 0; i < whole; i += lanes) {
      const auto product = hn::Mul(hn::LoadU(d, y + i), hn::LoadU(d, factors + i));
      hn::StoreU(Canonical(d, product), d, y + i);
    }
  }
  return whole;
}

uint64_t WholeSoftmax(const SoftmaxTile& tile, const float* maxima, const float* factors, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const uint64_t whole = tile.columns / lanes * lanes;
  for (uint32_t r = 0; r < tile.rows; ++r, y += tile.columns) {
    const float* const x = tile.elements + r * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      const auto power = PowersOf(d, hn::LoadU(d, x + i), hn::LoadU(d, maxima + i));
      hn::StoreU(Canonical(d, hn::Mul(power, hn::LoadU(d, factors + i))), d, y + i);
    }
  }
  return whole;
}

uint64_t WholeLogSoftmax(const SoftmaxTile& tile, const float* maxima, const float* logs, float* y) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const uint64_t whole = tile.columns / lanes * lanes;
  for (uint32_t r = 0; r < tile.rows; ++r, y += tile.columns) {
    const float* const x = tile.elements + r * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      const auto difference = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, maxima + i));
      hn::StoreU(Canonical(d, hn::Sub(difference, hn::LoadU(d, logs + i))), d, y + i);
    }
  }
  return whole;
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
HWY_EXPORT(SoftmaxOfWhole);
HWY_EXPORT(WholeShiftRow);
HWY_EXPORT(WholeAddExp);
HWY_EXPORT(WholeScale);
HWY_EXPORT(WholeSoftmax);
HWY_EXPORT(WholeLogSoftmax);
}  // namespace
// Processes as many elements as fill whole vectors; returns their number.
#define ANYDML_WHOLE(function, ...) HWY_DYNAMIC_DISPATCH(function)(__VA_ARGS__)
#else
#define ANYDML_WHOLE(function, ...) 0
#endif

namespace {

// For the remaining elements. Differences are not positive.
float PowerOf(float x, float max) {
  const lane::Tag<float> d;
  return lane::ExpInRange(d, lane::AtLeast(d, x - max, -104.0f));
}
float OneNan(float x) { return lane::Canonical(lane::Tag<float>(), x); }

}  // namespace

double ExpOfRow(const float* x, uint64_t count, float max, float* y) {
  double total = 0;
  for (uint64_t at = 0; at < count; at += kSoftmaxRun) {
    const uint64_t length = std::min(kSoftmaxRun, count - at);
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
    y[i] = x[i] * factor;
  }
}

void SoftmaxOfRow(float* x, uint64_t count, float scale) {
#if ANYDML_HAVE_HIGHWAY
  HWY_DYNAMIC_DISPATCH(SoftmaxOfWhole)(x, count, scale);
#else
  float largest = -std::numeric_limits<float>::infinity();
  for (uint64_t i = 0; i < count; ++i) {
    x[i] *= scale;
    largest = std::max(largest, x[i]);
  }
  ScaleRow(x, count, static_cast<float>(1 / ExpOfRow(x, count, largest, x)), x);
#endif
}

void ShiftRow(const float* x, uint64_t count, float max, float log, float* y) {
  for (uint64_t i = ANYDML_WHOLE(WholeShiftRow, x, count, max, log, y); i < count; ++i) {
    y[i] = x[i] - max - log;
  }
}

void AddExpOfColumns(const SoftmaxTile& tile, const float* maxima, float* sums, float* y, uint64_t y_stride) {
  for (uint64_t i = ANYDML_WHOLE(WholeAddExp, tile, maxima, sums, y, y_stride); i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      const float power = PowerOf(tile.elements[r * tile.row_stride + i], maxima[i]);
      sums[i] += power;
      if (y != nullptr) y[r * y_stride + i] = power;
    }
  }
}

void ScaleColumns(const SoftmaxTile& tile, const float* factors, float* y, uint64_t y_stride) {
  for (uint64_t i = ANYDML_WHOLE(WholeScale, tile, factors, y, y_stride); i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      float& power = y[r * y_stride + i];
      power = OneNan(power * factors[i]);
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
