// FLOAT16 on the tensor cores of compute capability 9.0, windows that overlap: four warps multiply together,
// and take filters from shared memory by themselves. Compiled for sm_90a; elsewhere it is never chosen.
#include "ops/convolution/cuda/patch_kernel.cuh"

namespace anydml {
namespace {

using namespace patches;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Adds left x right to sums: `left` is a warp's 16 of 64 rows, `right` describes 16 steps of all columns.
__device__ __forceinline__ void MultiplyGroup(const LeftTile& left, uint64_t right, SumTile (&s)[8]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
      "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
      : "+f"(s[0].x[0]), "+f"(s[0].x[1]), "+f"(s[0].x[2]), "+f"(s[0].x[3]), "+f"(s[1].x[0]), "+f"(s[1].x[1]),
        "+f"(s[1].x[2]), "+f"(s[1].x[3]), "+f"(s[2].x[0]), "+f"(s[2].x[1]), "+f"(s[2].x[2]), "+f"(s[2].x[3]),
        "+f"(s[3].x[0]), "+f"(s[3].x[1]), "+f"(s[3].x[2]), "+f"(s[3].x[3]), "+f"(s[4].x[0]), "+f"(s[4].x[1]),
        "+f"(s[4].x[2]), "+f"(s[4].x[3]), "+f"(s[5].x[0]), "+f"(s[5].x[1]), "+f"(s[5].x[2]), "+f"(s[5].x[3]),
        "+f"(s[6].x[0]), "+f"(s[6].x[1]), "+f"(s[6].x[2]), "+f"(s[6].x[3]), "+f"(s[7].x[0]), "+f"(s[7].x[1]),
        "+f"(s[7].x[2]), "+f"(s[7].x[3])
      : "r"(left.registers[0]), "r"(left.registers[1]), "r"(left.registers[2]), "r"(left.registers[3]),
        "l"(right));
}
__device__ __forceinline__ void MultiplyGroup(const LeftTile& left, uint64_t right, SumTile (&s)[16]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
      "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
      "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, 1, "
      "0;"
      : "+f"(s[0].x[0]), "+f"(s[0].x[1]), "+f"(s[0].x[2]), "+f"(s[0].x[3]), "+f"(s[1].x[0]), "+f"(s[1].x[1]),
        "+f"(s[1].x[2]), "+f"(s[1].x[3]), "+f"(s[2].x[0]), "+f"(s[2].x[1]), "+f"(s[2].x[2]), "+f"(s[2].x[3]),
        "+f"(s[3].x[0]), "+f"(s[3].x[1]), "+f"(s[3].x[2]), "+f"(s[3].x[3]), "+f"(s[4].x[0]), "+f"(s[4].x[1]),
        "+f"(s[4].x[2]), "+f"(s[4].x[3]), "+f"(s[5].x[0]), "+f"(s[5].x[1]), "+f"(s[5].x[2]), "+f"(s[5].x[3]),
        "+f"(s[6].x[0]), "+f"(s[6].x[1]), "+f"(s[6].x[2]), "+f"(s[6].x[3]), "+f"(s[7].x[0]), "+f"(s[7].x[1]),
        "+f"(s[7].x[2]), "+f"(s[7].x[3]), "+f"(s[8].x[0]), "+f"(s[8].x[1]), "+f"(s[8].x[2]), "+f"(s[8].x[3]),
        "+f"(s[9].x[0]), "+f"(s[9].x[1]), "+f"(s[9].x[2]), "+f"(s[9].x[3]), "+f"(s[10].x[0]),
        "+f"(s[10].x[1]), "+f"(s[10].x[2]), "+f"(s[10].x[3]), "+f"(s[11].x[0]), "+f"(s[11].x[1]),
        "+f"(s[11].x[2]), "+f"(s[11].x[3]), "+f"(s[12].x[0]), "+f"(s[12].x[1]), "+f"(s[12].x[2]),
        "+f"(s[12].x[3]), "+f"(s[13].x[0]), "+f"(s[13].x[1]), "+f"(s[13].x[2]), "+f"(s[13].x[3]),
        "+f"(s[14].x[0]), "+f"(s[14].x[1]), "+f"(s[14].x[2]), "+f"(s[14].x[3]), "+f"(s[15].x[0]),
        "+f"(s[15].x[1]), "+f"(s[15].x[2]), "+f"(s[15].x[3])
      : "r"(left.registers[0]), "r"(left.registers[1]), "r"(left.registers[2]), "r"(left.registers[3]),
        "l"(right));
}

// Rows of 128 bytes, in groups of eight, units in the order of SharedRows.
__device__ __forceinline__ uint64_t DescribeRows(uint32_t address) {
  constexpr uint64_t kGroupBytes = 1024, kOrder = 1;
  return kOrder << 62 | (kGroupBytes >> 4) << 32 | uint64_t{1} << 16 | (address & 0x3FFFF) >> 4;
}

// Four warps have kBlocks times 64 rows, and all columns.
template <uint32_t kTileRows, uint32_t kTileColumns, uint32_t kWarps>
class GroupProduct {
  static constexpr uint32_t kBlocks = kTileRows / (kWarps / 4) / 64;
  static_assert(kBlocks * (kWarps / 4) * 64 == kTileRows);

 public:
  static constexpr uint32_t kRows = kTileRows, kColumns = kTileColumns, kThreads = 32 * kWarps;

  __device__ explicit GroupProduct(const WindowTable<kRows, kColumns>& table)
      : lane_(threadIdx.x % 32), top_(threadIdx.x / 128 * kBlocks * 64 + threadIdx.x / 32 % 4 * 16) {
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) pixels_[b] = table.windows[top_ + b * 64 + lane_ % 16].x;
  }

  // What was copied is read past the threads' own view of shared memory.
  __device__ static void ShowCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

  __device__ __forceinline__ void Multiply(Shared patch, uint32_t moved, Shared filters) {
    LeftTile rows[kBlocks][kSteps / 16];
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma unroll
      for (uint32_t k = 0; k < kSteps / 16; ++k) {
        LoadMatrices(patch.At(pixels_[b] + moved, k * 2 + lane_ / 16), rows[b][k].registers);
      }
    }
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (uint32_t k = 0; k < kSteps / 16; ++k) {
#pragma unroll
      for (uint32_t b = 0; b < kBlocks; ++b) {
        MultiplyGroup(rows[b][k], DescribeRows(filters.address + k * 32), sums_[b]);
      }
    }
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }

  template <class Put>
  __device__ __forceinline__ void ForEach(const Put& put) const {
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma unroll
      for (uint32_t j = 0; j < kColumns / 8; ++j) {
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) {
          put(top_ + b * 64 + lane_ / 4 + e / 2 * 8, j * 8 + lane_ % 4 * 2 + e % 2, sums_[b][j].x[e]);
        }
      }
    }
  }

 private:
  const uint32_t lane_, top_;
  uint32_t pixels_[kBlocks];
  SumTile sums_[kBlocks][kColumns / 8] = {};
};
#endif

template <uint32_t kRows, uint32_t kColumns, uint32_t kWarps, uint32_t kBlocks>
__global__ void __launch_bounds__(32 * kWarps, kBlocks)
    ConvolvePatchesByGroups(const __grid_constant__ PatchProduct q) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ WindowTable<kRows, kColumns> table;
  RunPatches<GroupProduct<kRows, kColumns, kWarps>>(q, &table, shared);
#endif
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kWarps, uint32_t kBlocks>
constexpr PatchTile Tile(double rate) {
  return {kRows,
          kColumns,
          32 * kWarps,
          kStages * kColumns * kRowBytes,
          WindowSumsBytes<kRows, kColumns>(),
          rate,
          ConvolvePatchesByGroups<kRows, kColumns, kWarps, kBlocks>};
}

const PatchTile kTiles[] = {Tile<128, 128, 8, 1>(1200), Tile<256, 64, 8, 1>(1200), Tile<128, 64, 8, 2>(900),
                            Tile<64, 64, 4, 3>(500), Tile<64, 128, 4, 2>(750)};

}  // namespace

std::span<const PatchTile> HopperPatchTiles() { return kTiles; }

}  // namespace anydml
