// FLOAT16 on tensor cores.
#include <algorithm>

#include "ops/convolution/cuda/store_sums.cuh"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 128, kWarps = 4, kStages = 3;
constexpr uint32_t kSteps = 64;
using Shared = SharedRows<kSteps>;

// A warp computes kHeight x kWidth of the tile.
template <class Product, uint32_t kRows, uint32_t kColumns, uint32_t kWarpsDown, uint32_t kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) ConvolveHalf(const __grid_constant__ Product p) {
  constexpr uint32_t kHeight = kRows / kWarpsDown, kWidth = kColumns * kWarpsDown / kWarps;
  static_assert(kHeight % 16 == 0 && kWidth % 16 == 0);
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ TableOf<Product, kRows, kColumns> table;
  const WindowPlace place(p, kRows, kColumns);
  FillTable<kRows, kColumns>(p, place, &table);
  __syncthreads();
  WaitForPrevious();
  const ColumnNumbers numbers = NumbersOf<__half, kColumns>(p, place);

  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t top = warp % kWarpsDown * kHeight, left = warp / kWarpsDown * kWidth;
  SumTile sums[kHeight / 16][kWidth / 8] = {};
  ForWindowTiles<__half, Shared, kRows, kColumns, kThreads, kStages>(
      p, place, table.windows, static_cast<uint32_t>(__cvta_generic_to_shared(shared)),
      [&](Shared windows, Shared filters) {
#pragma unroll
        for (uint32_t k = 0; k < kSteps / 16; ++k) {
          LeftTile rows[kHeight / 16];
#pragma unroll
          for (uint32_t i = 0; i < kHeight / 16; ++i) {
            LoadMatrices(windows.At(top + i * 16 + lane % 16, k * 2 + lane / 16), rows[i].registers);
          }
#pragma unroll
          for (uint32_t j = 0; j < kWidth / 8; j += 2) {
            uint32_t right[4];
            LoadMatrices(filters.At(left + j * 8 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2), right);
#pragma unroll
            for (uint32_t i = 0; i < kHeight / 16; ++i) {
              Multiply(rows[i], right[0], right[1], &sums[i][j]);
              Multiply(rows[i], right[2], right[3], &sums[i][j + 1]);
            }
          }
        }
      });
  LetNextStart();
  StoreSums<kRows, kColumns, kThreads>(p, place, numbers, &table, shared, [&](const auto& put) {
#pragma unroll
    for (uint32_t i = 0; i < kHeight / 16; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kWidth / 8; ++j) {
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) {
          put(top + i * 16 + lane / 4 + e / 2 * 8, left + j * 8 + lane % 4 * 2 + e % 2, sums[i][j].x[e]);
        }
      }
    }
  });
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kWarpsDown, uint32_t kBlocks>
constexpr WindowTile Tile(double rate) {
  constexpr uint32_t kBytes =
      std::max(kStages * (kRows + kColumns) * kSteps * 2, WindowSumsBytes<kRows, kColumns>());
  return {kRows,
          kColumns,
          kSteps,
          kThreads,
          kBytes,
          rate,
          ConvolveHalf<WindowProduct, kRows, kColumns, kWarpsDown, kBlocks>,
          ConvolveHalf<GeneralProduct, kRows, kColumns, kWarpsDown, kBlocks>};
}

// L2 delivers about 20 bytes per cycle to a multiprocessor, which limits all of them.
const WindowTile kTiles[] = {Tile<128, 128, 2, 2>(640), Tile<128, 64, 2, 3>(430), Tile<64, 64, 2, 3>(320)};

}  // namespace

std::span<const WindowTile> HalfWindowTiles() { return kTiles; }

}  // namespace anydml
