// A kernel for one typed sequence at a time, with any strides; the selection is a parameter:
//   struct Select {
//     static uint64_t Candidates(const TopKProblem& problem);  // scratch, in candidates
//     // Moves the k best of n to the front of `scratch`, best first.
//     template <typename T, typename Cand>
//     static void Run(const Sequence<T>& sequence, uint32_t n, uint32_t k, Cand* scratch);
//   };
#pragma once

#include <memory>

#include "base/dispatch.h"
#include "ops/common/loop_nest.h"
#include "ops/top_k/candidate.h"
#include "ops/top_k/sequences.h"

namespace anydml {

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

template <typename T, typename Select>
class TopKTyped final : public Kernel {
 public:
  explicit TopKTyped(const TopKProblem& problem)
      : n_(problem.n()),
        k_(problem.k()),
        flip_(problem.largest ? Key{0} : static_cast<Key>(~Key{0})),
        wide_index_(problem.index.type == DataType::kUInt64),
        temporary_bytes_(Select::Candidates(problem) * sizeof(Cand)) {
    sequences_ = SequencesOf(problem, &axis_strides_);
  }

  uint64_t temporary_bytes() const override { return temporary_bytes_; }

  Status Run(const KernelArguments& arguments) const override {
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
    return {};
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
std::unique_ptr<const Kernel> CreateTopKTyped(const TopKProblem& problem) {
  return DispatchByType(problem.input.type, [&]<typename T>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<TopKTyped<T, Select>>(problem);
  });
}

}  // namespace anydml
