// One sequence at a time, typed, any strides: a heap of K candidates, or a sort of all.
#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/loop_nest.h"
#include "ops/top_k/candidate.h"
#include "ops/top_k/problem.h"

namespace anydml {
namespace {

enum Operand { kInput, kValue, kIndex };

// Elements of one sequence as candidates.
template <typename T>
struct Sequence {
  using Bits = UnsignedOf<sizeof(T)>;
  using Cand = Candidate<sizeof(T)>;
  using Key = typename Cand::Key;

  Key KeyAt(uint32_t i) const {
    // For the smallest elements the order of keys is reversed, that of indices is not.
    return static_cast<Key>(OrderedBits<T>(data[i * stride])) ^ flip;
  }
  Cand At(uint32_t i) const { return Cand(KeyAt(i), i); }

  const Bits* data;
  uint64_t stride;
  Key flip;
};

template <typename Cand>
bool Better(const Cand& a, const Cand& b) {
  return a.BetterThan(b);
}

// Puts `candidate` in the place of the worst one, heap[0], and restores the heap:
// no candidate is better than its children. One pass down, where pop and push need two.
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
      // An equal key comes too late: the index is higher than those in the heap.
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

template <typename T, typename Select>
class TopKTyped final : public Kernel {
 public:
  explicit TopKTyped(const TopKProblem& problem)
      : n_(problem.n()),
        k_(problem.k()),
        flip_(problem.largest ? Key{0} : static_cast<Key>(~Key{0})),
        wide_index_(problem.index.type == DataType::kUInt64),
        temporary_bytes_(Select::Candidates(problem) * sizeof(Cand)) {
    LoopNest<3> nest;
    for (uint32_t d = 0; d < problem.input.rank; ++d) {
      const LoopNest<3>::Offsets strides = {problem.input.strides[d], problem.value.strides[d],
                                            problem.index.strides[d]};
      if (d == problem.axis) {
        axis_strides_ = strides;
      } else {
        nest.Append(problem.input.sizes[d], strides);
      }
    }
    sequences_ = SortedByStride(nest, kInput);
  }

  uint64_t temporary_bytes() const override { return temporary_bytes_; }

  void Run(const KernelArguments& arguments) const override {
    const auto* input = reinterpret_cast<const Bits*>(arguments.inputs[0].data);
    auto* value = reinterpret_cast<Bits*>(arguments.outputs[0].data);
    auto* best = reinterpret_cast<Cand*>(arguments.temporary.data);
    ForEach(sequences_, [&](const LoopNest<3>::Offsets& offsets) {
      const Sequence<T> sequence = {input + offsets[kInput], axis_strides_[kInput], flip_};
      Select::Run(sequence, n_, k_, best);
      for (uint32_t j = 0; j < k_; ++j) {
        value[offsets[kValue] + j * axis_strides_[kValue]] = sequence.data[best[j].index() * sequence.stride];
      }
      if (wide_index_) {
        StoreIndices<uint64_t>(arguments.outputs[1].data, offsets[kIndex], best);
      } else {
        StoreIndices<uint32_t>(arguments.outputs[1].data, offsets[kIndex], best);
      }
    });
  }

 private:
  using Bits = typename Sequence<T>::Bits;
  using Cand = typename Sequence<T>::Cand;
  using Key = typename Cand::Key;

  template <typename Index>
  void StoreIndices(std::byte* data, uint64_t offset, const Cand* best) const {
    Index* index = reinterpret_cast<Index*>(data) + offset;
    for (uint32_t j = 0; j < k_; ++j) index[j * axis_strides_[kIndex]] = best[j].index();
  }

  uint32_t n_;
  uint32_t k_;
  Key flip_;
  bool wide_index_;
  uint64_t temporary_bytes_;
  LoopNest<3> sequences_;
  LoopNest<3>::Offsets axis_strides_{};
};

template <typename Select>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem) {
  return DispatchByType(problem.input.type, [&]<typename T>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<TopKTyped<T, Select>>(problem);
  });
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKHeap(const TopKProblem& problem, std::string*) {
  return Create<HeapSelect>(problem);
}

std::unique_ptr<const Kernel> CreateTopKSort(const TopKProblem& problem, std::string*) {
  return Create<SortSelect>(problem);
}

}  // namespace anydml
