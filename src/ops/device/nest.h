// Loop nests as parameters of GPU kernels: every thread computes the offsets of an iteration from its number.
// Plain data, the same for every GPU backend. (constexpr: nvcc compiles it for the device, too.)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ops/common/loop_nest.h"

namespace anydml {

// Division of any 32-bit number by a fixed divisor (at least 1): a multiplication and a shift (Granlund and
// Montgomery).
class FastDivisor {
 public:
  FastDivisor() = default;
  explicit FastDivisor(uint32_t divisor) : divisor_(divisor) {
    shift_ = divisor == 1 ? 0 : std::bit_width(divisor - 1);
    const uint64_t excess = (uint64_t{1} << shift_) - divisor;
    magic_ = static_cast<uint32_t>((excess << 32) / divisor + 1);
  }

  constexpr uint32_t Divide(uint32_t number, uint32_t* remainder) const {
    // the sum has up to 33 bits
    const uint64_t sum = (uint64_t{number} * magic_ >> 32) + number;
    const auto quotient = static_cast<uint32_t>(sum >> shift_);
    *remainder = number - quotient * divisor_;
    return quotient;
  }

  constexpr uint32_t divisor() const { return divisor_; }

 private:
  uint32_t divisor_ = 1;
  uint32_t magic_ = 1;
  uint32_t shift_ = 0;
};

// A LoopNest of fewer than 2^32 iterations.
template <size_t kOperands>
struct DeviceNest {
  struct Loop {
    FastDivisor size;
    uint64_t strides[kOperands];
  };

  uint32_t rank = 0;
  Loop loops[kMaxDimensions] = {};

  DeviceNest() = default;
  explicit DeviceNest(const LoopNest<kOperands>& nest) : rank(nest.rank) {
    for (uint32_t d = 0; d < rank; ++d) {
      loops[d].size = FastDivisor(static_cast<uint32_t>(nest.loops[d].size));
      std::copy_n(nest.loops[d].strides.begin(), kOperands, loops[d].strides);
    }
  }

  // The offsets of iteration `number` in row-major order.
  constexpr void OffsetsOf(uint32_t number, uint64_t (&offsets)[kOperands]) const {
    for (uint64_t& offset : offsets) offset = 0;
    for (uint32_t d = rank; d-- > 0;) {
      uint32_t at = number;
      if (d > 0) number = loops[d].size.Divide(number, &at);
      for (size_t o = 0; o < kOperands; ++o) offsets[o] += at * loops[d].strides[o];
    }
  }
};

}  // namespace anydml
