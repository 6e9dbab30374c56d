#include "ops/implementation_list.h"
#include "ops/top_k/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

constexpr uint32_t kDecreasing = 1;  // DML_AXIS_DIRECTION_DECREASING

// Where much of a sequence is kept, sorting beats maintaining a heap. With 10^6
// random FLOAT32 on a Xeon the two meet at K = N/32 (17 ms); at N/100 the heap takes
// 7 ms and the sort 11, at N/16 it is 31 and 15.
std::string SortBetterNot(const TopKProblem& problem) {
  if (problem.k() > problem.n() / 32) return {};
  return StrCat("K is ", problem.k(), " of ", problem.n(), " elements: a heap of K is faster up to 1/32");
}

constexpr Implementation<TopKProblem> kImplementations[] = {
#if ANYDML_HAVE_HIGHWAY
    {"cpu.rank", "cpu", CreateTopKRank},
    {"cpu.bests", "cpu", CreateTopKBests, TopKBestsBetterNot},
    {"cpu.sample", "cpu", CreateTopKSample, TopKSampleBetterNot},
    {"cpu.keys", "cpu", CreateTopKKeys},
#endif
    {"cpu.sort", "cpu", CreateTopKSort, SortBetterNot},
    {"cpu.heap", "cpu", CreateTopKHeap},
    {"cuda.threads", "cuda", nullptr, nullptr, "AnyDmlCreateTopKCudaThreads"},
    {"cuda.columns", "cuda", nullptr, nullptr, "AnyDmlCreateTopKCudaColumns"},
    {"cuda.registers", "cuda", nullptr, nullptr, "AnyDmlCreateTopKCudaRegisters"},
    {"cuda.stream", "cuda", nullptr, nullptr, "AnyDmlCreateTopKCudaStream"},
    {"cuda.buckets", "cuda", nullptr, nullptr, "AnyDmlCreateTopKCudaBuckets"},
    {"cuda.rounds", "cuda", nullptr, nullptr, "AnyDmlCreateTopKCudaRounds"},
    {"cpu.reference", "cpu", CreateTopKReference},
};
constexpr auto kNames = ImplementationNames(kImplementations);

Status Lower(const OperatorDesc& desc, const LowerOptions& options, LoweredOperator* out) {
  TopKProblem problem;
  problem.input = *desc.tensor("InputTensor");
  problem.value = *desc.tensor("OutputValueTensor");
  problem.index = *desc.tensor("OutputIndexTensor");
  problem.axis = desc.uint("Axis");
  problem.threads = options.threads;
  const bool has_direction = FindField(*desc.schema, "AxisDirection") >= 0;
  problem.largest = !has_direction || desc.uint("AxisDirection") == kDecreasing;
  return ChooseImplementation(desc.schema->name, kImplementations, problem, options, out);
}

}  // namespace

constinit const Operator kTopKOperator = {71, CheckTopK, Lower, InferTopK, kNames};
constinit const Operator kTopK1Operator = {112, CheckTopK, Lower, InferTopK, kNames};

}  // namespace anydml
