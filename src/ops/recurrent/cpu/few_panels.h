// Up to four rows times consecutive panels of columns: memory is read sequentially, which is faster than
// reading several rows of a matrix at a time.
#pragma once

#include <cstdint>

namespace anydml {

inline constexpr uint64_t kMostFewRows = 4;
inline constexpr uint32_t kMaxFewColumns = 128;

struct FewPanels {
  uint32_t columns;  // per panel
  // to[r * columns + c] = the sum over `steps` of a[r * steps + s] * panel[s * columns + c].
  void (*run)(const float* a, uint64_t rows, const float* panel, uint64_t steps, float* to);
};

// For this processor.
FewPanels FindFewPanels();

}  // namespace anydml
