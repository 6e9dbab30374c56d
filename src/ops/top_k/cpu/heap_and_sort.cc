// A heap of K candidates, or a sort of all.
#include <algorithm>

#include "ops/top_k/cpu/typed_kernel.h"

namespace anydml {
namespace {

// Replaces the worst candidate, heap[0], and restores the heap property: no candidate is better than its
// children. One pass down, where pop and push need two.
template <typename Cand>
void ReplaceWorst(Cand* heap, uint32_t size, Cand candidate) {
  uint64_t hole = 0;
  for (uint64_t child; (child = 2 * hole + 1) < size; hole = child) {
    if (child + 1 < size && heap[child].BetterThan(heap[child + 1])) ++child;
    if (!candidate.BetterThan(heap[child])) break;
    heap[hole] = heap[child];
  }
  heap[hole] = candidate;
}

struct HeapSelect {
  static uint64_t Candidates(const TopKProblem& problem) { return problem.k(); }

  template <typename T, typename Cand>
  static void Run(const Sequence<T>& sequence, uint32_t n, uint32_t k, Cand* heap) {
    for (uint32_t i = 0; i < k; ++i) heap[i] = sequence.At(i);
    std::make_heap(heap, heap + k, Better<Cand>);  // the worst of them on top
    auto worst = heap[0].key();
    for (uint32_t i = k; i < n; ++i) {
      // An equal key loses: its index is higher than those in the heap.
      const auto key = sequence.KeyAt(i);
      if (key <= worst) continue;
      ReplaceWorst(heap, k, Cand(key, i));
      worst = heap[0].key();
    }
    std::sort_heap(heap, heap + k, Better<Cand>);
  }
};

struct SortSelect {
  static uint64_t Candidates(const TopKProblem& problem) { return problem.n(); }

  template <typename T, typename Cand>
  static void Run(const Sequence<T>& sequence, uint32_t n, uint32_t k, Cand* all) {
    for (uint32_t i = 0; i < n; ++i) all[i] = sequence.At(i);
    if (k < n) std::nth_element(all, all + k, all + n, Better<Cand>);
    std::sort(all, all + k, Better<Cand>);
  }
};

}  // namespace

std::unique_ptr<const Kernel> CreateTopKHeap(const TopKProblem& problem, const LowerContext&, std::string*) {
  return CreateTopKTyped<HeapSelect>(problem);
}

std::unique_ptr<const Kernel> CreateTopKSort(const TopKProblem& problem, const LowerContext&, std::string*) {
  return CreateTopKTyped<SortSelect>(problem);
}

}  // namespace anydml
