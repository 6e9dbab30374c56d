#include "ops/gather/plan.h"

#include <algorithm>

#include "ops/device/units.h"

namespace anydml {
namespace {

// Blocks of kFindFirstBad per multiprocessor.
constexpr uint64_t kNoteBlocks = 8;

// Whether the innermost loop is contiguous and within one tuple.
bool HasRows(const LoopNest<3>& elements) {
  return elements.rank > 0 && elements.loops[elements.rank - 1].strides == LoopNest<3>::Offsets{1, 1, 0};
}

LoopNest<3> InBytes(LoopNest<3> nest, uint64_t element_bytes) {
  for (uint32_t d = 0; d < nest.rank; ++d) {
    nest.loops[d].strides[GatherLoops::kOutput] *= element_bytes;
    nest.loops[d].strides[GatherLoops::kInput] *= element_bytes;
  }
  return nest;
}

GatherTuples TuplesOf(const GatherProblem& problem, const GatherLoops& loops, uint32_t element_bytes) {
  GatherTuples tuples;
  tuples.indices = DeviceIndices(problem.indices.type);
  tuples.tuple_size = loops.tuple_size;
  std::copy_n(loops.tuple, loops.tuple_size, tuples.tuple);
  for (GatherLoops::Component& component : tuples.tuple) component.input_stride *= element_bytes;
  return tuples;
}

// The largest unit that divides rows and the distances between them.
uint32_t RowUnitBytes(const GatherPlan& plan) {
  uint64_t bytes = plan.nest.loops[plan.nest.rank - 1].size * plan.element_bytes;
  for (uint32_t d = 0; d + 1 < plan.nest.rank; ++d) {
    const auto& strides = plan.nest.loops[d].strides;
    bytes |= strides[GatherLoops::kOutput] | strides[GatherLoops::kInput];
  }
  for (uint32_t c = 0; c < plan.tuples.tuple_size; ++c) bytes |= plan.tuples.tuple[c].input_stride;
  return LargestUnit(bytes);
}

void PlanNote(const GatherLoops& loops, const DeviceTraits& device, GatherPlan* plan) {
  plan->note.tuples = plan->tuples;
  plan->note.nest = DeviceNest<1>(loops.tuples);
  plan->note.count = static_cast<uint32_t>(Iterations(loops.tuples));
  plan->note_grid = GridOf(plan->note.count, kGatherThreads);
  plan->note_grid.blocks = std::min<uint64_t>(plan->note_grid.blocks, kNoteBlocks * device.multiprocessors);
  plan->temporary_bytes = kMaxUnitBytes;
}

void LaunchUnits(const GatherPlan& plan, GatherLaunch* launch) {
  LoopNest<3> in_units = plan.nest;
  if (launch->unit_bytes > plan.element_bytes) {
    auto& inner = in_units.loops[in_units.rank - 1];
    inner.size = inner.size * plan.element_bytes / launch->unit_bytes;
    inner.strides = {launch->unit_bytes, launch->unit_bytes, 0};
  }
  GatherParameters& p = launch->parameters;
  p.nest = DeviceNest<3>(in_units);
  p.count = static_cast<uint32_t>(Iterations(in_units));
  launch->grid = GridOf(p.count, kGatherThreads);
}

void LaunchRows(const GatherPlan& plan, GatherLaunch* launch) {
  LoopNest<3> rows = plan.nest;
  const auto inner = TakeInnermost(&rows);
  GatherParameters& p = launch->parameters;
  p.nest = DeviceNest<3>(rows);
  p.row_units = static_cast<uint32_t>(inner.size * plan.element_bytes / launch->unit_bytes);
  const uint32_t pieces = (p.row_units - 1) / kGatherPieceUnits + 1;
  p.pieces = FastDivisor(pieces);
  p.count = static_cast<uint32_t>(Iterations(rows) * pieces);
  launch->grid = GridOf(uint64_t{p.count} * kGatherLanes, kGatherThreads);
}

}  // namespace

uint64_t GatherRowBytes(const GatherProblem& problem) {
  const LoopNest<3> elements = MakeGatherLoops(problem).elements;
  if (!HasRows(elements)) return 0;
  return elements.loops[elements.rank - 1].size * (BitSize(problem.output.type) / 8);
}

GatherPlan MakeGatherPlan(const GatherProblem& problem, GatherPlan::Kernel kernel,
                          const DeviceTraits& device) {
  const GatherLoops loops = MakeGatherLoops(problem);
  GatherPlan plan;
  plan.kernel = kernel;
  plan.element_bytes = BitSize(problem.output.type) / 8;
  plan.nest = InBytes(loops.elements, plan.element_bytes);
  plan.tuples = TuplesOf(problem, loops, plan.element_bytes);
  plan.max_unit_bytes = HasRows(loops.elements) ? RowUnitBytes(plan) : plan.element_bytes;
  PlanNote(loops, device, &plan);
  return plan;
}

GatherLaunch LaunchOf(const GatherPlan& plan, uint64_t addresses) {
  GatherLaunch launch;
  launch.unit_bytes = LargestUnit(addresses | plan.max_unit_bytes);
  launch.parameters.tuples = plan.tuples;
  if (plan.kernel == GatherPlan::Kernel::kRows) {
    LaunchRows(plan, &launch);
  } else {
    LaunchUnits(plan, &launch);
  }
  return launch;
}

}  // namespace anydml
