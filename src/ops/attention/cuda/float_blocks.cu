#include "ops/attention/cuda/float_blocks.cuh"

#include <algorithm>

namespace anydml {

std::unique_ptr<const Kernel> CreateAttentionFloatBlocksCuda(const AttentionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not) {
  using namespace float_blocks;
  constexpr uint64_t kMostBlocks = uint64_t{1} << 30, kMost = uint64_t{1} << 31;  // keys, and queries
  *why_not = WhyNotFloats(problem, kColumns);
  if (!why_not->empty()) return nullptr;
  const uint64_t heads = problem.batch * problem.heads, blocks = (problem.queries - 1) / kQueries + 1;
  if (std::max(problem.queries, problem.keys) >= kMost || heads > kMostBlocks / blocks) {
    *why_not =
        StrCat("there are more than ", kMostBlocks, " blocks of ", kQueries, " queries, or too many keys");
  } else if (sizeof(Shared) > context.device->shared_bytes_per_block) {
    *why_not = StrCat("a block has less than ", sizeof(Shared), " bytes of shared memory");
  } else {
    return std::make_unique<AttentionFloats>(
        problem, FloatAttentionKernel{AttendBlocks, kQueries, kThreads, sizeof(Shared)});
  }
  return nullptr;
}

}  // namespace anydml
