// Filters of one channel, of planes that have room in the first-level cache: some of them one after the
// other.
#pragma once

#include <cstdint>

namespace anydml {

// Of one dimension of all planes: at most kMostPlaneStride, and what DepthwisePlanes::padded has of it.
struct DepthwiseLine {
  uint32_t stride;
  uint32_t before;   // zeros before the input
  uint32_t inputs;   // numbers of the input that are reached
  uint32_t outputs;  // of them
};
inline constexpr uint32_t kMostPlaneStride = 2;
inline constexpr uint32_t kPlaneTileRows = 4;    // that are added up together
inline constexpr uint64_t kPlaneSlack = 2 * 64;  // two vectors of 2048 bits
inline constexpr uint64_t kMostPlaneReach = 2;   // of taps that are read where the input is

struct DepthwisePlanes {
  // Packed planes. kMostPlaneReach more numbers can be read before the first, and kPlaneSlack behind the
  // last.
  const float* input = nullptr;
  const uint16_t* halves = nullptr;  // in its place, FLOAT16, where `same` is 0
  DepthwiseLine y = {}, x = {};
  // 3 or 5: there are so many taps in either dimension, as many before as behind, and strides and dilations
  // are 1. Otherwise 0, and (or where there are no vectors) a plane is copied, with its padding: for each
  // phase of the strides, of y and then of x, to one of rows that are `pitch` apart; phases are `phase`
  // apart. Before the first of the planes these are zeros.
  uint32_t same = 0;
  float* padded = nullptr;
  uint64_t input_plane = 0, input_row = 0;  // from one to the next
  uint64_t pitch = 0, phase = 0;
  // Tap t of the output in column x of row y is padded[offsets[t] + y * pitch + x]; rows up to a multiple of
  // kPlaneTileRows, and kPlaneSlack numbers behind the last one, can be read.
  const uint64_t* offsets = nullptr;
  uint32_t taps = 0;
  const float* weights = nullptr;  // `taps` for each plane
  const float* starts = nullptr;   // what sums of a plane begin with
  float* sums = nullptr;           // one plane behind the other
  uint32_t planes = 0;
  bool clips = false;  // at the end: not below `low` nor above `high`, NaNs become the usual one
  float low = 0, high = 0;
};

// Numbers that may be written behind a plane whose rows have so many.
uint64_t DepthwiseOverrun(uint64_t columns);
void AddDepthwisePlanes(const DepthwisePlanes& planes);

}  // namespace anydml
