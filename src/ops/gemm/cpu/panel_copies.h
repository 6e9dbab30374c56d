// Copies into panels by vectors that compilers may not use on their own.
#pragma once

#include <cstdint>

namespace anydml {

// Null where what compilers do is as good.
struct PanelCopies {
  // `count` neighbours of every step, from `from + offsets[step]`. Steps of the panel are `width` apart.
  void (*steps)(const float* from, const uint64_t* offsets, uint64_t steps, uint32_t count, uint32_t width,
                float* to) = nullptr;
  // `count` neighbours of every step, which are `stride` apart in memory.
  void (*rows)(const float* from, uint64_t stride, uint64_t steps, uint32_t count, uint32_t width,
               float* to) = nullptr;
  // The same of FLOAT16, which become FLOAT32.
  void (*half_rows)(const uint16_t* from, uint64_t stride, uint64_t steps, uint32_t count, uint32_t width,
                    float* to) = nullptr;
};

const PanelCopies& FindPanelCopies();

}  // namespace anydml
