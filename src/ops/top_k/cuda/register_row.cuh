// The keys of a contiguous sequence, or of a part of it, in the registers of a block.
#pragma once

#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {

// kThreads * kVectors vectors from `first_vector` on. Indices have 31 bits here.
template <int kBytes, int kThreads, int kVectors>
class RegisterRow {
 public:
  using Key = UnsignedOf<kBytes>;
  static constexpr int kElements = KeyVector<kBytes>::kElements;

  // Loads first and converts afterwards, so that all loads are in flight together.
  __device__ RegisterRow(const CudaSequence<kBytes>& sequence, uint32_t first_vector)
      : first_vector_(first_vector + threadIdx.x), first_(sequence.FirstOf(0)) {
    const uint32_t readable = sequence.readable_vectors();
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      uint4 loaded = make_uint4(0, 0, 0, 0);
      if (VectorOf(v) < readable) loaded = __ldg(sequence.AddressOfVector(VectorOf(v)));
      keys_[v] = {{loaded.x, loaded.y, loaded.z, loaded.w}};
    }
    if (readable < sequence.vectors()) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (VectorOf(v) != readable) continue;
        const uint4 loaded = sequence.LoadLast(readable);
        keys_[v] = {{loaded.x, loaded.y, loaded.z, loaded.w}};
      }
    }
    const uint32_t whole_begin = first_ < 0;
    const uint32_t whole_end = (sequence.n() - first_) / kElements;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      ElementsToKeys(sequence.order(), &keys_[v]);
      const bool whole = VectorOf(v) >= whole_begin && VectorOf(v) < whole_end;
      if (!whole) sequence.ClearOutside(VectorOf(v), &keys_[v]);
    }
  }

  // Calls visit(key, index) for every element of this thread, with ascending indices.
  template <typename Visit>
  __device__ void ForEachKey(Visit&& visit) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const KeyVector<kBytes> keys = Again(keys_[v]);
      const uint32_t first = Again(IndexOf(v, 0));
#pragma unroll
      for (int e = 0; e < kElements; ++e) visit(keys[e], first + e);
    }
  }

 private:
  // Hides from the compiler that a value is unchanged: if it unpacked and widened keys and indices once for
  // all uses, they would not fit into the registers.
  static __device__ uint32_t Again(uint32_t value) {
    asm volatile("" : "+r"(value));
    return value;
  }
  static __device__ KeyVector<kBytes> Again(KeyVector<kBytes> keys) {
#pragma unroll
    for (uint32_t& word : keys.words) word = Again(word);
    return keys;
  }
  __device__ uint32_t VectorOf(int v) const { return first_vector_ + v * kThreads; }
  __device__ uint32_t IndexOf(int v, int e) const { return first_ + VectorOf(v) * kElements + e; }

  uint32_t first_vector_;  // of this thread
  int32_t first_;          // index of the sequence's first vector's first element
  KeyVector<kBytes> keys_[kVectors];
};

}  // namespace anydml
