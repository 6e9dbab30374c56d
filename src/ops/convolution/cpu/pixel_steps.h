// The steps of a convolution whose channels are neighbours, some at a time: so many that their weights stay
// in a cache while tiles of pixels take their turns.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/cpu/pixels.h"

namespace anydml {

class PixelSteps {
 public:
  // Whole taps, or some channels of one, or of all.
  struct Piece {
    uint64_t first = 0, steps = 0;
    uint32_t tap, taps;
    uint64_t channel, channels;  // of each tap
  };
  static constexpr uint32_t kMaxPieceTaps = 256;

  // At most `most` steps at a time. `all_taps`: of each channel, of which there may be more steps then.
  PixelSteps(const ConvolutionShape& shape, uint64_t most, bool all_taps = false);

  const std::vector<Piece>& pieces() const { return pieces_; }
  uint64_t MostSteps() const;

  struct Runs {
    const PixelTile::Run* first;
    uint32_t count;
  };
  // Of pixels of the class; `memory` has room for kMaxPieceTaps.
  Runs RunsOf(const Piece& piece, const InputPixels& pixels, const OutputPixels::Class& of,
              PixelTile::Run* memory) const;

 private:
  void AddPiece(Piece piece);

  std::vector<Piece> pieces_;
};

}  // namespace anydml
