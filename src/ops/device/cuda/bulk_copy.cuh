// Bulk copies (cp.async.bulk): one thread moves kilobytes between global and shared memory, without using
// registers. Addresses and sizes are multiples of 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace anydml {

inline constexpr uint32_t kBulkBytes = 16;

// Cache policy for data that is not used again: evicted first.
__device__ inline uint64_t EvictFirst() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// In shared memory: a barrier on which a block's threads wait for bulk loads, one after the other. The thread
// that initialises it, before a barrier of the block, also starts the loads.
class BulkBarrier {
 public:
  __device__ void Initialize() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Address(&barrier_)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  __device__ void Load(void* to, const void* from, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Address(&barrier_)), "r"(bytes)
                 : "memory");
    if (bytes == 0) return;
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(Address(to)),
        "l"(from), "r"(bytes), "r"(Address(&barrier_)), "l"(EvictFirst())
        : "memory");
  }

  // Waits for the end of load number `load`.
  __device__ void Wait(uint32_t load) {
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p;\n"
          "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(Address(&barrier_)), "r"(load & 1)
          : "memory");
    }
  }

  __device__ static uint32_t Address(const void* shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  }

 private:
  uint64_t barrier_;
};

// Called by all threads that wrote to shared memory, before the barrier that precedes BulkStore.
__device__ inline void BeforeBulkStore() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Returns when the shared memory has been read.
__device__ inline void BulkStore(void* to, const void* from, uint32_t bytes) {
  if (bytes == 0) return;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to),
               "r"(BulkBarrier::Address(from)), "r"(bytes), "l"(EvictFirst())
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace anydml
