#include "ops/operator_table.h"
#include "ops/top_k/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

constexpr uint32_t kDecreasing = 1;  // DML_AXIS_DIRECTION_DECREASING

// Where much of a sequence is kept, sorting beats maintaining a heap. With 10^6
// random FLOAT32 on a Xeon the two meet at K = N/32 (17 ms); at N/100 the heap takes
// 7 ms and the sort 11, at N/16 it is 31 and 15.
std::string SortBetterNot(const TopKProblem& problem, const LowerContext&) {
  if (problem.k() > problem.n() / 32) return {};
  return StrCat("K is ", problem.k(), " of ", problem.n(), " elements: a heap of K is faster up to 1/32");
}

// cuda.sort takes sequences one after the other, cuda.rounds one per multiprocessor. In ns, on an
// H200: FLOAT32 1x2000000 K 6000 is 115000 and 3690000, 128x2000000 K 20000 14450000 and 19890000,
// 100x16000 K 10000 5700000 and 78000.
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

// The blocks of cuda.long_rows wait for each other twice, cuda.stream has a kernel more. In us, on an H200,
// FLOAT32 K 10: 1x8000000 26 and 24, 4x4000000 37 and 33, 16x1000000 35 and 36, 1x64000000 82 and 102.
std::string CudaLongRowsBetterNot(const TopKProblem& problem, const LowerContext&) {
  const uint64_t elements = ElementCount(problem.input);
  const uint64_t rows = elements / problem.n();
  const uint64_t bytes = elements * BitSize(problem.input.type) / 8;
  if (rows >= 16 || bytes > uint64_t{64} << 20) return {};
  return StrCat(rows, " rows of ", bytes, " bytes in all are read sooner by cuda.stream");
}

constexpr Implementation<TopKProblem> kImplementations[] = {
#if ANYDML_HAVE_HIGHWAY
    {"cpu.rank", "cpu", ANYDML_ON_CPU(CreateTopKRank)},
    {"cpu.maxima", "cpu", ANYDML_ON_CPU(CreateTopKMaxima), ANYDML_ON_CPU(TopKMaximaBetterNot)},
    {"cpu.sample", "cpu", ANYDML_ON_CPU(CreateTopKSample), ANYDML_ON_CPU(TopKSampleBetterNot)},
    {"cpu.keys", "cpu", ANYDML_ON_CPU(CreateTopKKeys)},
#endif
    {"cpu.sort", "cpu", ANYDML_ON_CPU(CreateTopKSort), SortBetterNot},
    {"cpu.heap", "cpu", ANYDML_ON_CPU(CreateTopKHeap)},
    {"cuda.threads", "cuda", ANYDML_ON_CUDA(CreateTopKCudaThreads)},
    {"cuda.columns", "cuda", ANYDML_ON_CUDA(CreateTopKCudaColumns)},
    {"cuda.transposed", "cuda", ANYDML_ON_CUDA(CreateTopKCudaTransposed)},
    {"cuda.counted", "cuda", ANYDML_ON_CUDA(CreateTopKCudaCounted)},
    {"cuda.rows", "cuda", ANYDML_ON_CUDA(CreateTopKCudaRows)},
    {"cuda.long_rows", "cuda", ANYDML_ON_CUDA(CreateTopKCudaLongRows), CudaLongRowsBetterNot},
    {"cuda.stream", "cuda", ANYDML_ON_CUDA(CreateTopKCudaStream)},
    {"cuda.buckets", "cuda", ANYDML_ON_CUDA(CreateTopKCudaBuckets)},
    {"cuda.sort", "cuda", ANYDML_ON_CUDA(CreateTopKCudaSort), CudaSortBetterNot},
    {"cuda.rounds", "cuda", ANYDML_ON_CUDA(CreateTopKCudaRounds)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateTopKReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  TopKProblem problem;
  problem.input = *desc.tensor("InputTensor");
  problem.value = *desc.tensor("OutputValueTensor");
  problem.index = *desc.tensor("OutputIndexTensor");
  problem.axis = desc.uint("Axis");
  const bool has_direction = FindField(*desc.schema, "AxisDirection") >= 0;
  problem.largest = !has_direction || desc.uint("AxisDirection") == kDecreasing;
  return ChooseKernel(OperatorTableOf(context.backend).top_k, problem, context, out);
}

}  // namespace

std::span<const Implementation<TopKProblem>> TopKImplementations() { return kImplementations; }

constinit const Operator kTopKOperator = {71, CheckTopK, Lower, InferTopK, kNames};
constinit const Operator kTopK1Operator = {112, CheckTopK, Lower, InferTopK, kNames};

}  // namespace anydml
