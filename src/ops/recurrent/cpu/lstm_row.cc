#include "ops/recurrent/cpu/lstm_row.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/recurrent/cpu/lstm_row.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/element/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

using LstmD = hn::ScalableTag<float>;

// What comes from the state, the input and the biases.
HWY_INLINE hn::Vec<LstmD> SumOfGate(const LstmRow& row, uint32_t gate, uint64_t unit) {
  const LstmD d;
  const uint64_t at = gate * row.all + unit;
  const auto sum = hn::Add(hn::LoadU(d, row.from_state + gate * row.gate_stride + unit),
                           hn::LoadU(d, row.from_input + at));
  if (row.bias == nullptr) return sum;
  return hn::Add(sum, hn::Add(hn::LoadU(d, row.bias + at), hn::LoadU(d, row.state_bias + at)));
}

HWY_INLINE void RunUnits(const LstmRow& row, uint64_t unit) {
  const LstmD d;
  const auto i = Canonical(d, Sigmoid(d, SumOfGate(row, 0, unit)));
  const auto f = Canonical(d, Sigmoid(d, SumOfGate(row, 2, unit)));
  const auto c = Canonical(d, Tanh(d, SumOfGate(row, 3, unit)));
  const auto kept = hn::Mul(f, hn::LoadU(d, row.cell + unit));
  const auto cell = Canonical(d, hn::Add(kept, hn::Mul(i, c)));
  hn::StoreU(cell, d, row.cell + unit);
  const auto o = Canonical(d, Sigmoid(d, SumOfGate(row, 1, unit)));
  hn::StoreU(Canonical(d, hn::Mul(o, Canonical(d, Tanh(d, cell)))), d, row.hidden + unit);
}

// Units behind the last whole vector, as one.
void RunRest(const LstmRow& row, uint64_t unit) {
  constexpr uint64_t kMost = hn::MaxLanes(LstmD());
  const uint64_t count = row.units - unit;
  float from_input[4 * kMost] = {}, from_state[4 * kMost] = {}, bias[4 * kMost] = {},
                       state_bias[4 * kMost] = {};
  float cell[kMost] = {}, hidden[kMost];
  for (uint64_t gate = 0; gate < 4; ++gate) {
    for (uint64_t u = 0; u < count; ++u) {
      const uint64_t from = gate * row.all + unit + u, to = gate * kMost + u;
      from_input[to] = row.from_input[from];
      from_state[to] = row.from_state[gate * row.gate_stride + unit + u];
      if (row.bias == nullptr) continue;
      bias[to] = row.bias[from];
      state_bias[to] = row.state_bias[from];
    }
  }
  for (uint64_t u = 0; u < count; ++u) cell[u] = row.cell[unit + u];
  RunUnits({count, kMost, from_input, from_state, kMost, row.bias == nullptr ? nullptr : bias, state_bias,
            cell, hidden},
           0);
  for (uint64_t u = 0; u < count; ++u) {
    row.cell[unit + u] = cell[u];
    row.hidden[unit + u] = hidden[u];
  }
}

void RunLstmUnits(const LstmRow& row) {
  const uint64_t lanes = hn::Lanes(LstmD());
  uint64_t unit = 0;
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
