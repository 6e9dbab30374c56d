// Blocks of a cluster that write into each other's shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace anydml {

// Waits for all threads of the cluster; what they wrote can be seen then.
__device__ inline void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// What is to be added to the address of something in shared memory to have its place in that block of the
// cluster: the same for all addresses.
__device__ inline uint32_t WindowOf(uint32_t block, const void* shared) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(SharedAddress(shared)), "r"(block));
  return there - SharedAddress(shared);
}

// In a block's memory: where its threads wait for bytes that blocks of the cluster send, one time after the
// other. A thread initializes it and says how many bytes come, before SyncCluster; each further time when it
// has waited for the time before.
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

  // For the bytes of time number `time`.
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

  // 16 bytes to where `to` is in a block of the cluster; this barrier there counts them.
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
