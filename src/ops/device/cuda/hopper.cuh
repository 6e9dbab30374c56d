// Instructions of compute capability 9.0: products by four warps at once (wgmma), bulk tensor copies, by
// which one thread loads a box of a tensor into shared memory, and barriers for them. Files that use this
// header are compiled for 9.0a only: see anydml_cuda_hopper.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace anydml::hopper {

// Barriers are in shared memory and given by address.
__device__ __forceinline__ void InitializeBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Called by the threads that initialised barriers, before a barrier of the block.
__device__ __forceinline__ void ShowBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives if `it` is true; without a branch, since wgmma must not be on divergent paths.
__device__ __forceinline__ void ArriveIf(bool it, uint32_t barrier) {
  asm volatile(
      "{ .reg .pred p;\n"
      "setp.ne.u32 p, %1, 0;\n"
      "@p mbarrier.arrive.shared.b64 _, [%0]; }" ::"r"(barrier),
      "r"(static_cast<uint32_t>(it))
      : "memory");
}
// The same, and adds `bytes` to the expected bytes.
__device__ __forceinline__ void ArriveAndExpect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Waits for the end of the phase with that parity. Before the first phase, a wait for parity 1 returns at
// once.
__device__ __forceinline__ void WaitFor(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p;\n"
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

// Both count the bytes that arrive on `barrier`. Elements outside the tensor are 0.
__device__ __forceinline__ void StartBox(const CUtensorMap& tensor, const int32_t (&at)[4], uint32_t to,
                                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(&tensor), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
      : "memory");
}
__device__ __forceinline__ void StartBytes(const void* from, uint32_t bytes, uint32_t to, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Makes shared memory that threads have written visible to wgmma; a barrier of those threads must follow.
__device__ __forceinline__ void ShowToProducts() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// A barrier of the first `threads` of a block.
__device__ __forceinline__ void WaitForFirst(uint32_t threads) {
  asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

// Releases registers that this warpgroup's threads do not need, or takes more; all its warps must call it.
template <uint32_t kCount>
__device__ __forceinline__ void GiveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <uint32_t kCount>
__device__ __forceinline__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// These enclose products, whose sums are the warpgroup's registers.
__device__ __forceinline__ void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void EndProducts() {
  asm volatile(
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;" ::
          : "memory");
}

// The descriptor of a matrix in shared memory with rows of 128 bytes, whose 16-byte units are swizzled as in
// SharedRows<64>; groups of eight rows are consecutive. `address`: a multiple of 1024. Adding bytes / 16
// moves it on.
__device__ __forceinline__ uint64_t MatrixAt(uint32_t address) {
  constexpr uint64_t kRows = 1024 / 16, kExchanged = 1;
  return (address & 0x3FFFF) >> 4 | kRows << 16 | kRows << 32 | kExchanged << 62;
}

// Adds left x right to sums (64 x kColumns: a warp has 16 rows; its columns are consecutive SumTiles) for 16
// steps of k. `left` has one row per row, contiguous in k; `right` has one row per step of k. If `goes_on` is
// 0, the sums start with this product.
template <uint32_t kColumns>
struct WarpgroupProduct;

template <>
struct WarpgroupProduct<32> {
  __device__ static __forceinline__ void Add(uint64_t left, uint64_t right, uint32_t goes_on,
                                             float (&d)[16]) {
    asm volatile(
        "{ .reg .pred p;\n"
        "setp.ne.u32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "%16, %17, p, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "l"(left), "l"(right), "r"(goes_on));
  }
};

template <>
struct WarpgroupProduct<40> {
  __device__ static __forceinline__ void Add(uint64_t left, uint64_t right, uint32_t goes_on,
                                             float (&d)[20]) {
    asm volatile(
        "{ .reg .pred p;\n"
        "setp.ne.u32 p, %22, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19}, "
        "%20, %21, p, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
        : "l"(left), "l"(right), "r"(goes_on));
  }
};

template <>
struct WarpgroupProduct<48> {
  __device__ static __forceinline__ void Add(uint64_t left, uint64_t right, uint32_t goes_on,
                                             float (&d)[24]) {
    asm volatile(
        "{ .reg .pred p;\n"
        "setp.ne.u32 p, %26, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23}, "
        "%24, %25, p, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23])
        : "l"(left), "l"(right), "r"(goes_on));
  }
};

template <>
struct WarpgroupProduct<56> {
  __device__ static __forceinline__ void Add(uint64_t left, uint64_t right, uint32_t goes_on,
                                             float (&d)[28]) {
    asm volatile(
        "{ .reg .pred p;\n"
        "setp.ne.u32 p, %30, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n56k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27}, "
        "%28, %29, p, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
        : "l"(left), "l"(right), "r"(goes_on));
  }
};

template <>
struct WarpgroupProduct<64> {
  __device__ static __forceinline__ void Add(uint64_t left, uint64_t right, uint32_t goes_on,
                                             float (&d)[32]) {
    asm volatile(
        "{ .reg .pred p;\n"
        "setp.ne.u32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, p, 1, 1, 0, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
          "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(left), "l"(right), "r"(goes_on));
  }
};

}  // namespace anydml::hopper
