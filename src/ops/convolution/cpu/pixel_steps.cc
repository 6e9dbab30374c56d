#include "ops/convolution/cpu/pixel_steps.h"

#include <algorithm>

namespace anydml {
namespace {

// Writes the runs of the taps for which `is_inside` to `to`; returns their number.
template <typename IsInside>
uint32_t FindRuns(const PixelSteps::Piece& piece, const InputPixels& pixels, IsInside&& is_inside,
                  PixelTile::Run* to) {
  uint32_t count = 0;
  uint64_t skipped = 0;
  for (uint32_t tap = piece.tap; tap < piece.tap + piece.taps; ++tap) {
    if (!is_inside(tap)) {
      skipped += piece.channels;
      continue;
    }
    const uint64_t offset = pixels.TapOffset(tap) + piece.channel;
    // Taps of a row may be contiguous.
    if (count != 0 && skipped == 0 && to[count - 1].offset + to[count - 1].steps == offset) {
      to[count - 1].steps += piece.channels;
    } else {
      to[count++] = {offset, piece.channels, skipped};
    }
    skipped = 0;
  }
  return count;
}

}  // namespace

PixelSteps::PixelSteps(const ConvolutionShape& shape, uint64_t most, bool all_taps) {
  const uint64_t channels = shape.input_channels;
  const auto all = static_cast<uint32_t>(shape.Taps());
  if (all_taps) {
    const uint64_t count = (channels * all + most - 1) / most;
    uint64_t some = (channels + count - 1) / count;
    if (some > 8) some = (some + 7) / 8 * 8;
    for (uint64_t c = 0; c < channels; c += some) {
      AddPiece({.tap = 0, .taps = all, .channel = c, .channels = std::min(some, channels - c)});
    }
    return;
  }
  if (channels > most) {
    const uint64_t count = (channels + most - 1) / most;
    const uint64_t some = ((channels + count - 1) / count + 15) / 16 * 16;
    for (uint32_t tap = 0; tap < all; ++tap) {
      for (uint64_t c = 0; c < channels; c += some) {
        AddPiece({.tap = tap, .taps = 1, .channel = c, .channels = std::min(some, channels - c)});
      }
    }
    return;
  }
  const auto at_most = static_cast<uint32_t>(std::min<uint64_t>(most / channels, kMaxPieceTaps));
  const uint32_t count = (all + at_most - 1) / at_most, some = (all + count - 1) / count;
  for (uint32_t tap = 0; tap < all; tap += some) {
    AddPiece({.tap = tap, .taps = std::min(some, all - tap), .channel = 0, .channels = channels});
  }
}

void PixelSteps::AddPiece(Piece piece) {
  piece.first = pieces_.empty() ? 0 : pieces_.back().first + pieces_.back().steps;
  piece.steps = piece.taps * piece.channels;
  pieces_.push_back(piece);
}

uint64_t PixelSteps::MostSteps() const {
  uint64_t most = 0;
  for (const Piece& piece : pieces_) most = std::max(most, piece.steps);
  return most;
}

PixelSteps::Runs PixelSteps::RunsOf(const Piece& piece, const InputPixels& pixels,
                                    const OutputPixels::Class& of, PixelTile::Run* memory) const {
  const auto is_inside = [&](uint32_t tap) { return pixels.IsInside(of, tap); };
  return {memory, FindRuns(piece, pixels, is_inside, memory)};
}

}  // namespace anydml
