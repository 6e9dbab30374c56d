#include "graph/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "kernel/scratch_layout.h"

namespace anydml {
namespace {

bool Meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Places the lifetimes in this order, each into the lowest gap that is wide enough among those that it
// overlaps in time.
MemoryPlan PlaceInOrder(std::span<const Lifetime> lifetimes, std::span<const uint32_t> order) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<uint32_t> placed;  // by offset
  for (const uint32_t i : order) {
    const Lifetime& wanted = lifetimes[i];
    if (wanted.bytes == 0) continue;
    uint64_t offset = 0;
    for (const uint32_t j : placed) {
      if (!Meet(wanted, lifetimes[j])) continue;
      if (SaturatingAdd(offset, wanted.bytes) <= plan.offsets[j]) break;
      const uint64_t end = SaturatingAdd(plan.offsets[j], lifetimes[j].bytes);
      offset = std::max(offset, SaturatingAlignUp(end, wanted.alignment));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, SaturatingAdd(offset, wanted.bytes));
    const auto behind = [&](uint64_t at, uint32_t j) { return at < plan.offsets[j]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, behind), i);
  }
  return plan;
}

uint64_t MostLive(std::span<const Lifetime> lifetimes) {
  uint32_t steps = 0;
  for (const Lifetime& lifetime : lifetimes) steps = std::max(steps, lifetime.last + 1);
  std::vector<uint64_t> live(steps);
  for (const Lifetime& lifetime : lifetimes) {
    for (uint32_t step = lifetime.first; step <= lifetime.last; ++step) {
      live[step] = SaturatingAdd(live[step], lifetime.bytes);
    }
  }
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

// Repeatedly moves the lifetime that ends last in memory earlier in the order, so that what is hard to place
// comes first. It does not move to the very front, because that would soon repeat an earlier order. The
// number of tries is limited, and it is 0 where a try takes long: its time grows as the square of the number
// of lifetimes.
void Improve(std::span<const Lifetime> lifetimes, uint64_t enough, std::vector<uint32_t> order,
             MemoryPlan* best) {
  constexpr uint64_t kMostTries = 64, kMostSteps = 4'000'000;
  const uint64_t tries = std::min(kMostTries, kMostSteps / (order.size() * order.size() + 1));
  if (tries == 0 || best->bytes <= enough) return;
  MemoryPlan plan = PlaceInOrder(lifetimes, order);
  for (uint64_t i = 0; i < tries && best->bytes > enough; ++i) {
    const auto last = std::max_element(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return SaturatingAdd(plan.offsets[a], lifetimes[a].bytes) <
             SaturatingAdd(plan.offsets[b], lifetimes[b].bytes);
    });
    std::rotate(i % 3 == 0 ? order.begin() + (last - order.begin()) / 2 : order.begin(), last, last + 1);
    plan = PlaceInOrder(lifetimes, order);
    if (plan.bytes < best->bytes) *best = plan;
  }
}

}  // namespace

// Largest first is nearly always best; sometimes the order of steps, or longest lifetime first, leaves fewer
// gaps. Gaps of a sixteenth are accepted.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes) {
  std::vector<uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  MemoryPlan best;
  const auto try_order = [&](auto before) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t i, uint32_t j) { return before(lifetimes[i], lifetimes[j]); });
    MemoryPlan plan = PlaceInOrder(lifetimes, order);
    if (best.offsets.empty() || plan.bytes < best.bytes) best = std::move(plan);
    return order;
  };
  const uint64_t most_live = MostLive(lifetimes);
  try_order([](const Lifetime& a, const Lifetime& b) { return a.first < b.first; });
  if (best.bytes > most_live) {
    const auto large = try_order([](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
    const auto longest =
        try_order([](const Lifetime& a, const Lifetime& b) { return a.last - a.first > b.last - b.first; });
    const uint64_t enough = SaturatingAdd(most_live, most_live / 16);
    Improve(lifetimes, enough, large, &best);
    Improve(lifetimes, enough, longest, &best);
  }
  best.most_live = most_live;
  return best;
}

}  // namespace anydml
