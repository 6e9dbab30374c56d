// Many short rows in the shared memory of a block.
#pragma once

#include "ops/top_k/cuda/key.cuh"

namespace anydml {

// Rows in shared memory, padded to whole vectors; the vectors of a row are permuted so that lanes which read
// the same vector of their rows have no bank conflicts.
template <int kBytes>
class TopKSharedRows {
 public:
  static constexpr int kElements = KeyVector<kBytes>::kElements;

  __device__ TopKSharedRows(uint4* vectors, uint32_t n)
      : vectors_(vectors), count_((n + kElements - 1) / kElements), cycle_(min(count_ & -count_, 8u)) {}

  __device__ uint32_t vectors_per_row() const { return count_; }
  __device__ uint4& Vector(uint32_t row, uint32_t v) const {
    return vectors_[row * count_ + (v ^ TurnOf(row))];
  }
  __device__ UnsignedOf<kBytes>& Element(uint32_t row, uint32_t i) const {
    return reinterpret_cast<UnsignedOf<kBytes>*>(&Vector(row, i / kElements))[i % kElements];
  }

 private:
  // Of 8 lanes in turn, 8 / cycle_ differ anyway.
  __device__ uint32_t TurnOf(uint32_t row) const { return row * cycle_ / 8 % cycle_; }

  uint4* vectors_;
  uint32_t count_;
  uint32_t cycle_;
};

// Divides numbers below 2^14 by one up to 2^7, exactly.
class Divisor {
 public:
  __device__ explicit Divisor(uint32_t divisor) : reciprocal_((1u << 24) / divisor + 1) {}
  __device__ uint32_t Divide(uint32_t number) const { return __umulhi(number << 8, reciprocal_); }

 private:
  uint32_t reciprocal_;
};

// Fills the rows of this block from consecutive rows of whole vectors.
template <int kThreads, int kBytes>
__device__ void LoadContiguous(const uint4* from, uint32_t rows, const TopKSharedRows<kBytes>& to) {
  constexpr int kLoads = 8;
  const uint32_t count = rows * to.vectors_per_row();
  const Divisor by_row(to.vectors_per_row());
  for (uint32_t first = threadIdx.x; first < count; first += kLoads * kThreads) {
    uint4 loaded[kLoads];
#pragma unroll
    for (int l = 0; l < kLoads; ++l) {
      if (first + l * kThreads < count) loaded[l] = __ldg(from + first + l * kThreads);
    }
#pragma unroll
    for (int l = 0; l < kLoads; ++l) {
      const uint32_t i = first + l * kThreads;
      const uint32_t row = by_row.Divide(i);
      if (i < count) to.Vector(row, i - row * to.vectors_per_row()) = loaded[l];
    }
  }
}

// The same from any rows, element by element.
template <int kThreads, int kBytes>
__device__ void LoadElements(const UnsignedOf<kBytes>* from, uint64_t pitch, uint32_t n, uint32_t rows,
                             const TopKSharedRows<kBytes>& to) {
  const Divisor by_row(n);
#pragma unroll 8
  for (uint32_t i = threadIdx.x; i < rows * n; i += kThreads) {
    const uint32_t row = by_row.Divide(i);
    to.Element(row, i - row * n) = __ldg(from + row * pitch + (i - row * n));
  }
}

}  // namespace anydml
