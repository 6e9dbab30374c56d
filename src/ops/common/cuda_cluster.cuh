// Blocks of a cluster that write into each other's shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace anydml {

// Waits for all threads of the cluster; what they wrote can be seen then.
__device__ inline void SyncCluster() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

// In a block's memory: where its threads wait for bytes that blocks of the cluster send, one time after the
// other. A thread initializes it and says how many bytes come, before SyncCluster; each further time when it
// has waited for the time before.
class ArrivalBarrier {
 public:
  __device__ void Initialize() {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Address(&barrier_)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  __device__ void Expect(uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Address(&barrier_)), "r"(bytes)
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
          : "r"(Address(&barrier_)), "r"(time & 1)
          : "memory");
    }
  }

  // 16 bytes to where `to` is in that block; this barrier there counts them.
  __device__ void Send(uint32_t block, void* to, uint4 bytes) {
    asm volatile(
        "{ .reg .b32 to, barrier;\n"
        "mapa.shared::cluster.u32 to, %0, %2;\n"
        "mapa.shared::cluster.u32 barrier, %1, %2;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [to], {%3, %4, %5, %6}, [barrier]; }" ::
            "r"(Address(to)),
        "r"(Address(&barrier_)), "r"(block), "r"(bytes.x), "r"(bytes.y), "r"(bytes.z), "r"(bytes.w)
        : "memory");
  }

 private:
  __device__ static uint32_t Address(const void* shared) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  }

  uint64_t barrier_;
};

}  // namespace anydml
