// FLOAT16 on tensor cores, for overlapping windows.
#include "ops/convolution/cuda/patch_kernel.cuh"

namespace anydml {
namespace {

using namespace patches;

// A warp computes kHeight x kWidth of the tile.
template <uint32_t kTileRows, uint32_t kTileColumns, uint32_t kWarps, uint32_t kWarpsDown>
class WarpProduct {
  static constexpr uint32_t kHeight = kTileRows / kWarpsDown, kWidth = kTileColumns * kWarpsDown / kWarps;
  static_assert(kHeight % 16 == 0 && kWidth % 16 == 0);

 public:
  static constexpr uint32_t kRows = kTileRows, kColumns = kTileColumns, kThreads = 32 * kWarps;

  __device__ explicit WarpProduct(const WindowTable<kRows, kColumns>& table)
      : lane_(threadIdx.x % 32),
        top_(threadIdx.x / 32 % kWarpsDown * kHeight),
        left_(threadIdx.x / 32 / kWarpsDown * kWidth) {
#pragma unroll
    for (uint32_t i = 0; i < kHeight / 16; ++i) pixels_[i] = table.windows[top_ + i * 16 + lane_ % 16].x;
  }

  __device__ static void ShowCopies() {}

  __device__ __forceinline__ void Multiply(Shared patch, uint32_t moved, Shared filters) {
#pragma unroll
    for (uint32_t k = 0; k < kSteps / 16; ++k) {
      LeftTile rows[kHeight / 16];
#pragma unroll
      for (uint32_t i = 0; i < kHeight / 16; ++i) {
        LoadMatrices(patch.At(pixels_[i] + moved, k * 2 + lane_ / 16), rows[i].registers);
      }
#pragma unroll
      for (uint32_t j = 0; j < kWidth / 8; j += 2) {
        uint32_t right[4];
        LoadMatrices(filters.At(left_ + j * 8 + lane_ / 16 * 8 + lane_ % 8, k * 2 + lane_ / 8 % 2), right);
#pragma unroll
        for (uint32_t i = 0; i < kHeight / 16; ++i) {
          anydml::Multiply(rows[i], right[0], right[1], &sums_[i][j]);
          anydml::Multiply(rows[i], right[2], right[3], &sums_[i][j + 1]);
        }
      }
    }
  }

  template <class Put>
  __device__ __forceinline__ void ForEach(const Put& put) const {
#pragma unroll
    for (uint32_t i = 0; i < kHeight / 16; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kWidth / 8; ++j) {
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) {
          put(top_ + i * 16 + lane_ / 4 + e / 2 * 8, left_ + j * 8 + lane_ % 4 * 2 + e % 2, sums_[i][j].x[e]);
        }
      }
    }
  }

 private:
  const uint32_t lane_, top_, left_;
  uint32_t pixels_[kHeight / 16];
  SumTile sums_[kHeight / 16][kWidth / 8] = {};
};

template <uint32_t kRows, uint32_t kColumns, uint32_t kWarps, uint32_t kWarpsDown, uint32_t kBlocks>
__global__ void __launch_bounds__(32 * kWarps, kBlocks)
    ConvolvePatches(const __grid_constant__ PatchProduct q) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ WindowTable<kRows, kColumns> table;
  RunPatches<WarpProduct<kRows, kColumns, kWarps, kWarpsDown>>(q, &table, shared);
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kWarps, uint32_t kWarpsDown, uint32_t kBlocks>
constexpr PatchTile Tile(double rate) {
  return {kRows,
          kColumns,
          32 * kWarps,
          kStages * kColumns * kRowBytes,
          WindowSumsBytes<kRows, kColumns>(),
          rate,
          ConvolvePatches<kRows, kColumns, kWarps, kWarpsDown, kBlocks>};
}

// L2 delivers about 20 bytes per cycle to a multiprocessor, which limits small tiles.
const PatchTile kTiles[] = {Tile<128, 128, 4, 2, 2>(900), Tile<128, 128, 8, 2, 1>(850),
                            Tile<256, 64, 4, 4, 2>(900), Tile<128, 64, 4, 2, 3>(750),
                            Tile<64, 64, 4, 2, 4>(480)};

}  // namespace

std::span<const PatchTile> HalfPatchTiles() { return kTiles; }

}  // namespace anydml
