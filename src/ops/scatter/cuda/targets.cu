#include "ops/scatter/cuda/targets.cuh"

#include "ops/scatter/plan.h"

namespace anydml {
namespace {

// Dimensions of the output that slots are numbered along: all but those of a slice.
uint32_t SlotDimensions(const ScatterProblem& problem) {
  return problem.output.rank - SliceDimensions(problem);
}

// How far apart the slots of neighbours along each dimension are.
Dimensions SlotStrides(const ScatterProblem& problem) {
  Dimensions strides{};
  uint32_t stride = 1;
  for (uint32_t d = SlotDimensions(problem); d-- > 0; stride *= problem.output.sizes[d]) strides[d] = stride;
  return strides;
}

}  // namespace

uint64_t SlotCount(const ScatterProblem& problem) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < SlotDimensions(problem); ++d) count *= problem.output.sizes[d];
  return count;
}

DeviceTuples MakeDeviceTuples(const ScatterProblem& problem) {
  const uint64_t element_bytes = BitSize(problem.output.type) / 8;
  const DataType type = problem.indices.type;
  const Dimensions slot_strides = SlotStrides(problem);
  const ScatterPlan plan = MakeScatterPlan(problem);
  DeviceTuples tuples;
  tuples.wide = BitSize(type) == 64;
  tuples.is_signed = type == DataType::kInt32 || type == DataType::kInt64;
  tuples.tuple_size = plan.tuple_size;
  for (uint32_t c = 0; c < plan.tuple_size; ++c) {
    const ScatterPlan::Component& component = plan.tuple[c];
    tuples.tuple[c] = {component.size, component.wrap, component.output_stride * element_bytes,
                       component.index_offset, slot_strides[problem.target_dimension(c)]};
  }
  LoopNest<4> nest;
  for (const PositionLoop& loop : PositionLoops(problem)) {
    uint64_t output_stride = 0, slot_stride = 0;
    if (loop.output_dimension != PositionLoop::kNoDimension) {
      output_stride = problem.output.strides[loop.output_dimension] * element_bytes;
      slot_stride = slot_strides[loop.output_dimension];
    }
    nest.Append(loop.size,
                {loop.indices_stride, loop.updates_stride * element_bytes, output_stride, slot_stride});
  }
  tuples.nest = DeviceNest<4>(nest);
  tuples.positions = static_cast<uint32_t>(Iterations(nest));
  return tuples;
}

}  // namespace anydml
