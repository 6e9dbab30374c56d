// Copies into panels with vector instructions that the baseline target lacks.
#pragma once

#include <cstdint>

namespace anydml {

// Members are null if the compiler's code is as good.
struct PanelCopies {
  // Copies `count` contiguous elements per step, from `from + offsets[step]`. Steps of the panel are `width`
  // apart.
  void (*steps)(const float* from, const uint64_t* offsets, uint64_t steps, uint32_t count, uint32_t width,
                float* to) = nullptr;
  // Copies `count` contiguous elements per step; steps are `stride` apart in memory.
  void (*rows)(const float* from, uint64_t stride, uint64_t steps, uint32_t count, uint32_t width,
               float* to) = nullptr;
  // The same for FLOAT16, converted to FLOAT32.
  void (*half_rows)(const uint16_t* from, uint64_t stride, uint64_t steps, uint32_t count, uint32_t width,
                    float* to) = nullptr;
};

const PanelCopies& FindPanelCopies();

}  // namespace anydml
