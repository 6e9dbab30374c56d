#include "ops/reduce/plan.h"

#include <algorithm>
#include <bit>

#include "ops/device/units.h"

namespace anydml {
namespace {

bool IsFloat(DataType type) { return type == DataType::kFloat32 || type == DataType::kFloat16; }

class Planner {
 public:
  Planner(const ReduceProblem& problem, const DeviceTraits& device, ReducePlan* plan)
      : problem_(problem), nests_(NestsOf(problem)), multiprocessors_(device.multiprocessors), plan_(plan) {}

  void Plan() {
    ReduceParameters& p = plan_->parameters;
    p.kept = DeviceNest<2>(nests_.kept);
    p.reduced = DeviceNest<1>(nests_.reduced);
    p.outputs = static_cast<uint32_t>(Iterations(nests_.kept));
    p.elements = static_cast<uint32_t>(Iterations(nests_.reduced));
    p.function = problem_.function;
    p.input_type = problem_.input.type;
    p.output_type = problem_.output.type;
    plan_->multiprocessors = multiprocessors_;
    DivideAnyhow();
    // Products are computed in FLOAT64 and rare.
    if (IsFloat(problem_.input.type) && AccumulationOf(problem_.function) != Accumulation::kProduct) {
      DivideInUnits();
    }
    const uint32_t segments = std::max(plan_->any.segments, plan_->units.segments);
    if (segments > 1) plan_->temporary_bytes = uint64_t{p.outputs} * segments * kReducePartialBytes;
  }

 private:
  // As many segments as fill the device once, none of them short. `step`: segments begin at its multiples.
  void CutIntoSegments(ReduceDivision* division, uint32_t at_once, uint64_t least, uint32_t step) const {
    const uint32_t outputs = plan_->parameters.outputs, elements = plan_->parameters.elements;
    const uint64_t groups = CeilDivide(outputs, division->block_outputs);
    const uint64_t wanted = std::min<uint64_t>(uint64_t{at_once} * multiprocessors_ / groups,
                                               elements / std::max<uint64_t>(least, 1));
    const uint64_t segments = std::clamp<uint64_t>(wanted, 1, 1024);
    const uint64_t segment = CeilDivide(elements, segments);
    division->segment = static_cast<uint32_t>(std::min<uint64_t>(CeilDivide(segment, step) * step, elements));
    division->segments = static_cast<uint32_t>(CeilDivide(elements, division->segment));
  }

  void DivideAnyhow() {
    ReduceDivision& any = plan_->any;
    const LoopNest<2>& kept = nests_.kept;
    const LoopNest<1>& reduced = nests_.reduced;
    any.lanes_first = reduced.rank > 0 && (kept.rank == 0 || reduced.loops[reduced.rank - 1].strides[0] <=
                                                                 kept.loops[kept.rank - 1].strides[0]);
    // Whether neighbouring threads work on one output, or on different ones.
    const uint32_t most = any.lanes_first ? kReduceThreads : 8;
    any.lanes = std::bit_ceil(std::min(plan_->parameters.elements, most));
    any.columns = any.block_outputs = any.threads / any.lanes;
    CutIntoSegments(&any, 8, uint64_t{32} * any.lanes, 1);
  }

  // Rows or columns of floats whose units are aligned if the input's address is.
  void DivideInUnits() {
    const uint32_t per_unit = kMaxUnitBytes / (BitSize(problem_.input.type) / 8);
    const LoopNest<2>& kept = nests_.kept;
    const LoopNest<1>& reduced = nests_.reduced;
    const auto aligned = [&](uint64_t elements) { return elements % per_unit == 0; };
    bool kept_aligned = true;  // except in the innermost loop
    for (uint32_t d = 0; d + 1 < kept.rank; ++d) kept_aligned &= aligned(kept.loops[d].strides[0]);
    if (!kept_aligned) return;
    const auto last_kept = kept.rank > 0 ? kept.loops[kept.rank - 1] : LoopNest<2>::Loop{};
    const ReduceParameters& p = plan_->parameters;
    if (reduced.rank == 1 && reduced.loops[0].strides[0] == 1 && p.elements >= 32 &&
        aligned(last_kept.strides[0])) {
      DivideRows(per_unit);
      return;
    }
    bool reduced_aligned = true;
    for (uint32_t d = 0; d < reduced.rank; ++d) reduced_aligned &= aligned(reduced.loops[d].strides[0]);
    if (kept.rank > 0 && last_kept.strides[0] == 1 && aligned(last_kept.size) && reduced_aligned &&
        p.elements >= 8 && p.outputs >= 64) {
      DivideColumns(per_unit);
    }
  }

  void DivideColumns(uint32_t per_unit) {
    ReduceDivision& units = plan_->units;
    units.kernel = ReduceKernel::kColumns;
    // If one launch takes only a few microseconds, a second one does not pay, but more blocks do, of 32
    // outputs each, whose threads wait for memory once.
    const bool is_small = uint64_t{plan_->parameters.elements} * plan_->parameters.outputs <= 1 << 17;
    units.columns = is_small ? 32 / per_unit : 32;
    units.block_outputs = units.columns * per_unit;
    CutIntoSegments(&units, kReduceColumnBlocksAtOnce, is_small ? 512 : 128, 1);
  }

  void DivideRows(uint32_t per_unit) {
    ReduceDivision& units = plan_->units;
    const uint32_t outputs = plan_->parameters.outputs, elements = plan_->parameters.elements;
    units.kernel = ReduceKernel::kRows;
    const auto row_units = static_cast<uint32_t>(CeilDivide(elements, per_unit));
    // A warp per row if rows are short and many, otherwise a block.
    const bool by_warps = row_units <= 256 && outputs >= 8 * multiprocessors_;
    // With many rows, small blocks: while some merge, others load.
    const uint32_t most = outputs >= 8 * multiprocessors_ ? 256 : row_units <= 4096 ? 512 : 1024;
    units.lanes = by_warps ? kReduceLanes : std::clamp(std::bit_ceil(row_units / 8), 128u, most);
    units.columns = units.block_outputs = by_warps ? 8 : 1;
    units.threads = units.lanes * units.columns;
    if (by_warps) {
      units.segment = elements;
    } else {
      CutIntoSegments(&units, 2048 / units.threads, 1 << 16, per_unit);
    }
  }

  const ReduceProblem& problem_;
  const ReduceNests nests_;
  const uint32_t multiprocessors_;
  ReducePlan* const plan_;
};

}  // namespace

ReducePlan MakeReducePlan(const ReduceProblem& problem, const DeviceTraits& device) {
  ReducePlan plan;
  Planner(problem, device, &plan).Plan();
  return plan;
}

ReduceLaunch LaunchOf(const ReducePlan& plan, uint64_t input_address) {
  const bool in_units = plan.units.kernel != ReduceKernel::kAny && input_address % kMaxUnitBytes == 0;
  const ReduceDivision& division = in_units ? plan.units : plan.any;
  ReduceLaunch launch = {division.kernel, {}, plan.parameters};
  ReduceParameters& p = launch.parameters;
  p.columns = division.columns;
  p.lanes = division.lanes;
  p.lanes_first = division.lanes_first;
  p.segments = division.segments;
  p.segment = division.segment;
  launch.grid = {CeilDivide(p.outputs, division.block_outputs) * p.segments, division.threads};
  return launch;
}

ReduceLaunch MergeLaunchOf(const ReducePlan& plan, const ReduceLaunch& first) {
  ReduceLaunch launch = {ReduceKernel::kAny, {}, first.parameters};
  ReduceParameters& p = launch.parameters;
  p.merges = true;
  // No more threads per output than fill the device once, so that each waits for memory once.
  const auto enough =
      static_cast<uint32_t>(CeilDivide(uint64_t{plan.multiprocessors} * kReduceThreads, p.outputs));
  p.lanes = std::bit_ceil(std::min({p.segments, kReduceThreads, enough}));
  p.columns = kReduceThreads / p.lanes;
  p.lanes_first = p.outputs < 32;  // partials of one segment are contiguous
  launch.grid = {CeilDivide(p.outputs, p.columns), kReduceThreads};
  return launch;
}

}  // namespace anydml
