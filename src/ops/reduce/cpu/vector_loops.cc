// Loops over FLOAT32 by vectors. Sums are kept in FLOAT64 from one short run of additions to the next.
#include "ops/reduce/cpu/loops.h"

#include <algorithm>
#include <type_traits>

#include "ops/reduce/accumulate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce/cpu/vector_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/element/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVector = hn::Vec<F32>;

constexpr uint64_t kRun = 4096;         // elements: additions before FLOAT64
constexpr uint64_t kPositionRun = 512;  // elements that are looked at once more if they have something better

template <Accumulation kKind>
HWY_INLINE FloatVector Term(FloatVector x) {
  if constexpr (kKind == Accumulation::kSumSquare) return hn::Mul(x, x);
  if constexpr (kKind == Accumulation::kSumAbs) return hn::Abs(x);
  return x;
}

// The larger (smaller) ones; NaN if one is, and +0 is larger than -0.
template <bool kMin>
HWY_INLINE FloatVector ExtremeOf(F32 d, FloatVector a, FloatVector b) {
#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  (void)d;
  return FloatVector(kMin ? vminq_f32(a.raw, b.raw) : vmaxq_f32(a.raw, b.raw));
#else
  const auto chosen = hn::IfThenElse(kMin ? hn::Lt(a, b) : hn::Gt(a, b), a, b);
  const auto equal = kMin ? hn::Or(a, b) : hn::And(a, b);  // only zeros differ
  const auto number = hn::IfThenElse(hn::Eq(a, b), equal, chosen);
  // b, where it is NaN, is chosen already.
  return hn::IfThenElse(hn::IsNaN(a), hn::Set(d, lane::kNan), number);
#endif
}

template <Accumulation kKind>
float SumOfRun(const float* HWY_RESTRICT x, uint64_t count) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, Term<kKind>(hn::LoadU(d, x + i)));
    b = hn::Add(b, Term<kKind>(hn::LoadU(d, x + i + lanes)));
    c = hn::Add(c, Term<kKind>(hn::LoadU(d, x + i + 2 * lanes)));
    e = hn::Add(e, Term<kKind>(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Add(a, Term<kKind>(hn::LoadU(d, x + i)));
  const auto sum = hn::Add(hn::Add(a, b), hn::Add(c, e));
  auto rest = reduce::Sum<kKind, float, float>::Start();
  for (; i < count; ++i) rest.Add(x[i], 0);
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest.value;
}

template <Accumulation kKind>
HWY_INLINE void AddRowToSum(const void* elements, uint64_t count, const Accumulators& one) {
  double sum = static_cast<double*>(one.values)[one.at];
  for (uint64_t at = 0; at < count; at += kRun) {
    sum += double{SumOfRun<kKind>(static_cast<const float*>(elements) + at, std::min(kRun, count - at))};
  }
  static_cast<double*>(one.values)[one.at] = sum;
}

// Calls rows(first, count) for four rows at a time, and what is left one by one: a machine follows a few
// streams.
template <class Rows>
HWY_INLINE void ForRows(const ReduceTile& tile, const Rows& rows) {
  uint32_t r = 0;
  for (; r + 4 <= tile.rows; r += 4) rows(r, std::integral_constant<uint32_t, 4>());
  for (; r < tile.rows; ++r) rows(r, std::integral_constant<uint32_t, 1>());
}

template <Accumulation kKind>
HWY_INLINE void AddColumnsToSums(const ReduceTile& tile, const Accumulators& all) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const float*>(tile.elements);
  HWY_ALIGN float line[kMaxReducedColumns];
  std::fill_n(line, tile.columns, 0.0f);
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const float* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto sum = hn::Load(d, line + i);
      for (uint32_t r = 0; r < rows; ++r) {
        sum = hn::Add(sum, Term<kKind>(hn::LoadU(d, x + r * tile.row_stride + i)));
      }
      hn::Store(sum, d, line + i);
    }
  });
  for (uint64_t i = whole; i < tile.columns; ++i) {
    auto sum = reduce::Sum<kKind, float, float>::Start();
    for (uint32_t r = 0; r < tile.rows; ++r) sum.Add(elements[r * tile.row_stride + i], 0);
    line[i] = sum.value;
  }
  auto* const sums = static_cast<double*>(all.values) + all.at;
  for (uint32_t j = 0; j < tile.columns; ++j) sums[j] += double{line[j]};
}

template <bool kMin>
float ExactExtremeOfRow(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  if (count >= lanes) {
    auto a = hn::Set(d, extreme), b = a, c = a, e = a;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      a = ExtremeOf<kMin>(d, a, hn::LoadU(d, x + i));
      b = ExtremeOf<kMin>(d, b, hn::LoadU(d, x + i + lanes));
      c = ExtremeOf<kMin>(d, c, hn::LoadU(d, x + i + 2 * lanes));
      e = ExtremeOf<kMin>(d, e, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= count; i += lanes) a = ExtremeOf<kMin>(d, a, hn::LoadU(d, x + i));
    a = ExtremeOf<kMin>(d, ExtremeOf<kMin>(d, a, b), ExtremeOf<kMin>(d, c, e));
    HWY_ALIGN float each[hn::MaxLanes(d)];
    hn::Store(a, d, each);
    for (uint64_t l = 0; l < lanes; ++l) extreme = reduce::Extreme<kMin>(extreme, each[l]);
  }
  for (; i < count; ++i) extreme = reduce::Extreme<kMin>(extreme, x[i]);
  return extreme;
}

#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
template <bool kMin>
float ExtremeOfRow(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  return ExactExtremeOfRow<kMin>(x, count, extreme);
}
#else
// What targets make of NaNs and of zeros differs: NaNs are only noticed, and a run that has one, or whose
// extreme is a zero, is looked at once more.
template <bool kMin>
HWY_INLINE FloatVector AnyExtremeOf(FloatVector a, FloatVector b) {
  return kMin ? hn::Min(a, b) : hn::Max(a, b);
}

template <bool kMin>
float ExtremeOfRun(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d), whole = count / (2 * lanes) * (2 * lanes);
  if (whole == 0) return ExactExtremeOfRow<kMin>(x, count, extreme);
  auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + lanes);
  auto nan_a = hn::IsNaN(a), nan_b = hn::IsNaN(b);
  for (uint64_t i = 2 * lanes; i < whole; i += 2 * lanes) {
    const auto v = hn::LoadU(d, x + i), w = hn::LoadU(d, x + i + lanes);
    a = AnyExtremeOf<kMin>(a, v);
    b = AnyExtremeOf<kMin>(b, w);
    nan_a = hn::Or(nan_a, hn::IsNaN(v));
    nan_b = hn::Or(nan_b, hn::IsNaN(w));
  }
  if (!hn::AllFalse(d, hn::Or(nan_a, nan_b))) return ExactExtremeOfRow<kMin>(x, count, extreme);
  HWY_ALIGN float each[hn::MaxLanes(d)];
  hn::Store(AnyExtremeOf<kMin>(a, b), d, each);
  float found = each[0];
  for (uint64_t l = 1; l < lanes; ++l) found = reduce::Extreme<kMin>(found, each[l]);
  if (found == 0) return ExactExtremeOfRow<kMin>(x, count, extreme);
  return ExactExtremeOfRow<kMin>(x + whole, count - whole, reduce::Extreme<kMin>(extreme, found));
}

template <bool kMin>
float ExtremeOfRow(const float* HWY_RESTRICT x, uint64_t count, float extreme) {
  for (uint64_t at = 0; at < count; at += kRun) {
    extreme = ExtremeOfRun<kMin>(x + at, std::min(kRun, count - at), extreme);
  }
  return extreme;
}
#endif

template <bool kMin>
HWY_INLINE void AddRowToExtreme(const void* elements, uint64_t count, const Accumulators& one) {
  float& extreme = static_cast<float*>(one.values)[one.at];
  extreme = ExtremeOfRow<kMin>(static_cast<const float*>(elements), count, extreme);
}

template <bool kMin>
HWY_INLINE void AddColumnsToExtremes(const ReduceTile& tile, const Accumulators& all) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const float*>(tile.elements);
  auto* const extremes = static_cast<float*>(all.values) + all.at;
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const float* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto extreme = hn::LoadU(d, extremes + i);
      for (uint32_t r = 0; r < rows; ++r) {
        extreme = ExtremeOf<kMin>(d, extreme, hn::LoadU(d, x + r * tile.row_stride + i));
      }
      hn::StoreU(extreme, d, extremes + i);
    }
  });
  for (uint64_t i = whole; i < tile.columns; ++i) {
    for (uint32_t r = 0; r < tile.rows; ++r) {
      extremes[i] = reduce::Extreme<kMin>(extremes[i], elements[r * tile.row_stride + i]);
    }
  }
}

// The first (last) element that equals `value`, of which there is one.
template <bool kLast>
uint64_t Find(const float* x, uint64_t count, float value) {
  const auto is_it = [&](uint64_t i) {
    return x[i] == value || (reduce::IsNan(x[i]) && reduce::IsNan(value));
  };
  if constexpr (kLast) {
    uint64_t i = count - 1;
    while (!is_it(i)) --i;
    return i;
  }
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  if (!reduce::IsNan(value)) {
    const auto wanted = hn::Set(d, value);
    while (i + lanes <= count && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), wanted))) i += lanes;
  }
  while (!is_it(i)) ++i;
  return i;
}

// Only runs whose extreme is a better one are looked at again.
template <bool kMin, bool kLast>
HWY_INLINE void AddRowToPosition(const void* elements, uint64_t count, uint32_t position,
                                 const Accumulators& one) {
  float& best = static_cast<float*>(one.values)[one.at];
  for (uint64_t at = 0; at < count; at += kPositionRun) {
    const float* const x = static_cast<const float*>(elements) + at;
    const uint64_t length = std::min(kPositionRun, count - at);
    const float extreme = ExtremeOfRow<kMin>(x, length, kMin ? lane::kInfinity : -lane::kInfinity);
    if (!reduce::Replaces<kMin, kLast>(extreme, best)) continue;
    best = extreme;
    static_cast<uint32_t*>(one.seconds)[one.at] =
        position + static_cast<uint32_t>(at + Find<kLast>(x, length, extreme));
  }
}

// Where x replaces the best so far; see reduce::Replaces.
template <bool kMin, bool kLast>
HWY_INLINE hn::Mask<F32> Replaced(FloatVector x, FloatVector best) {
  const auto is_number = hn::Eq(best, best);
  if constexpr (kLast) {
    const auto worse = kMin ? hn::Gt(x, best) : hn::Lt(x, best);
    return hn::AndNot(worse, hn::Or(is_number, hn::IsNaN(x)));
  } else {
    const auto not_better = kMin ? hn::Ge(x, best) : hn::Le(x, best);
    return hn::AndNot(not_better, is_number);
  }
}

template <bool kMin, bool kLast>
HWY_INLINE void AddColumnsToPositions(const ReduceTile& tile, const Accumulators& all) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const uint64_t lanes = hn::Lanes(d), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const float*>(tile.elements);
  auto* const bests = static_cast<float*>(all.values) + all.at;
  auto* const positions = static_cast<uint32_t*>(all.seconds) + all.at;
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const float* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto best = hn::LoadU(d, bests + i);
      auto position = hn::LoadU(du, positions + i);
      for (uint32_t r = 0; r < rows; ++r) {
        const auto candidate = hn::LoadU(d, x + r * tile.row_stride + i);
        const auto replaced = Replaced<kMin, kLast>(candidate, best);
        best = hn::IfThenElse(replaced, candidate, best);
        position =
            hn::IfThenElse(hn::RebindMask(du, replaced), hn::Set(du, tile.position + first + r), position);
      }
      hn::StoreU(best, d, bests + i);
      hn::StoreU(position, du, positions + i);
    }
  });
  for (uint64_t i = whole; i < tile.columns; ++i) {
    reduce::Position<kMin, kLast, float> one = {bests[i], positions[i]};
    for (uint32_t r = 0; r < tile.rows; ++r) one.Add(elements[r * tile.row_stride + i], tile.position + r);
    bests[i] = one.value;
    positions[i] = one.second;
  }
}

// Exponentials are relative to the largest number of a run, or to 0 where that is infinite: the sum is not
// used then.
void AddRowToLogSumExp(const void* elements, uint64_t count, const Accumulators& one) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  reduce::LogSumExp all = {static_cast<float*>(one.values)[one.at], static_cast<float*>(one.seconds)[one.at]};
  for (uint64_t at = 0; at < count; at += kRun) {
    const float* const x = static_cast<const float*>(elements) + at;
    const uint64_t length = std::min(kRun, count - at);
    const float max = ExtremeOfRow<false>(x, length, -lane::kInfinity);
    const float base = max < lane::kInfinity && max > -lane::kInfinity ? max : 0;
    const auto bases = hn::Set(d, base);
    auto sums = hn::Zero(d);
    uint64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      sums = hn::Add(sums, Exp(d, hn::Sub(hn::LoadU(d, x + i), bases)));
    }
    float rest = 0;
    for (; i < length; ++i) rest += lane::Exp(lane::Tag<float>(), x[i] - base);
    all.Merge({max, hn::GetLane(hn::SumOfLanes(d, sums)) + rest});
  }
  static_cast<float*>(one.values)[one.at] = all.value;
  static_cast<float*>(one.seconds)[one.at] = all.second;
}

void AddColumnsToLogSumExps(const ReduceTile& tile, const Accumulators& all) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  const auto* const x = static_cast<const float*>(tile.elements);
  auto* const maxima = static_cast<float*>(all.values) + all.at;
  auto* const sums = static_cast<float*>(all.seconds) + all.at;
  const auto infinity = hn::Set(d, lane::kInfinity);
  uint64_t i = 0;
  for (; i + lanes <= tile.columns; i += lanes) {
    const auto before = hn::LoadU(d, maxima + i);
    auto max = before;
    for (uint32_t r = 0; r < tile.rows; ++r) {
      max = ExtremeOf<false>(d, max, hn::LoadU(d, x + r * tile.row_stride + i));
    }
    const auto base = hn::IfThenElseZero(hn::Lt(hn::Abs(max), infinity), max);
    auto sum = hn::Mul(hn::LoadU(d, sums + i), Exp(d, hn::Sub(before, base)));
    for (uint32_t r = 0; r < tile.rows; ++r) {
      sum = hn::Add(sum, Exp(d, hn::Sub(hn::LoadU(d, x + r * tile.row_stride + i), base)));
    }
    hn::StoreU(max, d, maxima + i);
    hn::StoreU(sum, d, sums + i);
  }
  for (; i < tile.columns; ++i) {
    reduce::LogSumExp one = {maxima[i], sums[i]};
    for (uint32_t r = 0; r < tile.rows; ++r) one.Add(x[r * tile.row_stride + i], 0);
    maxima[i] = one.value;
    sums[i] = one.second;
  }
}

void AddRow(Accumulation kind, bool last, const void* elements, uint64_t count, uint32_t position,
            const Accumulators& one) {
  switch (kind) {
    case Accumulation::kSumAbs:
      return AddRowToSum<Accumulation::kSumAbs>(elements, count, one);
    case Accumulation::kSumSquare:
      return AddRowToSum<Accumulation::kSumSquare>(elements, count, one);
    case Accumulation::kMax:
      return AddRowToExtreme<false>(elements, count, one);
    case Accumulation::kMin:
      return AddRowToExtreme<true>(elements, count, one);
    case Accumulation::kLogSumExp:
      return AddRowToLogSumExp(elements, count, one);
    case Accumulation::kArgmax:
      return last ? AddRowToPosition<false, true>(elements, count, position, one)
                  : AddRowToPosition<false, false>(elements, count, position, one);
    case Accumulation::kArgmin:
      return last ? AddRowToPosition<true, true>(elements, count, position, one)
                  : AddRowToPosition<true, false>(elements, count, position, one);
    default:
      return AddRowToSum<Accumulation::kSum>(elements, count, one);
  }
}

void AddColumns(Accumulation kind, bool last, const ReduceTile& tile, const Accumulators& all) {
  switch (kind) {
    case Accumulation::kSumAbs:
      return AddColumnsToSums<Accumulation::kSumAbs>(tile, all);
    case Accumulation::kSumSquare:
      return AddColumnsToSums<Accumulation::kSumSquare>(tile, all);
    case Accumulation::kMax:
      return AddColumnsToExtremes<false>(tile, all);
    case Accumulation::kMin:
      return AddColumnsToExtremes<true>(tile, all);
    case Accumulation::kLogSumExp:
      return AddColumnsToLogSumExps(tile, all);
    case Accumulation::kArgmax:
      return last ? AddColumnsToPositions<false, true>(tile, all)
                  : AddColumnsToPositions<false, false>(tile, all);
    case Accumulation::kArgmin:
      return last ? AddColumnsToPositions<true, true>(tile, all)
                  : AddColumnsToPositions<true, false>(tile, all);
    default:
      return AddColumnsToSums<Accumulation::kSum>(tile, all);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {

HWY_EXPORT(AddRow);
HWY_EXPORT(AddColumns);

template <Accumulation kKind, bool kLast>
void UseVectorsOf(ReduceLoops* loops) {
  loops->row = [](const void* elements, uint64_t count, uint32_t position, const Accumulators& one) {
    HWY_DYNAMIC_DISPATCH(AddRow)(kKind, kLast, elements, count, position, one);
  };
  loops->columns = [](const ReduceTile& tile, const Accumulators& all) {
    HWY_DYNAMIC_DISPATCH(AddColumns)(kKind, kLast, tile, all);
  };
}

}  // namespace

void UseVectors(Accumulation kind, bool last, ReduceLoops* loops) {
  switch (kind) {
    case Accumulation::kProduct:
      return;  // in FLOAT64 all the way: as many powers of two as possible
    case Accumulation::kSum:
      return UseVectorsOf<Accumulation::kSum, false>(loops);
    case Accumulation::kSumAbs:
      return UseVectorsOf<Accumulation::kSumAbs, false>(loops);
    case Accumulation::kSumSquare:
      return UseVectorsOf<Accumulation::kSumSquare, false>(loops);
    case Accumulation::kMax:
      return UseVectorsOf<Accumulation::kMax, false>(loops);
    case Accumulation::kMin:
      return UseVectorsOf<Accumulation::kMin, false>(loops);
    case Accumulation::kLogSumExp:
      return UseVectorsOf<Accumulation::kLogSumExp, false>(loops);
    case Accumulation::kArgmax:
      return last ? UseVectorsOf<Accumulation::kArgmax, true>(loops)
                  : UseVectorsOf<Accumulation::kArgmax, false>(loops);
    case Accumulation::kArgmin:
      return last ? UseVectorsOf<Accumulation::kArgmin, true>(loops)
                  : UseVectorsOf<Accumulation::kArgmin, false>(loops);
  }
}

}  // namespace anydml
#endif
