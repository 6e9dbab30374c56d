// The K best of a sequence by one block, which reads the sequence as often as needed: for any problem, and
// without temporary memory.
#pragma once

#include "ops/top_k/cuda/select.cuh"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {

// Each round sorts the next places, as many as fit into the list and the equally long spare (`capacity`, a
// power of two). For whole blocks.
template <int kBytes, typename Select, int kThreads>
__device__ void SelectInRounds(const CudaSequence<kBytes>& sequence, uint32_t k, Select select,
                               WordFor<kBytes>* list, uint32_t capacity) {
  using Word = WordFor<kBytes>;
  Word best = ~Word{0};  // not placed yet
  for (uint32_t placed = 0; placed < k;) {
    const uint32_t count = min(k - placed, capacity);
    const auto for_each = [&](auto&& visit) {
#pragma unroll 4
      for (uint64_t i = threadIdx.x; i < sequence.n(); i += kThreads) {
        const Word word = MakeWord<kBytes>(sequence.KeyAt(i), i);
        if (word <= best) visit(word);
      }
    };
    const Word* sorted = select.SelectAndSort(for_each, count, list, list + capacity, capacity);
    for (uint32_t j = threadIdx.x; j < count; j += kThreads) sequence.Store(placed + j, sorted[j]);
    best = sorted[count - 1] - 1;
    placed += count;
    __syncthreads();
  }
}

}  // namespace anydml
