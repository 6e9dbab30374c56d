// How close an implementation's results are to the reference's.
#pragma once

#include <cstdint>

namespace anydml {

// All zero: the bytes of the reference, as of integers always. Otherwise an element of a floating-point
// output is right when one of the bounds holds, or that of ops/errors.h; NaNs agree with NaNs, whatever their
// bits. Results never depend on the number of threads, and never differ from run to run.
struct Exactness {
  uint32_t float32_ulps = 0;  // units in the last place of the reference's result
  uint32_t float16_ulps = 0;
  double relative = 0;  // of the reference's magnitude
  double absolute = 0;

  constexpr bool exact() const {
    return float32_ulps == 0 && float16_ulps == 0 && relative == 0 && absolute == 0;
  }
};

}  // namespace anydml
