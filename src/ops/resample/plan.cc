#include "ops/resample/plan.h"

#include <algorithm>

#include "ops/device/units.h"

namespace anydml {
namespace {

void AddLoop(const ResampleAxis& axis, uint32_t size, uint32_t level, ResampleTargets* targets) {
  if (size == 1) return;
  targets->loops[targets->rank++] = {FastDivisor(size), axis.source_stride, axis.target_stride, level};
  targets->count *= size;
}

// The problem with units in the place of elements.
std::optional<ResampleProblem> InUnits(const ResampleProblem& problem) {
  const uint32_t unit = kMaxUnitBytes * 8 / BitSize(problem.type);
  ResampleProblem units = problem;
  bool found = false;
  for (uint32_t d = 0; d < problem.rank; ++d) {
    ResampleAxis& axis = units.axes[d];
    const bool is_row =
        KeepsElements(axis) && axis.to > 1 && axis.source_stride == 1 && axis.target_stride == 1;
    if (is_row && axis.to % unit == 0) {
      axis.from = axis.to = axis.to / unit;
      axis.rule = ResampleRule::kSame;
      found = true;
      continue;
    }
    if ((axis.from > 1 && axis.source_stride % unit != 0) ||
        (axis.to > 1 && axis.target_stride % unit != 0)) {
      return std::nullopt;
    }
    axis.source_stride /= unit;
    axis.target_stride /= unit;
  }
  if (!found) return std::nullopt;
  return units;
}

ResampleCopyPlan PlanCopies(const ResampleProblem& problem, uint32_t element_bytes) {
  ResampleCopyPlan plan;
  plan.element_bytes = element_bytes;
  plan.parameters.targets = MakeResampleTargets(problem);
  plan.grid = {CeilDivide(plan.parameters.targets.count, kResampleCopyThreads * kResamplePerThread),
               kResampleCopyThreads};
  return plan;
}

}  // namespace

ResampleTargets MakeResampleTargets(const ResampleProblem& problem) {
  const ResampleLevels all(problem);
  ResampleTargets targets;
  for (uint32_t d = 0; d < all.batch_rank; ++d) {
    AddLoop(all.batch[d], all.batch[d].to, ResampleTargets::kNoLevel, &targets);
  }
  for (uint32_t l = 0; l < all.level_count; ++l) {
    const uint32_t level = kMaxLevels - all.level_count + l;
    targets.levels[level] = all.levels[l];
    AddLoop(all.levels[l], TargetSize(all.levels[l], problem.gradient), level, &targets);
  }
  std::stable_sort(targets.loops, targets.loops + targets.rank,
                   [](const auto& a, const auto& b) { return a.target_stride > b.target_stride; });
  return targets;
}

ResampleCopyPlan MakeResampleCopyPlan(const ResampleProblem& problem) {
  return PlanCopies(problem, BitSize(problem.type) / 8);
}

std::optional<ResampleCopyPlan> MakeResampleUnitsPlan(const ResampleProblem& problem) {
  const std::optional<ResampleProblem> units = InUnits(problem);
  if (!units) return std::nullopt;
  return PlanCopies(*units, kMaxUnitBytes);
}

ResampleSumsPlan MakeResampleSumsPlan(const ResampleProblem& problem) {
  ResampleSumsPlan plan;
  plan.parameters.type = problem.type;
  plan.parameters.targets = MakeResampleTargets(problem);
  plan.grid = GridOf(plan.parameters.targets.count, kResampleSumThreads);
  return plan;
}

}  // namespace anydml
