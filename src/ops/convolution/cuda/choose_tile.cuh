// Chooses the tiles with which a product of windows with filters ends first.
#pragma once

#include "kernel/device_traits.h"
#include "ops/convolution/cuda/patch_product.cuh"
#include "ops/convolution/cuda/product_cut.h"

namespace anydml {

// For windows or for patches.
struct ChosenTile {
  Cut cut;
  const WindowTile* windows = nullptr;
  const PatchTile* patches = nullptr;
  uint64_t pixels = 0;  // per patch
};

inline constexpr uint64_t kStaticBytes = 6 << 10;  // of shared memory, which kernels use besides

// `product`: without the number of units that can be cut. The result has no windows if none fit.
inline ChosenTile ChooseWindows(CutProblem product, uint64_t steps, bool half, uint64_t shared_bytes) {
  ChosenTile best;
  constexpr uint64_t kLeastFloats = 64;    // minimum per part
  const double worth = half ? 1.0 : 0.97;  // the estimate is no more accurate than that: larger tiles come
                                           // first
  for (const WindowTile& tile : half ? HalfWindowTiles() : FloatWindowTiles()) {
    if (tile.shared_bytes + kStaticBytes > shared_bytes) continue;
    product.parts = DivideUp(steps, tile.steps);
    product.steps_per_part = tile.steps;
    product.least_parts = half ? 4 : DivideUp(kLeastFloats, tile.steps);
    const uint64_t row_tiles = DivideUp(product.rows, tile.rows);
    const Cut cut = CutFor(product, row_tiles, tile.rows, tile.columns, tile.threads, tile.rate, tile.blocks);
    if (best.windows != nullptr && cut.cycles >= best.cut.cycles * worth) continue;
    best.cut = cut;
    best.windows = &tile;
  }
  return best;
}

// The result has no patches if none fit.
inline ChosenTile ChoosePatches(CutProblem product, const ConvolutionShape& shape, uint64_t channels,
                                uint64_t shared_bytes) {
  constexpr uint64_t kMostPixels = 1 << 10;
  ChosenTile best;
  product.parts = DivideUp(channels, kPatchChannels);
  product.steps_per_part = kPatchChannels * shape.Taps();
  product.least_parts = 1;
  for (const PatchTile& tile : HalfPatchTiles()) {
    const uint64_t pixels = PatchPixels(shape, tile.rows);
    if (pixels == 0 || pixels > tile.rows * shape.Taps() || pixels > kMostPixels) continue;
    const uint64_t row_tiles = HasTilesOfImages(shape, tile.rows)
                                   ? shape.outer[0] * DivideUp(shape.Positions(), tile.rows)
                                   : DivideUp(product.rows, tile.rows);
    const Cut cut =
        CutFor(product, row_tiles, tile.rows, tile.columns, tile.threads, tile.rate, WindowTile::kMostBlocks);
    const uint32_t bytes =
        tile.SharedBytes(static_cast<uint32_t>(pixels), static_cast<uint32_t>(cut.per_split));
    if (bytes + kStaticBytes > shared_bytes || (best.patches != nullptr && cut.cycles >= best.cut.cycles)) {
      continue;
    }
    best = {.cut = cut, .patches = &tile, .pixels = pixels};
  }
  return best;
}

}  // namespace anydml
