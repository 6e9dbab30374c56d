#include "ops/recurrent/cpu/lstm_row.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/recurrent/cpu/lstm_row.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/numbers/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

using LstmD = hn::ScalableTag<float>;

// The sum of the contributions of state, input and biases.
HWY_INLINE hn::Vec<LstmD> SumOfGate(const LstmRow& row, uint32_t gate, uint64_t unit) {
  const LstmD d;
  const uint64_t at = gate * row.all + unit;
  auto sum = hn::LoadU(d, row.from_state + gate * row.gate_stride + unit);
  if (row.from_input != nullptr) sum = hn::Add(sum, hn::LoadU(d, row.from_input + at));
  if (row.bias == nullptr) return sum;
  return hn::Add(sum, hn::Add(hn::LoadU(d, row.bias + at), hn::LoadU(d, row.state_bias + at)));
}

HWY_INLINE hn::Vec<LstmD> SigmoidOf(const LstmRow& row, uint32_t gate, uint64_t unit) {
  const LstmD d;
  return Canonical(d, Sigmoid(d, SumOfGate(row, gate, unit)));
}
HWY_INLINE hn::Vec<LstmD> TanhOf(hn::Vec<LstmD> x) {
  const LstmD d;
  return Canonical(d, Tanh(d, x));
}
HWY_INLINE hn::Vec<LstmD> NewCell(hn::Vec<LstmD> i, hn::Vec<LstmD> f, hn::Vec<LstmD> c, float* cell) {
  const LstmD d;
  const auto kept = hn::Mul(f, hn::LoadU(d, cell));
  const auto sum = Canonical(d, hn::Add(kept, hn::Mul(i, c)));
  hn::StoreU(sum, d, cell);
  return sum;
}
HWY_INLINE void NewHidden(hn::Vec<LstmD> o, hn::Vec<LstmD> c, float* hidden) {
  const LstmD d;
  hn::StoreU(Canonical(d, hn::Mul(o, c)), d, hidden);
}

HWY_INLINE void RunUnits(const LstmRow& row, uint64_t unit) {
  const auto i = SigmoidOf(row, 0, unit), f = SigmoidOf(row, 2, unit);
  const auto c = NewCell(i, f, TanhOf(SumOfGate(row, 3, unit)), row.cell + unit);
  NewHidden(SigmoidOf(row, 1, unit), TanhOf(c), row.hidden + unit);
}

// Two vectors, interleaved to hide the latency of their functions.
HWY_INLINE void RunTwo(const LstmRow& row, uint64_t unit, uint64_t other) {
  const auto i = SigmoidOf(row, 0, unit), i2 = SigmoidOf(row, 0, other);
  const auto f = SigmoidOf(row, 2, unit), f2 = SigmoidOf(row, 2, other);
  const auto g = TanhOf(SumOfGate(row, 3, unit)), g2 = TanhOf(SumOfGate(row, 3, other));
  const auto c = NewCell(i, f, g, row.cell + unit), c2 = NewCell(i2, f2, g2, row.cell + other);
  const auto o = SigmoidOf(row, 1, unit), o2 = SigmoidOf(row, 1, other);
  const auto t = TanhOf(c), t2 = TanhOf(c2);
  NewHidden(o, t, row.hidden + unit);
  NewHidden(o2, t2, row.hidden + other);
}

// The units after the last whole vector, as one vector.
void RunRest(const LstmRow& row, uint64_t unit) {
  constexpr uint64_t kMost = hn::MaxLanes(LstmD());
  const uint64_t count = row.units - unit;
  float from_input[4 * kMost] = {}, from_state[4 * kMost] = {}, bias[4 * kMost] = {},
                       state_bias[4 * kMost] = {};
  float cell[kMost] = {}, hidden[kMost];
  for (uint64_t gate = 0; gate < 4; ++gate) {
    for (uint64_t u = 0; u < count; ++u) {
      const uint64_t from = gate * row.all + unit + u, to = gate * kMost + u;
      if (row.from_input != nullptr) from_input[to] = row.from_input[from];
      from_state[to] = row.from_state[gate * row.gate_stride + unit + u];
      if (row.bias == nullptr) continue;
      bias[to] = row.bias[from];
      state_bias[to] = row.state_bias[from];
    }
  }
  for (uint64_t u = 0; u < count; ++u) cell[u] = row.cell[unit + u];
  RunUnits({count, kMost, row.from_input == nullptr ? nullptr : from_input, from_state, kMost,
            row.bias == nullptr ? nullptr : bias, state_bias, cell, hidden},
           0);
  for (uint64_t u = 0; u < count; ++u) {
    row.cell[unit + u] = cell[u];
    row.hidden[unit + u] = hidden[u];
  }
}

void RunLstmUnits(const LstmRow& row) {
  const uint64_t lanes = hn::Lanes(LstmD());
  uint64_t unit = 0;
  for (; unit + 2 * lanes <= row.units; unit += 2 * lanes) RunTwo(row, unit, unit + lanes);
  for (; unit + lanes <= row.units; unit += lanes) RunUnits(row, unit);
  if (unit < row.units) RunRest(row, unit);
}

RunLstmRow* FindLstmUnits() { return &RunLstmUnits; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindLstmUnits);
}  // namespace

RunLstmRow* FindLstmRow() { return HWY_DYNAMIC_DISPATCH(FindLstmUnits)(); }

}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
RunLstmRow* FindLstmRow() { return nullptr; }
}  // namespace anydml
#endif
