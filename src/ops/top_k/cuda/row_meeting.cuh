// Communication between blocks that share a row: the bounds that they publish, their barriers, and the words
// that they have collected.
#pragma once

#include <cooperative_groups.h>

#include <cstddef>

#include "ops/top_k/cuda/select.cuh"

namespace anydml {

// In the temporary resource. All blocks of the grid are resident at the same time. One thread of a block
// calls these functions, except those for whole blocks.
template <int kBytes>
class RowMeeting {
 public:
  using Word = WordFor<kBytes>;
  // What each block publishes: a bound from its first stages, one from everything that it has read, and the
  // bound that it has used.
  enum Subject { kFirst, kLast, kOwn, kSubjects };

  // The memory for one row; all blocks together collect at most `room` words.
  static __host__ __device__ uint64_t Bytes(uint32_t shares, uint64_t room) {
    const uint64_t bytes = sizeof(Counters) + (uint64_t{shares} * kSubjects + room) * sizeof(Word);
    return (bytes + alignof(Counters) - 1) / alignof(Counters) * alignof(Counters);
  }

  __device__ RowMeeting(std::byte* at, uint32_t share, uint32_t shares)
      : counters_(reinterpret_cast<Counters*>(at)), share_(share), shares_(shares) {}

  __device__ uint32_t share() const { return share_; }
  __device__ uint32_t shares() const { return shares_; }

  // Clears the counters, before the first barrier.
  __device__ void Open() const {
    if (share_ == 0) *counters_ = {0, 0, 0, 0};
  }

  __device__ void Publish(Subject subject, Word word) const { words()[subject * shares_ + share_] = word; }

  // Barriers, for whole blocks: of the blocks of all rows, and of those of this row.
  __device__ void WaitForAllRows() const { cooperative_groups::this_grid().sync(); }
  __device__ void Wait() const {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(&counters_->arrived, 1);
      while (*const_cast<volatile uint32_t*>(&counters_->arrived) < shares_) {
      }
      __threadfence();
    }
    __syncthreads();
  }

  // For whole blocks: the worst and the best word that was published before the last barrier.
  template <typename Select>
  __device__ WordRange<Word> RangeOfPublished(Subject subject, Select* select) const {
    return select->RangeOf([&](auto&& visit) {
      for (uint32_t share = threadIdx.x; share < shares_; share += blockDim.x)
        visit(Published(subject, share));
    });
  }

  // What all blocks have collected.
  __device__ Word* collected() const { return words() + kSubjects * shares_; }
  __device__ uint32_t count() const { return __ldcg(&counters_->collected); }
  __device__ uint32_t Reserve(uint32_t count) const { return atomicAdd(&counters_->collected, count); }

  // For whole blocks: true in the last one to leave, which sees all writes of the others.
  __device__ bool Leave() const {
    __threadfence();
    __syncthreads();
    const bool last = threadIdx.x == 0 && atomicAdd(&counters_->left, 1) == shares_ - 1;
    const bool is_last = __syncthreads_or(last);
    if (is_last) __threadfence();
    return is_last;
  }

  // For the kernel that runs next.
  __device__ void Fail() const { counters_->failed = 1; }
  __device__ bool failed() const { return counters_->failed != 0; }

 private:
  struct alignas(16) Counters {
    uint32_t collected;
    uint32_t arrived;  // blocks
    uint32_t left;     // blocks
    uint32_t failed;
  };

  __device__ Word* words() const { return reinterpret_cast<Word*>(counters_ + 1); }

  __device__ Word Published(Subject subject, uint32_t share) const {
    const Word* word = words() + subject * shares_ + share;
    if constexpr (sizeof(Word) == 8) {
      return __ldcg(reinterpret_cast<const unsigned long long*>(word));
    } else {
      const ulonglong2 halves = __ldcg(reinterpret_cast<const ulonglong2*>(word));
      return Word{halves.y} << 64 | halves.x;
    }
  }

  Counters* counters_;
  uint32_t share_;
  uint32_t shares_;
};

}  // namespace anydml
