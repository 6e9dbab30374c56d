#include "ops/product/outside_taps.h"

#include <cstring>

#include "ops/product/window_rows.h"

namespace anydml {

OutsideTaps::OutsideTaps(const ConvolutionShape& shape) {
  any_ = false;
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    const ConvolutionWindow& w = shape.windows[d];
    sizes_[d] = w.output;
    if (shape.backward) {  // taps between input elements count as outside, too
      all_[d] = w.taps == 1 && w.stride == 1 && w.start_padding == 0 ? Range{0, std::min(w.input, w.reached)}
                                                                     : Range{};
    } else {
      const int64_t reach = int64_t{w.taps - 1} * w.dilation;
      const int64_t last = int64_t{w.input} - 1 + w.start_padding - reach;  // the positions that first taps
                                                                            // see
      const uint64_t begin = (uint64_t{w.start_padding} + w.stride - 1) / w.stride;
      const uint64_t end = last < 0 ? 0 : static_cast<uint64_t>(last) / w.stride + 1;
      all_[d] = {begin, std::max(begin, std::min<uint64_t>(end, w.reached))};
    }
    any_ = any_ || all_[d].begin > 0 || all_[d].end < w.output;
  }
}

bool AreFinite(const float* numbers, uint64_t count) {
  // Added to the magnitude of an infinity or a NaN, this sets the highest bit.
  constexpr uint32_t kMagnitude = 0x7FFFFFFF, kOneExponent = 0x00800000;
  uint32_t reached = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, numbers + i, sizeof(bits));
    reached |= (bits & kMagnitude) + kOneExponent;
  }
  return (reached & ~kMagnitude) == 0;
}

double SumInside(const ConvolutionShape& shape, DataType type, const std::byte* input, uint64_t matrix,
                 uint64_t position, uint64_t step, uint64_t steps, const float* weights) {
  const LoadBlock load = FindLoad(type, Class::kF32);
  uint32_t at[kMaxSpatial];
  for (uint32_t d = kMaxSpatial; d-- > 0; position /= shape.windows[d].output) {
    at[d] = static_cast<uint32_t>(position % shape.windows[d].output);
  }
  double sum = 0;
  for (uint64_t s = 0; s < steps; ++s) {
    const ConvolutionStep of(shape, step + s);
    uint64_t offset = matrix + of.channel * shape.input.channel;
    bool inside = true;
    for (uint32_t d = 0; d < kMaxSpatial && inside; ++d) {
      const int64_t index = InputIndex(shape.windows[d], shape.backward, at[d], of.taps[d]);
      inside = index >= 0;
      offset += static_cast<uint64_t>(index) * shape.input.spatial[d];
    }
    if (!inside) continue;
    float number;
    load(input, {.offset = offset}, &number);
    sum += double{number} * double{weights[s]};
  }
  return sum;
}

}  // namespace anydml
