// A row, or a block's share of one, loaded through stages in shared memory.
#pragma once

#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {

// Every warp reads a part of its own, and the parts of a block's warps are far apart: a stage has elements
// from all over the row, so that a sorted row is no special case. Threads access only their own vectors.
template <int kBytes, int kThreads, int kStages, int kVectors>
class RowStages {
 public:
  using Vector = KeyVector<kBytes>;
  static constexpr uint32_t kRingBytes = kStages * kVectors * kThreads * 16;

  __device__ RowStages(const TopKSequences& all, uint64_t row, uint4* ring)
      : all_(all), slots_(ring + threadIdx.x) {
    const CudaSequence<kBytes> sequence(all, row);
    from_ = sequence.AddressOfVector(0);
    vectors_ = sequence.vectors();
    readable_ = sequence.readable_vectors();
    first_ = static_cast<int32_t>(sequence.FirstOf(0));
  }

  // Takes one of equal shares, and starts to load it.
  __device__ void Take(uint32_t share, uint32_t shares) {
    parts_ = shares * (kThreads / 32);
    const uint32_t part = threadIdx.x / 32 * shares + share;
    begin_ = BeginOf(part) * 32 + threadIdx.x % 32;
    end_ = min(BeginOf(part + 1) * 32, vectors_);
    count_ = (units() - 1) / (parts_ * kVectors) + 1;
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) Load(stage, i);
    }
  }

  __device__ uint32_t count() const { return count_; }
  __device__ bool Has(uint32_t stage, int i) const { return NumberOf(stage, i) < end_; }
  // The first and the last vector may contain elements outside this row.
  __device__ bool HasWhole(uint32_t stage, int i) const {
    return Has(stage, i) && FirstOf(stage, i) >= 0 && FirstOf(stage, i) + Vector::kElements <= all_.n;
  }
  __device__ int32_t FirstOf(uint32_t stage, int i) const {
    return static_cast<int32_t>(NumberOf(stage, i) * Vector::kElements) + first_;
  }
  __device__ uint32_t StageOf(uint32_t index) const {
    const uint32_t unit = (index - first_) / (Vector::kElements * 32);
    const auto part = static_cast<uint32_t>((uint64_t{unit + 1} * parts_ - 1) / units());
    return (unit - BeginOf(part)) / kVectors;
  }

  // Starts to load a vector, or nothing after the last one.
  __device__ void Load(uint32_t stage, int i) {
    const uint32_t v = NumberOf(stage, i);
    if (v < min(end_, readable_)) {
      CopyAsync(&Slot(stage, i), from_ + v);
    } else if (v < end_) {
      Slot(stage, i) = LoadLast(v);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  // Waits until at most kLater vectors are in flight.
  template <int kLater>
  __device__ void Wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
  }
  __device__ Vector At(uint32_t stage, int i) const { return VectorOf(Slot(stage, i)); }
  // Loads an earlier vector again, from global memory.
  __device__ Vector Again(uint32_t stage, int i) const {
    const uint32_t v = NumberOf(stage, i);
    if (v >= end_) return {};
    return VectorOf(v < readable_ ? from_[v] : LoadLast(v));
  }

 private:
  __device__ uint32_t units() const { return (vectors_ - 1) / 32 + 1; }
  __device__ uint32_t BeginOf(uint32_t part) const {
    return static_cast<uint32_t>(uint64_t{units()} * part / parts_);
  }
  __device__ uint32_t NumberOf(uint32_t stage, int i) const { return begin_ + (stage * kVectors + i) * 32; }
  __device__ uint4& Slot(uint32_t stage, int i) const {
    return slots_[(stage % kStages * kVectors + i) * kThreads];
  }
  static __device__ Vector VectorOf(uint4 loaded) { return {{loaded.x, loaded.y, loaded.z, loaded.w}}; }
  __device__ uint4 LoadLast(uint32_t v) const { return LoadBefore(from_ + v, all_.input_end); }

  const TopKSequences& all_;
  uint4* slots_;
  const uint4* from_;
  uint32_t vectors_;
  uint32_t readable_;
  int32_t first_;       // element of the first vector
  uint32_t parts_ = 1;  // of all warps
  uint32_t begin_ = 0;  // vectors of this thread
  uint32_t end_ = 0;
  uint32_t count_ = 0;  // of stages
};

}  // namespace anydml
