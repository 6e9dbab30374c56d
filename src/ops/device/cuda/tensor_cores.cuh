// Tiles of FLOAT16 in shared memory and the tensor-core instructions that multiply them: a warp has 16 rows.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace anydml {

// A 16 x 16 tile of the left factor in the instruction's layout: registers of rows lane / 4 and lane / 4 + 8.
struct LeftTile {
  uint32_t registers[4];
};

// A 16 x 8 tile of sums: columns lane % 4 * 2 and the next one, of rows lane / 4 (elements 0 and 1) and lane
// / 4 + 8.
struct SumTile {
  float x[4];
};

// Adds left x right to sums; `right` is 16 x 8.
__device__ __forceinline__ void Multiply(const LeftTile& left, uint32_t right0, uint32_t right1,
                                         SumTile* sums) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums->x[0]), "+f"(sums->x[1]), "+f"(sums->x[2]), "+f"(sums->x[3])
      : "r"(left.registers[0]), "r"(left.registers[1]), "r"(left.registers[2]), "r"(left.registers[3]),
        "r"(right0), "r"(right1));
}

// Loads four matrices of 8 x 8; each lane's address is that of a row: lanes 0 to 7 give those of the first
// matrix.
__device__ __forceinline__ void LoadMatrices(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void LoadTransposed(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// Starts to copy the first `bytes` of a 16-byte unit to shared memory; the rest becomes zero.
__device__ __forceinline__ void StartCopyOf(uint32_t bytes, uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
}
// Starts to copy 16 bytes to shared memory, or zero-fills them if `exists` is false.
__device__ __forceinline__ void StartCopy(uint32_t to, const void* from, bool exists) {
  StartCopyOf(exists ? 16 : 0, to, from);
}
// Waits for all copies of this thread.
__device__ __forceinline__ void EndCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// Makes the copies since the last mark a group.
__device__ __forceinline__ void MarkCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all of this thread's copies except the last kLater groups.
template <uint32_t kLater>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
}

// Rows of kColumns halves in shared memory, swizzled: the 16-byte units in the same column of eight rows are
// in different banks.
template <uint32_t kColumns>
struct SharedRows {
  static constexpr uint32_t kUnits = kColumns / 8;
  uint32_t address;

  __device__ uint32_t At(uint32_t row, uint32_t unit) const {
    return address + row * (kColumns * 2) + ((unit ^ (row % 8)) * 16);
  }
};

}  // namespace anydml
