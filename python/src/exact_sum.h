// Exact sums of FLOAT32 numbers, for sums over chunks that must not depend on how they are cut.
#pragma once

#include <cstdint>
#include <span>

namespace anydml::python {

inline constexpr uint32_t kExactSumDigitBits = 36;

// Adds the numbers to digits, of which digit d counts multiples of 2^(36 * d - 149). Each grows by less than
// 2^40 per call with 2^22 numbers. Infinities and NaNs are skipped; their sum is returned, or 0.
float AddExactly(std::span<const float> numbers, std::span<int64_t> digits);

}  // namespace anydml::python
