#include "ops/gather/loops.h"

namespace anydml {
namespace {

// A dimension of the output: the strides of input and indices along it.
struct OutputDimension {
  uint32_t size = 1;
  uint32_t input_stride = 0;
  uint32_t index_stride = 0;
};

struct OutputDimensions {
  uint32_t count = 0;
  OutputDimension list[2 * kMaxDimensions];

  void FromInput(const TensorDesc& input, uint32_t d) {
    list[count++] = {input.sizes[d], input.strides[d], 0};
  }
  void FromIndices(const TensorDesc& indices, uint32_t d) {
    list[count++] = {indices.sizes[d], 0, indices.strides[d]};
  }
};

OutputDimensions DimensionsOf(const GatherProblem& p) {
  const uint32_t rank = p.output.rank;
  OutputDimensions result;
  switch (p.kind) {
    case GatherProblem::Kind::kAxis:
      for (uint32_t d = 0; d < p.axis; ++d) result.FromInput(p.input, d);
      for (uint32_t d = rank - p.indices_dimensions; d < rank; ++d) result.FromIndices(p.indices, d);
      for (uint32_t d = p.axis + 1; d < rank; ++d) result.FromInput(p.input, d);
      break;
    case GatherProblem::Kind::kElements:
      for (uint32_t d = 0; d < rank; ++d) {
        result.FromIndices(p.indices, d);
        if (d != p.axis) result.list[d].input_stride = p.input.strides[d];
      }
      break;
    case GatherProblem::Kind::kNd:
      for (uint32_t d = 0; d + 1 < p.indices_dimensions; ++d) {
        result.FromIndices(p.indices, rank - p.indices_dimensions + d);
        if (d < p.batch_dimensions) {
          result.list[d].input_stride = p.input.strides[rank - p.input_dimensions + d];
        }
      }
      for (uint32_t d = p.source_dimension(p.tuple_size()); d < rank; ++d) result.FromInput(p.input, d);
      break;
  }
  return result;
}

}  // namespace

GatherLoops MakeGatherLoops(const GatherProblem& problem) {
  const OutputDimensions dimensions = DimensionsOf(problem);
  const uint32_t rank = problem.output.rank;
  GatherLoops loops;
  // Right-aligned; sizes that do not fit into the output's rank are 1.
  for (uint32_t i = 0; i < dimensions.count; ++i) {
    const OutputDimension& dimension = dimensions.list[i];
    if (i + rank < dimensions.count) continue;
    loops.elements.Append(dimension.size, {problem.output.strides[i + rank - dimensions.count],
                                           dimension.input_stride, dimension.index_stride});
  }
  const bool has_component = problem.kind == GatherProblem::Kind::kNd;
  for (uint32_t d = 0; d + (has_component ? 1 : 0) < problem.indices.rank; ++d) {
    loops.tuples.Append(problem.indices.sizes[d], {problem.indices.strides[d]});
  }
  loops.tuple_size = problem.tuple_size();
  for (uint32_t c = 0; c < loops.tuple_size; ++c) {
    const uint32_t d = problem.source_dimension(c);
    const uint64_t size = problem.input.sizes[d];
    loops.tuple[c] = {size, problem.wraps ? size : 0, problem.input.strides[d],
                      uint64_t{c} * problem.indices.strides[problem.indices.rank - 1]};
  }
  return loops;
}

Dimensions TupleCoordinate(const GatherProblem& problem, uint64_t number) {
  Dimensions at{};
  const bool has_component = problem.kind == GatherProblem::Kind::kNd;
  for (uint32_t d = problem.indices.rank - (has_component ? 1 : 0); d-- > 0;) {
    at[d] = static_cast<uint32_t>(number % problem.indices.sizes[d]);
    number /= problem.indices.sizes[d];
  }
  return at;
}

}  // namespace anydml
