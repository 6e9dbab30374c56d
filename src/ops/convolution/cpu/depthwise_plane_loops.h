// Filters of one channel, on planes that fit into L1, several of them one after the other.
#pragma once

#include <cstdint>

namespace anydml {

// One dimension of all planes: the stride is at most kMostPlaneStride, and the numbers are those of
// DepthwisePlanes::padded.
struct DepthwiseLine {
  uint32_t stride;
  uint32_t before;   // zeros before the input
  uint32_t inputs;   // input numbers in use
  uint32_t outputs;  // number of outputs
};
inline constexpr uint32_t kMostPlaneStride = 2;
inline constexpr uint32_t kPlaneTileRows = 4;    // rows that are summed together
inline constexpr uint64_t kPlaneSlack = 2 * 64;  // two vectors of 2048 bits
inline constexpr uint64_t kMostPlaneReach = 2;   // reach of taps for which the input is read in place

struct DepthwisePlanes {
  // Packed planes. kMostPlaneReach more numbers are readable before the first, and kPlaneSlack after the
  // last.
  const float* input = nullptr;
  const uint16_t* halves = nullptr;  // used instead if it is FLOAT16 and `same` is 0
  DepthwiseLine y = {}, x = {};
  // 3 or 5: the number of taps in both dimensions, centred, with strides and dilations of 1. Otherwise 0, and
  // then (or without vectors) a plane is copied with its padding: for each phase of the strides, of y and
  // then of x, to a plane with rows `pitch` apart; phases are `phase` apart. The space before the first plane
  // must be zero.
  uint32_t same = 0;
  float* padded = nullptr;
  uint64_t input_plane = 0, input_row = 0;  // strides of planes and of rows
  uint64_t pitch = 0, phase = 0;
  // Tap t of the output in column x of row y is padded[offsets[t] + y * pitch + x]; rows up to a multiple of
  // kPlaneTileRows, and kPlaneSlack numbers after the last one, are readable.
  const uint64_t* offsets = nullptr;
  uint32_t taps = 0;
  const float* weights = nullptr;  // `taps` per plane
  const float* starts = nullptr;   // initial value of each plane's sums
  float* sums = nullptr;           // consecutive planes
  uint32_t planes = 0;
  bool clips = false;  // clamp the results to [low, high] and make NaNs canonical
  float low = 0, high = 0;
};

// How many numbers may be written after a plane with rows of this length.
uint64_t DepthwiseOverrun(uint64_t columns);
void AddDepthwisePlanes(const DepthwisePlanes& planes);

}  // namespace anydml
