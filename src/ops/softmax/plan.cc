#include "ops/softmax/plan.h"

#include <algorithm>
#include <bit>

#include "ops/device/units.h"

namespace anydml {
namespace {

// Blocks that write ones, per multiprocessor.
constexpr uint64_t kHardmaxBlocks = 32;

// The units that a kernel keeps in registers, at least `per_thread`; 0 where there is none.
uint32_t UnitsInRegisters(uint32_t per_thread, uint32_t most) {
  const uint32_t units = std::bit_ceil(per_thread);
  return units <= most ? units : 0;
}

}  // namespace

SoftmaxSetsPlan MakeSoftmaxSetsPlan(const SoftmaxProblem& problem) {
  const auto [sets, elements] = NestsOf(problem);
  SoftmaxSetsPlan plan;
  SoftmaxSetParameters& p = plan.parameters;
  p.sets = DeviceNest<2>(sets);
  p.elements = DeviceNest<2>(elements);
  p.set_count = static_cast<uint32_t>(Iterations(sets));
  p.element_count = static_cast<uint32_t>(Iterations(elements));
  p.is_log = problem.kind == SoftmaxKind::kLogSoftmax;
  p.type = problem.input.type;
  p.lanes_first = elements.rank > 0 && (sets.rank == 0 || elements.loops[elements.rank - 1].strides[0] <=
                                                              sets.loops[sets.rank - 1].strides[0]);
  const uint32_t most = p.lanes_first ? kSoftmaxThreads : 8;
  p.lanes = std::bit_ceil(std::min(p.element_count, most));
  p.columns = kSoftmaxThreads / p.lanes;
  plan.grid = {CeilDivide(p.set_count, p.columns), kSoftmaxThreads};
  return plan;
}

std::string WhyNoSoftmaxRows(const SoftmaxProblem& problem) {
  const auto [sets, elements] = NestsOf(problem);
  const bool rows = elements.rank == 1 && elements.loops[0].strides == LoopNest<2>::Offsets{1, 1};
  const uint32_t per_unit = kMaxUnitBytes * 8 / BitSize(problem.input.type);
  uint64_t lengths = rows ? elements.loops[0].size : 0;
  for (uint32_t d = 0; d < sets.rank; ++d) {
    lengths |= sets.loops[d].strides[0] | sets.loops[d].strides[1];
  }
  if (rows && lengths % per_unit == 0) return {};
  return "sets are not rows of whole units of 16 bytes";
}

SoftmaxRowsPlan MakeSoftmaxRowsPlan(const SoftmaxProblem& problem) {
  const auto [sets, elements] = NestsOf(problem);
  const uint32_t bytes = BitSize(problem.input.type) / 8;
  SoftmaxRowsPlan plan;
  SoftmaxRowParameters& p = plan.parameters;
  p.rows = DeviceNest<2>(sets);
  p.row_count = static_cast<uint32_t>(Iterations(sets));
  p.units = static_cast<uint32_t>(elements.loops[0].size * bytes / kMaxUnitBytes);
  p.is_log = problem.kind == SoftmaxKind::kLogSoftmax;
  const uint32_t most = bytes == 2 ? 4 : 8;  // units of a thread: 32 numbers
  const bool by_lanes = p.units <= kSoftmaxLanes * most / 2;
  p.lanes = by_lanes
                ? kSoftmaxLanes
                : std::clamp(std::bit_ceil(static_cast<uint32_t>(CeilDivide(p.units, most))), 128u, 1024u);
  const uint32_t rows_per_block = by_lanes ? 4 : 1;
  plan.units_per_thread = UnitsInRegisters(static_cast<uint32_t>(CeilDivide(p.units, p.lanes)), most);
  plan.grid = {CeilDivide(p.row_count, rows_per_block), p.lanes * rows_per_block};
  return plan;
}

HardmaxPlan MakeHardmaxPlan(const LoopNest<2>& sets, const LoopNest<1>& elements,
                            const DeviceTraits& device) {
  HardmaxPlan plan;
  HardmaxParameters& p = plan.parameters;
  p.sets = DeviceNest<2>(sets);
  p.elements = DeviceNest<1>(elements);
  p.count = Iterations(sets) * Iterations(elements);
  p.sets_first = sets.rank > 0 && (elements.rank == 0 || sets.loops[sets.rank - 1].strides[1] <
                                                             elements.loops[elements.rank - 1].strides[0]);
  p.inner = FastDivisor(static_cast<uint32_t>(p.sets_first ? Iterations(sets) : Iterations(elements)));
  plan.grid = GridOf(p.count, kSoftmaxThreads);
  plan.grid.blocks = std::min(plan.grid.blocks, kHardmaxBlocks * device.multiprocessors);
  return plan;
}

}  // namespace anydml
