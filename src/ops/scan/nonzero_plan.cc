#include "ops/scan/nonzero_plan.h"

namespace anydml {
namespace {

// Up to this size, one block is done before three kernels could be started one after the other.
constexpr uint64_t kSmallElements = uint64_t{4} * kNonzeroSmallThreads * kNonzeroPerThread;

}  // namespace

NonzeroPlan MakeNonzeroPlan(const NonzeroProblem& problem) {
  LoopNest<1> nest;
  for (uint32_t d = 0; d < problem.input.rank; ++d) {
    nest.Append(problem.input.sizes[d], {problem.input.strides[d]});
  }
  const NonzeroColumns columns = ColumnsOf(problem);
  NonzeroPlan plan;
  NonzeroParameters& p = plan.parameters;
  p.mask = NonzeroMask(problem.input.type);
  p.elements = static_cast<uint32_t>(Iterations(nest));
  p.tiles = static_cast<uint32_t>(CeilDivide(p.elements, kNonzeroThreads * kNonzeroPerThread));
  p.contiguous = nest.rank == 0 || (nest.rank == 1 && nest.loops[0].strides[0] == 1);
  p.nest = DeviceNest<1>(nest);
  p.columns = columns.count;
  for (uint32_t c = 0; c < columns.count; ++c) p.sizes[c] = FastDivisor(columns.sizes[c]);
  p.row_stride = columns.row_stride;
  p.column_stride = columns.column_stride;
  plan.is_small = p.elements <= kSmallElements;
  plan.tiles_grid = {p.tiles, kNonzeroThreads};
  if (!plan.is_small) plan.temporary_bytes = uint64_t{p.tiles} * sizeof(uint32_t);
  return plan;
}

}  // namespace anydml
