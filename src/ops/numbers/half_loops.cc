// This file is compiled for Armv8.2 with FLOAT16 arithmetic, or for AVX-512 with it: it must not contain
// anything that the linker could share with other files.
#include "ops/numbers/half_loops.h"

#include "ops/numbers/half_arithmetic.h"

#if ANYDML_HALF_VECTORS
namespace anydml {
namespace {

// `low` and `high` are rounded first: rounding is monotonic, so clamping before it and after it give the
// same.
template <HalfFunction kFunction>
ANYDML_HALF_BODY Halves Call(Halves a, Halves b, Halves low, Halves high) {
  switch (kFunction) {
    case HalfFunction::kAdd:
      return OneNan(Sum(a, b));
    case HalfFunction::kSubtract:
      return OneNan(Difference(a, b));
    case HalfFunction::kMultiply:
      return OneNan(Product(a, b));
    case HalfFunction::kMaximum:
      return Maximum(a, b);
    case HalfFunction::kMinimum:
      return Minimum(a, b);
    case HalfFunction::kClip:
      return Maximum(low, Minimum(a, high));
    default:
      return Maximum(a, All(0));
  }
}

template <HalfFunction kFunction>
void Run(const LoopPiece& piece) {
  constexpr bool kOne = kFunction == HalfFunction::kClip || kFunction == HalfFunction::kRelu;
  const std::byte *a = piece.sources[0], *b = kOne ? a : piece.sources[1];
  const uint64_t a_step = kLanes * piece.steps[0], b_step = kOne ? a_step : kLanes * piece.steps[1];
  const uint64_t a_row = piece.row_steps[0], b_row = piece.row_steps[1], to_row = piece.target_row_step;
  const Halves low = All(piece.low), high = All(piece.high);
  // A broadcast source was just written with shorter vectors: a wide load of it would not be forwarded and
  // would wait until the stores reach the cache, behind the streaming stores of the previous row.
  const bool a_same = a_step == 0, b_same = b_step == 0;
  const Halves a_first = LoadFirst(a), b_first = LoadFirst(b);
  const uint64_t count = piece.count;
  const bool streams = piece.streams;
  std::byte* to = piece.target;
  for (uint64_t rows = piece.rows; rows != 0; --rows, a += a_row, b += b_row, to += to_row) {
    const std::byte *x_at = a, *y_at = b;
    std::byte* result_at = to;
    uint64_t left = count;
    if constexpr (kFunction >= HalfFunction::kEqual) {
      for (; left >= 2 * kLanes; left -= 2 * kLanes, x_at += 2 * a_step, y_at += 2 * b_step) {
        const Halves x = a_same ? a_first : Load(x_at), y = b_same ? b_first : Load(y_at);
        const Halves next_x = a_same ? x : Load(x_at + a_step), next_y = b_same ? y : Load(y_at + b_step);
        Store(Compare<kFunction>(x, y), Compare<kFunction>(next_x, next_y), streams, result_at);
        result_at += 2 * kLanes;
      }
    }
    // One test of the sources' layout serves several vectors.
    if constexpr (kFunction < HalfFunction::kEqual && kLanes == 8) {
      for (; left >= 4 * kLanes; left -= 4 * kLanes, x_at += 4 * a_step, y_at += 4 * b_step) {
        Halves x0 = a_first, x1 = x0, x2 = x0, x3 = x0, y0 = b_first, y1 = y0, y2 = y0, y3 = y0;
        if (!a_same) {
          x0 = Load(x_at), x1 = Load(x_at + a_step);
          x2 = Load(x_at + 2 * a_step), x3 = Load(x_at + 3 * a_step);
        }
        if (!kOne && !b_same) {
          y0 = Load(y_at), y1 = Load(y_at + b_step);
          y2 = Load(y_at + 2 * b_step), y3 = Load(y_at + 3 * b_step);
        }
        constexpr uint64_t kBytes = kLanes * sizeof(uint16_t);
        Store(Call<kFunction>(x0, y0, low, high), streams, result_at);
        Store(Call<kFunction>(x1, y1, low, high), streams, result_at + kBytes);
        Store(Call<kFunction>(x2, y2, low, high), streams, result_at + 2 * kBytes);
        Store(Call<kFunction>(x3, y3, low, high), streams, result_at + 3 * kBytes);
        result_at += 4 * kBytes;
      }
    }
    for (; left != 0; left -= kLanes, x_at += a_step, y_at += b_step) {
      const Halves x = a_same ? a_first : Load(x_at), y = kOne ? x : b_same ? b_first : Load(y_at);
      if constexpr (kFunction >= HalfFunction::kEqual) {
        Store(Compare<kFunction>(x, y), streams, result_at);
        result_at += kLanes;
      } else {
        Store(Call<kFunction>(x, y, low, high), streams, result_at);
        result_at += kLanes * sizeof(uint16_t);
      }
    }
  }
}

}  // namespace

HalfLoop FindHalfLoop(HalfFunction function, uint32_t granule) {
  static const bool has_them = HasHalfVectors();
  if (granule % kLanes != 0 || !has_them) return nullptr;
  switch (function) {
#define ANYDML_HALF_CASE(name) \
  case HalfFunction::name:     \
    return &Run<HalfFunction::name>;
    ANYDML_HALF_CASE(kAdd)
    ANYDML_HALF_CASE(kSubtract)
    ANYDML_HALF_CASE(kMultiply)
    ANYDML_HALF_CASE(kMaximum)
    ANYDML_HALF_CASE(kMinimum)
    ANYDML_HALF_CASE(kClip)
    ANYDML_HALF_CASE(kRelu)
    ANYDML_HALF_CASE(kEqual)
    ANYDML_HALF_CASE(kGreater)
    ANYDML_HALF_CASE(kLess)
    ANYDML_HALF_CASE(kGreaterOrEqual)
    ANYDML_HALF_CASE(kLessOrEqual)
#undef ANYDML_HALF_CASE
  }
  return nullptr;
}

}  // namespace anydml

#else

namespace anydml {
HalfLoop FindHalfLoop(HalfFunction, uint32_t) { return nullptr; }
}  // namespace anydml
#endif
