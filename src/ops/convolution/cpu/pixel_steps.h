// The steps of a channels-last convolution, in pieces: so many at a time that their weights stay in a cache
// while tiles of pixels use them.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/cpu/pixels.h"

namespace anydml {

class PixelSteps {
 public:
  // Whole taps, or some channels of one tap or of all.
  struct Piece {
    uint64_t first = 0, steps = 0;
    uint32_t tap, taps;
    uint64_t channel, channels;  // of each tap
  };
  static constexpr uint32_t kMaxPieceTaps = 256;

  // At most `most` steps per piece. `all_taps`: pieces have all taps of each channel, which may be more
  // steps.
  PixelSteps(const ConvolutionShape& shape, uint64_t most, bool all_taps = false);

  const std::vector<Piece>& pieces() const { return pieces_; }
  uint64_t MostSteps() const;

  struct Runs {
    const PixelTile::Run* first;
    uint32_t count;
  };
  // For pixels of the class; `memory` has room for kMaxPieceTaps.
  Runs RunsOf(const Piece& piece, const InputPixels& pixels, const OutputPixels::Class& of,
              PixelTile::Run* memory) const;

 private:
  void AddPiece(Piece piece);

  std::vector<Piece> pieces_;
};

}  // namespace anydml
