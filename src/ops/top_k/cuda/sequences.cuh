// What reads and writes one of a top-k problem's sequences.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/top_k/cuda/key.cuh"
#include "ops/top_k/plan.h"

namespace anydml {

// To shared memory, without occupying a register.
inline __device__ void CopyAsync(uint4* to, const uint4* from) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

// The words from `vector` on, not all of which are before the tensor's end.
inline __device__ uint4 LoadBefore(const uint4* vector, const std::byte* end) {
  const auto* at = reinterpret_cast<const uint32_t*>(vector);
  const int64_t left = reinterpret_cast<const uint32_t*>(end) - at;
  return make_uint4(at[0], left > 1 ? at[1] : 0, left > 2 ? at[2] : 0, 0);
}

template <int kBytes>
class CudaSequence {
 public:
  using Key = UnsignedOf<kBytes>;
  using Vector = KeyVector<kBytes>;
  static constexpr int kElements = Vector::kElements;

  __device__ CudaSequence(const TopKSequences& all, uint64_t number) : all_(all) {
    const auto offsets = OffsetsOf(all.nest, number);
    input_ = reinterpret_cast<const Key*>(all.input) + offsets[kInput];
    value_ = reinterpret_cast<Key*>(all.value) + offsets[kValue];
    index_ = offsets[kIndex];
    // Vectors begin at multiples of 16 bytes, not where the sequence does.
    skipped_ = reinterpret_cast<uintptr_t>(input_) % 16 / kBytes;
  }

  __device__ uint32_t n() const { return all_.n; }
  __device__ const KeyOrder& order() const { return all_.order; }
  __device__ const Key* AddressOf(uint32_t i) const { return input_ + i * all_.axis[kInput]; }
  __device__ Key Element(uint32_t i) const { return *AddressOf(i); }
  __device__ Key KeyAt(uint32_t i) const { return ElementToKey<kBytes>(all_.order, Element(i)); }

  // For contiguous sequences: vector v has the elements from FirstOf(v); the first and the last one may be
  // partly, those after them are wholly, outside the sequence.
  __device__ int64_t FirstOf(uint64_t v) const { return static_cast<int64_t>(v * kElements) - skipped_; }
  __device__ uint64_t vectors() const { return (uint64_t{all_.n} + skipped_ + kElements - 1) / kElements; }
  __device__ bool IsWhole(uint64_t v) const {
    const int64_t first = FirstOf(v);
    return first >= 0 && first + kElements <= all_.n;
  }

  // Vectors below this one can be read whole: some reach into a neighbouring sequence, none beyond the
  // tensor.
  __device__ uint64_t readable_vectors() const {
    const auto* end = reinterpret_cast<const Key*>(all_.input_end);
    return min(vectors(), static_cast<uint64_t>(end - (input_ - skipped_)) / kElements);
  }
  __device__ const uint4* AddressOfVector(uint64_t v) const {
    return reinterpret_cast<const uint4*>(input_ + FirstOf(v));
  }
  // The one vector that may remain, by words.
  __device__ uint4 LoadLast(uint64_t v) const { return LoadBefore(AddressOfVector(v), all_.input_end); }

  // Elements outside the sequence become `worst`, with an index above all others as uint32_t. With key 0 they
  // are worse than every element.
  __device__ void ReplaceOutside(uint64_t v, Vector* vector, Key worst) const {
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int64_t i = FirstOf(v) + e;
      if (i < 0 || i >= all_.n) vector->Set(e, worst);
    }
  }
  __device__ void ClearOutside(uint64_t v, Vector* keys) const { ReplaceOutside(v, keys, 0); }

  // Writes the candidate of this word to place j.
  __device__ void Store(uint32_t j, WordFor<kBytes> word) const {
    const uint32_t i = IndexOfWord(word);
    Key element;
    if (!KeyToElement<kBytes>(all_.order, static_cast<Key>(word >> 32), &element)) element = Element(i);
    value_[j * all_.axis[kValue]] = element;
    const uint64_t at = index_ + j * all_.axis[kIndex];
    if (all_.wide_index) {
      reinterpret_cast<uint64_t*>(all_.index)[at] = i;
    } else {
      reinterpret_cast<uint32_t*>(all_.index)[at] = i;
    }
  }

 private:
  const TopKSequences& all_;
  const Key* input_;
  Key* value_;
  uint64_t index_;
  int32_t skipped_;
};

}  // namespace anydml
