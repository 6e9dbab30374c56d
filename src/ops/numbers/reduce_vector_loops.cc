// Vectorised loops over FLOAT32, and over FLOAT16 without conversion (T). Short runs are summed in FLOAT32,
// and the runs' sums in FLOAT64.
#include "ops/numbers/reduce_loops.h"

#include <algorithm>
#include <type_traits>

#include "base/half.h"
#include "ops/reduce/accumulate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/numbers/reduce_vector_loops.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/numbers/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using FloatVector = hn::Vec<F32>;

constexpr uint64_t kRun = 4096;  // elements that are added in FLOAT32 before FLOAT64
// Elements that are searched once more for a better one. Ending a run costs most with the longest vectors.
constexpr uint64_t kPositionRun = HWY_ARCH_X86 ? 4096 : 1024;

// Prefetches elements some way ahead of a run, because hardware prefetch loses track at its end.
template <typename T>
HWY_INLINE void AskForNext(const T* x, uint64_t bytes) {
#if HWY_ARCH_X86
  constexpr uint64_t kBytesAhead = 4096;
  const auto* const next = reinterpret_cast<const char*>(x) + kBytesAhead;
  for (uint64_t at = 0; at < bytes; at += 64) __builtin_prefetch(next + at);
#else
  (void)x, (void)bytes;
#endif
}

#include "ops/numbers/half_vectors-inl.h"

HWY_INLINE FloatVector FloatsAt(F32 d, const float* x) { return hn::LoadU(d, x); }
HWY_INLINE FloatVector FloatsAt(F32 d, const uint16_t* x) { return LoadHalves(d, x); }
HWY_INLINE float ToFloat(float x) { return x; }
HWY_INLINE float ToFloat(uint16_t x) { return anydml::ToFloat(Half{x}); }

template <Accumulation kKind>
HWY_INLINE FloatVector Term(FloatVector x) {
  if constexpr (kKind == Accumulation::kSumSquare) return hn::Mul(x, x);
  if constexpr (kKind == Accumulation::kSumAbs) return hn::Abs(x);
  return x;
}

template <Accumulation kKind, typename T>
float SumOfRun(const T* HWY_RESTRICT x, uint64_t count) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  uint64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, Term<kKind>(FloatsAt(d, x + i)));
    b = hn::Add(b, Term<kKind>(FloatsAt(d, x + i + lanes)));
    c = hn::Add(c, Term<kKind>(FloatsAt(d, x + i + 2 * lanes)));
    e = hn::Add(e, Term<kKind>(FloatsAt(d, x + i + 3 * lanes)));
    AskForNext(x + i, 4 * lanes * sizeof(T));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Add(a, Term<kKind>(FloatsAt(d, x + i)));
  const auto sum = hn::Add(hn::Add(a, b), hn::Add(c, e));
  auto rest = reduce::Sum<kKind, float, float>::Start();
  for (; i < count; ++i) rest.Add(ToFloat(x[i]), 0);
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest.value;
}

template <Accumulation kKind, typename T>
HWY_INLINE void AddRowToSum(const void* elements, uint64_t count, const Accumulators& one) {
  double sum = static_cast<double*>(one.values)[one.at];
  for (uint64_t at = 0; at < count; at += kRun) {
    sum += double{SumOfRun<kKind>(static_cast<const T*>(elements) + at, std::min(kRun, count - at))};
  }
  static_cast<double*>(one.values)[one.at] = sum;
}

// Calls rows(first, count) for four rows at a time, then for the remaining ones singly: hardware prefetches a
// few streams.
template <class Rows>
HWY_INLINE void ForRows(const ReduceTile& tile, const Rows& rows) {
  uint32_t r = 0;
  for (; r + 4 <= tile.rows; r += 4) rows(r, std::integral_constant<uint32_t, 4>());
  for (; r < tile.rows; ++r) rows(r, std::integral_constant<uint32_t, 1>());
}

template <Accumulation kKind, typename T>
HWY_INLINE void AddColumnsToSums(const ReduceTile& tile, const Accumulators& all) {
  const F32 d;
  const uint64_t lanes = hn::Lanes(d), whole = tile.columns / lanes * lanes;
  const auto* const elements = static_cast<const T*>(tile.elements);
  HWY_ALIGN float line[kMaxReducedColumns];
  std::fill_n(line, tile.columns, 0.0f);
  ForRows(tile, [&](uint32_t first, auto rows) HWY_ATTR {
    const T* const x = elements + first * tile.row_stride;
    for (uint64_t i = 0; i < whole; i += lanes) {
      auto sum = hn::Load(d, line + i);
      for (uint32_t r = 0; r < rows; ++r) {
        sum = hn::Add(sum, Term<kKind>(FloatsAt(d, x + r * tile.row_stride + i)));
      }
      hn::Store(sum, d, line + i);
    }
  });
  for (uint64_t i = whole; i < tile.columns; ++i) {
    auto sum = reduce::Sum<kKind, float, float>::Start();
    for (uint32_t r = 0; r < tile.rows; ++r) sum.Add(ToFloat(elements[r * tile.row_stride + i]), 0);
    line[i] = sum.value;
  }
  auto* const sums = static_cast<double*>(all.values) + all.at;
  for (uint32_t j = 0; j < tile.columns; ++j) sums[j] += double{line[j]};
}

#include "ops/numbers/extreme_loops-inl.h"

// Exponentials are relative to the largest number of a run, or to 0 if that is infinite: the sum is not used
// then.
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

// LogSumExp has loops for FLOAT32 only.
template <typename T>
HWY_INLINE void AddRowOf(Accumulation kind, bool last, const void* elements, uint64_t count,
                         uint32_t position, const Accumulators& one) {
  switch (kind) {
    case Accumulation::kSumAbs:
      return AddRowToSum<Accumulation::kSumAbs, T>(elements, count, one);
    case Accumulation::kSumSquare:
      return AddRowToSum<Accumulation::kSumSquare, T>(elements, count, one);
    case Accumulation::kMax:
      return AddRowToExtreme<false, T>(elements, count, one);
    case Accumulation::kMin:
      return AddRowToExtreme<true, T>(elements, count, one);
    case Accumulation::kLogSumExp:
      return AddRowToLogSumExp(elements, count, one);
    case Accumulation::kArgmax:
      return last ? AddRowToPosition<false, true, T>(elements, count, position, one)
                  : AddRowToPosition<false, false, T>(elements, count, position, one);
    case Accumulation::kArgmin:
      return last ? AddRowToPosition<true, true, T>(elements, count, position, one)
                  : AddRowToPosition<true, false, T>(elements, count, position, one);
    default:
      return AddRowToSum<Accumulation::kSum, T>(elements, count, one);
  }
}

template <typename T>
HWY_INLINE void AddColumnsOf(Accumulation kind, bool last, const ReduceTile& tile, const Accumulators& all) {
  switch (kind) {
    case Accumulation::kSumAbs:
      return AddColumnsToSums<Accumulation::kSumAbs, T>(tile, all);
    case Accumulation::kSumSquare:
      return AddColumnsToSums<Accumulation::kSumSquare, T>(tile, all);
    case Accumulation::kMax:
      return AddColumnsToExtremesOf<false, T>(tile, all);
    case Accumulation::kMin:
      return AddColumnsToExtremesOf<true, T>(tile, all);
    case Accumulation::kLogSumExp:
      return AddColumnsToLogSumExps(tile, all);
    case Accumulation::kArgmax:
      return last ? AddColumnsToPositions<false, true, T>(tile, all)
                  : AddColumnsToPositions<false, false, T>(tile, all);
    case Accumulation::kArgmin:
      return last ? AddColumnsToPositions<true, true, T>(tile, all)
                  : AddColumnsToPositions<true, false, T>(tile, all);
    default:
      return AddColumnsToSums<Accumulation::kSum, T>(tile, all);
  }
}

void AddRow(Accumulation kind, bool last, bool halves, const void* elements, uint64_t count,
            uint32_t position, const Accumulators& one) {
  halves ? AddRowOf<uint16_t>(kind, last, elements, count, position, one)
         : AddRowOf<float>(kind, last, elements, count, position, one);
}

void AddColumns(Accumulation kind, bool last, bool halves, const ReduceTile& tile, const Accumulators& all) {
  halves ? AddColumnsOf<uint16_t>(kind, last, tile, all) : AddColumnsOf<float>(kind, last, tile, all);
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {

HWY_EXPORT(AddRow);
HWY_EXPORT(AddColumns);

template <Accumulation kKind, bool kLast, bool kHalves>
void UseVectorsOf(ReduceLoops* loops) {
  loops->row = [](const void* elements, uint64_t count, uint32_t position, const Accumulators& one) {
    HWY_DYNAMIC_DISPATCH(AddRow)(kKind, kLast, kHalves, elements, count, position, one);
  };
  loops->columns = [](const ReduceTile& tile, const Accumulators& all) {
    HWY_DYNAMIC_DISPATCH(AddColumns)(kKind, kLast, kHalves, tile, all);
  };
}

template <bool kHalves>
bool UseVectorsFor(Accumulation kind, bool last, ReduceLoops* loops) {
  switch (kind) {
    case Accumulation::kProduct:
      return false;  // computed in FLOAT64 throughout, which has the largest range of powers of two
    case Accumulation::kSum:
      UseVectorsOf<Accumulation::kSum, false, kHalves>(loops);
      return true;
    case Accumulation::kSumAbs:
      UseVectorsOf<Accumulation::kSumAbs, false, kHalves>(loops);
      return true;
    case Accumulation::kSumSquare:
      UseVectorsOf<Accumulation::kSumSquare, false, kHalves>(loops);
      return true;
    case Accumulation::kMax:
      UseVectorsOf<Accumulation::kMax, false, kHalves>(loops);
      return true;
    case Accumulation::kMin:
      UseVectorsOf<Accumulation::kMin, false, kHalves>(loops);
      return true;
    case Accumulation::kLogSumExp:
      if (kHalves) return false;
      UseVectorsOf<Accumulation::kLogSumExp, false, false>(loops);
      return true;
    case Accumulation::kArgmax:
      last ? UseVectorsOf<Accumulation::kArgmax, true, kHalves>(loops)
           : UseVectorsOf<Accumulation::kArgmax, false, kHalves>(loops);
      return true;
    case Accumulation::kArgmin:
      last ? UseVectorsOf<Accumulation::kArgmin, true, kHalves>(loops)
           : UseVectorsOf<Accumulation::kArgmin, false, kHalves>(loops);
      return true;
  }
  return false;
}

}  // namespace

bool UseVectors(Accumulation kind, bool last, bool halves, ReduceLoops* loops) {
  return halves ? UseVectorsFor<true>(kind, last, loops) : UseVectorsFor<false>(kind, last, loops);
}

}  // namespace anydml
#endif
