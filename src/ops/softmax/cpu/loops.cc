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
  auto a = hn::Zero(d), b = a, c = a, e = a;
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto power_a = PowersOf(d, hn::LoadU(d, x + i), maxima);
    const auto power_b = PowersOf(d, hn::LoadU(d, x + i + lanes), maxima);
    const auto power_c = PowersOf(d, hn::LoadU(d, x + i + 2 * lanes), maxima);
    const auto power_e = PowersOf(d, hn::LoadU(d, x + i + 3 * lanes), maxima);
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
    const auto power = PowersOf(d, hn::LoadU(d, x + i), maxima);
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

// Row by row: lines of rows that are a power of two apart push each other out of the cache.
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
HWY_EXPORT(WholeShiftRow);
HWY_EXPORT(WholeAddExp);
HWY_EXPORT(WholeScale);
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
    y[i] = x[i] * factor;
  }
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
