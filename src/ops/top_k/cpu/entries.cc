#include "ops/top_k/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml::family::top_k {
namespace {

// If a large part of a sequence is kept, sorting is faster than maintaining a heap. With 10^6 random FLOAT32
// on a Xeon the two are equal at K = N/32 (17 ms); at N/100 the heap takes 7 ms and the sort 11, at N/16 31
// and 15.
std::string SortBetterNot(const TopKProblem& problem, const LowerContext&) {
  if (problem.k() > problem.n() / 32) return {};
  return StrCat("K is ", problem.k(), " of ", problem.n(), " elements: a heap of K is faster up to 1/32");
}

constexpr Implementation<TopKProblem> kEntries[] = {
#if ANYDML_HAVE_HIGHWAY
    {"cpu.rank", CreateTopKRank},
    {"cpu.maxima", CreateTopKMaxima, TopKMaximaBetterNot},
    {"cpu.sample", CreateTopKSample, TopKSampleBetterNot},
    {"cpu.keys", CreateTopKKeys},
#endif
    {"cpu.sort", CreateTopKSort, SortBetterNot},
    {"cpu.heap", CreateTopKHeap},
    {.name = "cpu.reference", .create = CreateTopKReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<TopKProblem>(kEntries); }

}  // namespace anydml::family::top_k
