// FLOAT16 inputs that kernels read in units of 16 bytes although their channels are no neighbours: eight
// positions of a channel are.
#pragma once

#include "ops/convolution/problem.h"

namespace anydml {

inline constexpr uint64_t kMostElements = uint64_t{1} << 31;  // of an operand, so that 32 bits hold offsets

// Whether 31 bits hold all offsets in the input.
inline bool IsNear(const ConvolutionShape& s) {
  uint64_t last = s.input.offset;
  const auto add = [&](uint64_t size, uint64_t stride) { last += (size - 1) * stride; };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[1], s.input.outer[1]);
  add(s.input_channels, s.input.channel);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) add(s.windows[d].input, s.input.spatial[d]);
  return last < kMostElements;
}

// Whether rows of images are whole units.
inline bool HasUnitsOfRows(const ConvolutionProblem& problem) {
  constexpr uint64_t kUnit = 8;
  const ConvolutionShape& s = problem.shape;
  uint64_t elements = s.input.offset | s.windows[kMaxSpatial - 1].input;
  const auto add = [&](uint64_t size, uint64_t stride) {
    if (size > 1) elements |= stride;
  };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[1], s.input.outer[1]);
  add(s.input_channels, s.input.channel);
  for (uint32_t d = 0; d + 1 < kMaxSpatial; ++d) add(s.windows[d].input, s.input.spatial[d]);
  return problem.type == DataType::kFloat16 && s.input.spatial[kMaxSpatial - 1] == 1 &&
         elements % kUnit == 0 && IsNear(s);
}

// Whether a convolution has one tap and takes all positions, which are whole units of a channel's.
inline bool HasUnitsOfPositions(const ConvolutionProblem& problem) {
  constexpr uint64_t kUnit = 8;
  const ConvolutionShape& s = problem.shape;
  if (problem.type != DataType::kFloat16 || s.backward || !IsNear(s)) return false;
  uint64_t positions = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; positions *= s.windows[d].input) {
    const ConvolutionWindow& w = s.windows[d];
    if (w.taps != 1 || w.stride != 1 || w.start_padding != 0 || w.output != w.input || w.reached != w.output)
      return false;
    if (w.input > 1 && s.input.spatial[d] != positions) return false;
  }
  uint64_t elements = s.input.offset | positions;
  const auto add = [&](uint64_t size, uint64_t stride) {
    if (size > 1) elements |= stride;
  };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[1], s.input.outer[1]);
  add(s.input_channels, s.input.channel);
  return positions > 1 && elements % kUnit == 0;
}

}  // namespace anydml
