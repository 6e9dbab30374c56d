// The bytes of steps at several positions, as rows. The elements of a channel that a tap uses are determined
// once for all channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ops/product/window_rows.h"

namespace anydml {

inline void PrefetchBytes(const uint8_t* from, uint64_t bytes) {
  constexpr uint64_t kLine = 64, kMost = 2048;
  for (uint64_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(from + i);
}

// `count` bytes that are `stride` apart.
inline void CopyBytes(const uint8_t* from, uint64_t stride, uint64_t count, uint8_t* to) {
  if (stride == 1) return CopyShortRow(from, count, to);
  if (stride == 2) {  // by vectors
    for (uint64_t i = 0; i < count; ++i) to[i] = from[2 * i];
    return;
  }
  for (uint64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

class WindowRuns {
 public:
  static constexpr uint64_t kSlack = 16;  // bytes after a row that may be written

  // `zero` is the value outside the input.
  WindowRuns(const ConvolutionShape& shape, const std::byte* input, std::byte zero)
      : shape_(shape), windows_(shape), input_(reinterpret_cast<const uint8_t*>(input)), zero_(zero) {
    last_ = (shape.input_channels - 1) * shape.input.channel;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      last_ += (shape.windows[d].input - 1) * shape.input.spatial[d];
    }
  }

  // Sets the positions [first, first + count), at most kPanelRowElements.
  void Begin(uint64_t first, uint64_t count) {
    windows_.Begin(first, count);
    kept_ = shape_.Taps() <= kMaxTaps;
    uint32_t loads = 0, gaps = 0;
    for (uint64_t tap = 0; tap < shape_.Taps() && kept_; ++tap) {
      begin_[tap] = {loads, gaps};
      windows_.ForStep(
          tap,
          [&](uint64_t offset, uint64_t stride, uint64_t at, uint64_t some) {
            if (loads == kMaxRuns) return void(kept_ = false);
            stride_ = stride;
            loads_[loads++] = {offset, static_cast<uint32_t>(at), static_cast<uint32_t>(some)};
          },
          [&](uint64_t at, uint64_t some) {
            if (gaps == kMaxRuns) return void(kept_ = false);
            gaps_[gaps++] = {static_cast<uint32_t>(at), static_cast<uint32_t>(some)};
          });
      begin_[tap + 1] = {loads, gaps};
    }
  }

  // `row` has room for these positions and kSlack more.
  void Load(uint64_t step, uint8_t* row) const {
    if (!kept_) {
      windows_.ForStep(
          step,
          [&](uint64_t offset, uint64_t stride, uint64_t at, uint64_t some) {
            CopyBytes(input_ + offset, stride, some, row + at);
          },
          [&](uint64_t at, uint64_t some) { std::memset(row + at, static_cast<int>(zero_), some); });
      return;
    }
    const uint64_t tap = step % shape_.Taps(), channel = step / shape_.Taps() * shape_.input.channel;
    const Begins &begin = begin_[tap], &end = begin_[tap + 1];
    // Rows of a matrix are on different pages, to which hardware prefetch does not go.
    constexpr uint64_t kAhead = 8;
    const bool prefetches = shape_.Taps() == 1 && step + kAhead < shape_.Steps();
    for (uint32_t i = begin.load; i < end.load; ++i) {
      const uint64_t offset = channel + loads_[i].offset;
      if (prefetches)
        PrefetchBytes(input_ + offset + kAhead * shape_.input.channel, loads_[i].count * stride_);
      Copy(offset, loads_[i].count, row + loads_[i].at);
    }
    for (uint32_t i = begin.gap; i < end.gap; ++i) {  // after the runs, which may write too much
      if (gaps_[i].count == 1) {                      // a call would take longer than the store
        row[gaps_[i].at] = static_cast<uint8_t>(zero_);
      } else {
        std::memset(row + gaps_[i].at, static_cast<int>(zero_), gaps_[i].count);
      }
    }
  }

 private:
  static constexpr uint64_t kMaxTaps = 64, kMaxRuns = 2048, kVector = 16;
  struct LoadRun {
    uint64_t offset;  // in the first channel
    uint32_t at, count;
  };
  struct Gap {
    uint32_t at, count;
  };
  struct Begins {
    uint32_t load, gap;
  };

  // Copies whole vectors if they are inside the input: the next run, or gap, overwrites the excess.
  void Copy(uint64_t offset, uint64_t count, uint8_t* to) const {
    const uint64_t whole = (count + kVector - 1) / kVector * kVector;
    if (stride_ != 1 || offset + whole > last_ + 1) return CopyBytes(input_ + offset, stride_, count, to);
    for (uint64_t i = 0; i < whole; i += kVector) std::memcpy(to + i, input_ + offset + i, kVector);
  }

  const ConvolutionShape& shape_;
  WindowRows windows_;
  const uint8_t* input_;
  std::byte zero_;
  uint64_t last_;  // the matrix's last byte
  uint64_t stride_ = 1;
  bool kept_ = false;  // the runs below are valid for all taps
  Begins begin_[kMaxTaps + 1];
  LoadRun loads_[kMaxRuns];
  Gap gaps_[kMaxRuns];
};

}  // namespace anydml
