#include "ops/recurrent/cpu/few_panels.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/recurrent/cpu/few_panels.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Even and odd steps have separate sums, because an addition waits for the previous one.
void RunRow(const float* HWY_RESTRICT a, const float* HWY_RESTRICT panel, uint64_t steps,
            float* HWY_RESTRICT to) {
  const D d;
  const uint64_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), t0 = hn::Zero(d), t1 = hn::Zero(d);
  uint64_t s = 0;
  for (; s + 2 <= steps; s += 2, panel += 4 * lanes) {
    const auto x = hn::Set(d, a[s]), y = hn::Set(d, a[s + 1]);
    s0 = hn::MulAdd(x, hn::LoadU(d, panel), s0);
    s1 = hn::MulAdd(x, hn::LoadU(d, panel + lanes), s1);
    t0 = hn::MulAdd(y, hn::LoadU(d, panel + 2 * lanes), t0);
    t1 = hn::MulAdd(y, hn::LoadU(d, panel + 3 * lanes), t1);
  }
  if (s < steps) {
    const auto x = hn::Set(d, a[s]);
    s0 = hn::MulAdd(x, hn::LoadU(d, panel), s0);
    s1 = hn::MulAdd(x, hn::LoadU(d, panel + lanes), s1);
  }
  hn::StoreU(hn::Add(s0, t0), d, to);
  hn::StoreU(hn::Add(s1, t1), d, to + lanes);
}

// The panel is in a cache after the first row.
void RunPanel(const float* a, uint64_t rows, const float* panel, uint64_t steps, float* to) {
  const uint64_t columns = 2 * hn::Lanes(D());
  for (uint64_t r = 0; r < rows; ++r) RunRow(a + r * steps, panel, steps, to + r * columns);
}

FewPanels FindPanels() { return {static_cast<uint32_t>(2 * hn::Lanes(D())), &RunPanel}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindPanels);
}  // namespace

FewPanels FindFewPanels() { return HWY_DYNAMIC_DISPATCH(FindPanels)(); }

}  // namespace anydml
#endif

#else  // without Highway

namespace anydml {
namespace {

constexpr uint32_t kPanelColumns = 8;

void RunPanelPlainly(const float* a, uint64_t rows, const float* panel, uint64_t steps, float* to) {
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < kPanelColumns; ++c) {
      float sum = 0;
      for (uint64_t s = 0; s < steps; ++s) sum += a[r * steps + s] * panel[s * kPanelColumns + c];
      to[r * kPanelColumns + c] = sum;
    }
  }
}

}  // namespace

FewPanels FindFewPanels() { return {kPanelColumns, &RunPanelPlainly}; }

}  // namespace anydml
#endif
