// Exact sums of FLOAT32 numbers, for sums over chunks whose result must not depend on the division into
// chunks.
#pragma once

#include <cstdint>
#include <span>

namespace anydml::python {

inline constexpr uint32_t kExactSumDigitBits = 36;

// Adds the numbers to digits; digit d counts multiples of 2^(36 * d - 149). Each digit grows by less than
// 2^40 per call with 2^22 numbers. Infinities and NaNs are skipped; their sum is returned, or 0.
float AddExactly(std::span<const float> numbers, std::span<int64_t> digits);

}  // namespace anydml::python
