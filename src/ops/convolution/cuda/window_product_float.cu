#include <algorithm>

#include "ops/convolution/cuda/window_product_float.cuh"

namespace anydml {
namespace {

using float_windows::ConvolveFloat;

template <uint32_t kRows, uint32_t kColumns, uint32_t kDown, uint32_t kAcross, uint32_t kWays, bool kIsAhead,
          uint32_t kSteps, uint32_t kStages, uint32_t kBlocks>
constexpr WindowTile Tile(double rate) {
  constexpr uint32_t kBytes =
      std::max(kStages * (kRows + kColumns) * float_windows::PaddedRows<kSteps>::kRowBytes,
               WindowSumsBytes<kRows, kColumns>());
  return {kRows,
          kColumns,
          kSteps,
          kRows / kDown * (kColumns / kAcross),
          kBytes,
          rate,
          ConvolveFloat<WindowProduct, kRows, kColumns, kDown, kAcross, kWays, kIsAhead, kSteps, kStages,
                        kBlocks>,
          ConvolveFloat<GeneralProduct, kRows, kColumns, kDown, kAcross, kWays, kIsAhead, kSteps, kStages,
                        kBlocks>,
          kBlocks};
}

// At least two blocks per multiprocessor: one computes while the other waits at a barrier.
const WindowTile kTiles[] = {
    Tile<96, 64, 6, 8, 2, true, 64, 2, 2>(93), Tile<128, 64, 8, 8, 1, true, 32, 3, 2>(93),
    Tile<64, 64, 4, 8, 1, false, 32, 3, 3>(76), Tile<64, 32, 4, 4, 1, false, 16, 3, 4>(57)};

}  // namespace

std::span<const WindowTile> FloatWindowTiles() { return kTiles; }

}  // namespace anydml
