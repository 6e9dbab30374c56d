// Blocks of a cluster that write to each other's shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace anydml {

// Waits for all threads of the cluster; their earlier writes are then visible.
__device__ inline void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// The offset to add to a shared-memory address to get its counterpart in that block of the cluster: the same
// for all addresses.
__device__ inline uint32_t WindowOf(uint32_t block, const void* shared) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(SharedAddress(shared)), "r"(block));
  return there - SharedAddress(shared);
}

// In shared memory: a barrier on which threads wait for bytes that blocks of the cluster send, round after
// round. One thread initialises it and announces the number of bytes before SyncCluster, and for each further
// round after it has waited for the previous one.
class ArrivalBarrier {
 public:
  __device__ void Initialize() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(SharedAddress(&barrier_)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  __device__ void Expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier_)),
                 "r"(bytes)
                 : "memory");
  }

  // Waits for the bytes of round number `time`.
  __device__ void Wait(uint32_t time) {
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(SharedAddress(&barrier_)), "r"(time & 1)
          : "memory");
    }
  }

  // Sends 16 bytes to the counterpart of `to` in a block of the cluster, whose copy of this barrier counts
  // them.
  __device__ void Send(uint32_t window, void* to, uint4 bytes) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(
            SharedAddress(to) + window),
        "r"(SharedAddress(&barrier_) + window), "r"(bytes.x), "r"(bytes.y), "r"(bytes.z), "r"(bytes.w)
        : "memory");
  }

 private:
  uint64_t barrier_;
};

}  // namespace anydml
