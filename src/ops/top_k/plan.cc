#include "ops/top_k/plan.h"

#include <algorithm>

namespace anydml {

KeyOrder KeyOrderOf(DataType type, bool largest) {
  const bool is_float =
      type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64;
  const bool is_signed = type == DataType::kInt8 || type == DataType::kInt16 || type == DataType::kInt32 ||
                         type == DataType::kInt64;
  KeyOrder order{is_float, largest ? 0 : ~uint64_t{0}};
  if (is_signed) {
    for (uint32_t bit = BitSize(type); bit <= 64; bit += BitSize(type))
      order.flip ^= uint64_t{1} << (bit - 1);
  }
  return order;
}

TopKSequences TopKSequencesOf(const TopKProblem& problem) {
  TopKSequences all{};
  all.nest = SequencesOf(problem, &all.axis);
  all.input_bytes = MinimumTotalBytes(problem.input);
  all.count = Iterations(all.nest);
  all.n = problem.n();
  all.k = problem.k();
  all.order = KeyOrderOf(problem.input.type, problem.largest);
  all.wide_index = problem.index.type == DataType::kUInt64;
  return all;
}

TopKSequences Bind(TopKSequences all, const KernelArguments& arguments) {
  all.input = arguments.inputs[0].data;
  all.input_end = all.input + all.input_bytes;
  all.value = arguments.outputs[0].data;
  all.index = arguments.outputs[1].data;
  return all;
}

bool SequencesAreAligned(const TopKSequences& all, uint32_t element_bytes) {
  if (all.axis[kInput] != 1) return false;
  for (uint32_t d = 0; d < all.nest.rank; ++d) {
    if (all.nest.loops[d].strides[kInput] * element_bytes % 16 != 0) return false;
  }
  return true;
}

TopKRoundsPlan MakeTopKRoundsPlan(const TopKProblem& problem) {
  constexpr uint64_t kMostBlocks = uint64_t{1} << 20;
  TopKRoundsPlan plan;
  plan.sequences = TopKSequencesOf(problem);
  plan.grid = {std::min(plan.sequences.count, kMostBlocks), kTopKRoundThreads,
               2 * kTopKRoundCapacity * CandidateBytes(BitSize(problem.input.type) / 8)};
  return plan;
}

}  // namespace anydml
