#include "ops/top_k/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml::family::top_k {
namespace {

// cuda.sort processes sequences one after the other, cuda.rounds one per multiprocessor. In ns, on an H200:
// FLOAT32 1x2000000 K 6000 takes 115000 and 3690000, 128x2000000 K 20000 14450000 and 19890000, 100x16000 K
// 10000 5700000 and 78000.
std::string CudaSortBetterNot(const TopKProblem& problem, const LowerContext& context) {
  const uint64_t n = problem.n();
  const uint64_t sequences = ElementCount(problem.input) / n;
  const uint64_t bytes = BitSize(problem.input.type) / 8;  // each is a pass
  const uint64_t sort = sequences * bytes * (14000 + n / 128);
  const uint64_t waves = (sequences - 1) / context.device->multiprocessors + 1;
  const uint64_t rounds = waves * ((problem.k() - 1) / 4096 + 1) * n * 9 / 5;
  if (sort < rounds) return {};
  return StrCat("sorting ", sequences, " sequences of ", n, " one by one takes longer than cuda.rounds");
}

// The blocks of cuda.long_rows wait for each other twice; cuda.stream has one kernel more. In us, on an H200,
// FLOAT32 K 10: 1x8000000 26 and 24, 4x4000000 37 and 33, 16x1000000 35 and 36, 1x64000000 82 and 102.
std::string CudaLongRowsBetterNot(const TopKProblem& problem, const LowerContext&) {
  const uint64_t elements = ElementCount(problem.input);
  const uint64_t rows = elements / problem.n();
  const uint64_t bytes = elements * BitSize(problem.input.type) / 8;
  if (rows >= 16 || bytes > uint64_t{64} << 20) return {};
  return StrCat(rows, " rows of ", bytes, " bytes in all are read sooner by cuda.stream");
}

constexpr Implementation<TopKProblem> kEntries[] = {
    {"cuda.threads", CreateTopKCudaThreads},
    {"cuda.columns", CreateTopKCudaColumns},
    {"cuda.transposed", CreateTopKCudaTransposed},
    {"cuda.counted", CreateTopKCudaCounted},
    {"cuda.rows", CreateTopKCudaRows},
    {"cuda.long_rows", CreateTopKCudaLongRows, CudaLongRowsBetterNot},
    {"cuda.stream", CreateTopKCudaStream},
    {"cuda.buckets", CreateTopKCudaBuckets},
    {.name = "cuda.sort",
     .create = CreateTopKCudaSort,
     .better_not = CudaSortBetterNot,
     .abilities = kReadsAnyStride},
    {.name = "cuda.rounds", .create = CreateTopKCudaRounds, .abilities = kReadsAnyStride},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<TopKProblem>(kEntries); }

}  // namespace anydml::family::top_k
