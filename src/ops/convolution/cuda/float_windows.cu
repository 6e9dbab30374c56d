// FLOAT32: threads multiply.
#include <algorithm>

#include "ops/convolution/cuda/window_sums.cuh"

namespace anydml {
namespace {

constexpr uint32_t kStages = 3;
constexpr uint32_t kSteps = 16;

// Rows of kSteps numbers, two of them in a line of all banks: the same unit of eight rows in a row is in
// different banks.
struct Shared {
  static constexpr uint32_t kUnits = kSteps / 4;
  uint32_t address;

  __device__ uint32_t At(uint32_t row, uint32_t unit) const {
    return address + row * (kSteps * 4) + ((unit ^ (row / 2 % 4)) * 16);
  }
};

__device__ __forceinline__ float4 Load(uint32_t address) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// A thread has kDown x kAcross sums, which are as far apart as there are threads in that direction. A warp
// is 8 threads down and 4 across.
template <uint32_t kRows, uint32_t kColumns, uint32_t kDown, uint32_t kAcross, uint32_t kBlocks>
__global__ void __launch_bounds__(kRows / kDown * (kColumns / kAcross), kBlocks)
    ConvolveFloat(const __grid_constant__ WindowProduct p) {
  constexpr uint32_t kHigh = kRows / kDown, kWide = kColumns / kAcross, kThreads = kHigh * kWide;
  static_assert(kHigh % 8 == 0 && kWide % 4 == 0);
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ WindowTable<kRows, kColumns> table;
  const WindowPlace place(p, kRows, kColumns);
  FillTable(p, place, &table);
  __syncthreads();
  WaitForPrevious();
  const ColumnNumbers numbers = NumbersOf<float, kColumns>(p, place);

  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // In a half of the warp, lanes that differ in the last bit alone have the same rows, those that differ in
  // the one before it the same columns: then a load of 16 bytes takes two turns instead of four.
  const uint32_t top = warp % (kHigh / 8) * 8 + lane / 8 * 2 + lane / 2 % 2,
                 left = warp / (kHigh / 8) * 4 + lane / 4 % 2 * 2 + lane % 2;
  float sums[kDown][kAcross] = {};
  ForWindowTiles<float, Shared, kRows, kColumns, kThreads, kStages>(
      p, place, table.windows, static_cast<uint32_t>(__cvta_generic_to_shared(shared)),
      [&](Shared windows, Shared filters) {
#pragma unroll
        for (uint32_t unit = 0; unit < Shared::kUnits; ++unit) {
          float4 rows[kDown];
#pragma unroll
          for (uint32_t i = 0; i < kDown; ++i) rows[i] = Load(windows.At(top + i * kHigh, unit));
#pragma unroll
          for (uint32_t j = 0; j < kAcross; ++j) {
            const float4 column = Load(filters.At(left + j * kWide, unit));
#pragma unroll
            for (uint32_t i = 0; i < kDown; ++i) sums[i][j] = __fmaf_rn(rows[i].x, column.x, sums[i][j]);
#pragma unroll
            for (uint32_t i = 0; i < kDown; ++i) sums[i][j] = __fmaf_rn(rows[i].y, column.y, sums[i][j]);
#pragma unroll
            for (uint32_t i = 0; i < kDown; ++i) sums[i][j] = __fmaf_rn(rows[i].z, column.z, sums[i][j]);
#pragma unroll
            for (uint32_t i = 0; i < kDown; ++i) sums[i][j] = __fmaf_rn(rows[i].w, column.w, sums[i][j]);
          }
        }
      });
  LetNextStart();
  StoreSums<kRows, kColumns, kThreads>(p, place, numbers, &table, shared, [&](const auto& put) {
#pragma unroll
    for (uint32_t i = 0; i < kDown; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kAcross; ++j) put(top + i * kHigh, left + j * kWide, sums[i][j]);
    }
  });
}

template <uint32_t kRows, uint32_t kColumns, uint32_t kDown, uint32_t kAcross, uint32_t kBlocks>
constexpr WindowTile Tile(double rate) {
  constexpr uint32_t kBytes =
      std::max(kStages * (kRows + kColumns) * kSteps * 4, WindowSumsBytes<kRows, kColumns>());
  return {kRows,
          kColumns,
          kSteps,
          kRows / kDown * (kColumns / kAcross),
          kBytes,
          rate,
          ConvolveFloat<kRows, kColumns, kDown, kAcross, kBlocks>};
}

const WindowTile kTiles[] = {Tile<128, 128, 8, 8, 2>(100), Tile<128, 64, 8, 8, 3>(95),
                             Tile<64, 64, 4, 8, 4>(75), Tile<64, 32, 4, 4, 4>(60)};

}  // namespace

std::span<const WindowTile> FloatWindowTiles() { return kTiles; }

}  // namespace anydml
