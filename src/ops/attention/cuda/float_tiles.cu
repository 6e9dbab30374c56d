#include "ops/attention/cuda/float_tiles.cuh"

#include <algorithm>

namespace anydml {

// For larger problems, blocks of more queries, or the separate products, use the device better.
std::unique_ptr<const Kernel> CreateAttentionFloatTilesCuda(const AttentionProblem& problem,
                                                            const LowerContext& context,
                                                            std::string* why_not) {
  using namespace float_tiles;
  constexpr uint64_t kMostKeys = 512, kTilesOfMultiprocessor = 4;
  *why_not = WhyNotFloats(problem, kColumns);
  if (!why_not->empty()) return nullptr;
  const uint64_t most = kTilesOfMultiprocessor * context.device->multiprocessors;
  const uint64_t tiles = (problem.keys + kKeys - 1) / kKeys;
  if (problem.keys > kMostKeys || problem.batch * problem.heads > most ||
      problem.batch * problem.heads * ((problem.queries + kQueries - 1) / kQueries) > most / tiles) {
    *why_not = StrCat("there are more than ", kMostKeys, " keys or ", most, " tiles of ", kQueries,
                      " queries and ", kKeys, " keys");
  } else if (sizeof(Shared) > context.device->shared_bytes_per_block) {
    *why_not = StrCat("a block has less than ", sizeof(Shared), " bytes of shared memory");
  } else {
    return std::make_unique<AttentionFloats>(
        problem, FloatAttentionKernel{AttendFloats, kQueries, kThreads, sizeof(Shared)});
  }
  return nullptr;
}

}  // namespace anydml
