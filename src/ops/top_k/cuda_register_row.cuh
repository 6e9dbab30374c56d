// The keys of a contiguous sequence, or of a part of it, in the registers of a block.
#pragma once

#include "ops/top_k/cuda_sequences.cuh"

namespace anydml {

// kThreads * kVectors vectors from `first_vector` on. Indices have 31 bits here.
template <int kBytes, int kThreads, int kVectors>
class RegisterRow {
 public:
  using Word = WordFor<kBytes>;
  using Key = UnsignedOf<kBytes>;
  static constexpr int kElements = KeyVector<kBytes>::kElements;

  // Loads first and converts then, so that all loads are under way together.
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

  // visit(key, index) for every element of this thread, indices ascending.
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
  // visit(word) for every element of this thread. Not const: narrow elements, unpacked and widened
  // in one go, would not fit into the registers, so their vectors take turns in the first place.
  template <typename Visit>
  __device__ void ForEachWord(Visit&& visit) {
    if constexpr (kBytes > 2) {
      ForEachKey([&](Key key, uint32_t index) { visit(MakeWord<kBytes>(key, index)); });
    } else {
#pragma unroll 1
      for (int v = 0; v < kVectors; ++v) {
        const KeyVector<kBytes> keys = keys_[0];
#pragma unroll
        for (int e = 0; e < kElements; ++e) visit(MakeWord<kBytes>(keys[e], IndexOf(v, e)));
#pragma unroll
        for (int next = 1; next < kVectors; ++next) keys_[next - 1] = keys_[next];
        keys_[kVectors - 1] = keys;
      }
    }
  }

  // visit(key, index) for those of this thread's elements whose key is `least` or more; supposes
  // that they are few.
  template <typename Visit>
  __device__ void ForEachKeyFrom(Key least, Visit&& visit) const {
    if constexpr (kBytes > 2) {
      ForEachKey([&](Key key, uint32_t index) {
        if (key >= least) visit(key, index);
      });
    } else {
      constexpr int kBits = 8 * kBytes;
      constexpr uint32_t kEach = kBytes == 1 ? 0x01010101 : 0x00010001;
      const uint32_t leasts = kEach * least;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const uint32_t word = keys_[v].words[w];
          const uint32_t reached = kBytes == 1 ? __vcmpgeu4(word, leasts) : __vcmpgeu2(word, leasts);
          for (uint32_t hits = reached & kEach; hits != 0; hits &= hits - 1) {
            const int bit = __ffs(hits) - 1;
            visit(static_cast<Key>(word >> bit), IndexOf(v, w * 4 / kBytes) + bit / kBits);
          }
        }
      }
    }
  }

  // The best of the vectors group, group + kGroups...
  template <int kGroups>
  __device__ Word BestOf(int group) const {
    if constexpr (kBytes == 1) {  // a key and where it is are 16 bits: two at a time
      static_assert(kVectors * kElements <= 256);
      uint32_t best = 0;
#pragma unroll
      for (int v = group; v < kVectors; v += kGroups) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const uint32_t here = 0x00FD00FF - 0x00010001 * (v * kElements + w * 4);
          best = __vmaxu2(best, (keys_[v].words[w] << 8 & 0xFF00FF00) | here);
          best = __vmaxu2(best, (keys_[v].words[w] & 0xFF00FF00) | (here - 0x00010001));
        }
      }
      best = max(best >> 16, best & 0xFFFF);
      return WordAt(static_cast<Key>(best >> 8), 0xFF - (best & 0xFF));
    } else if constexpr (kBytes == 2) {  // they fit into one register
      uint32_t best = 0;
      ForEachIn<kGroups>(group,
                         [&](Key key, int at) { best = max(best, uint32_t{key} << 16 | (0xFFFF - at)); });
      return WordAt(static_cast<Key>(best >> 16), 0xFFFF - (best & 0xFFFF));
    } else {
      Key best = 0;
      int best_at = group * kElements;  // a constant in every selection
      ForEachIn<kGroups>(group, [&](Key key, int at) {
        const bool better = key > best;
        best = better ? key : best;
        best_at = better ? at : best_at;
      });
      return WordAt(best, best_at);
    }
  }
  template <int kGroups, typename Visit>
  __device__ void ForEachBest(Visit&& visit) const {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) visit(BestOf<kGroups>(group));
  }

 private:
  template <int kGroups, typename Visit>
  __device__ void ForEachIn(int group, Visit&& visit) const {
#pragma unroll
    for (int v = group; v < kVectors; v += kGroups) {
      const KeyVector<kBytes> keys = Again(keys_[v]);
#pragma unroll
      for (int e = 0; e < kElements; ++e) visit(keys[e], v * kElements + e);
    }
  }
  __device__ Word WordAt(Key key, int at) const {
    return MakeWord<kBytes>(key, IndexOf(at / kElements, at % kElements));
  }

  // Hides that a value is the same as before: unpacked and widened once for all uses, the keys and
  // indices would not fit into the registers.
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
  int32_t first_;          // element of the sequence's first vector
  KeyVector<kBytes> keys_[kVectors];
};

}  // namespace anydml
