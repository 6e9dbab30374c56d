// Conversions of contiguous elements, vectorised if possible.
#pragma once

#include <cstdint>

namespace anydml {

void HalvesToFloats(const uint16_t* from, float* to, uint64_t count);
// Elements 0, 2, ... go to `even`, the others to `odd`.
void SplitNumbers(const uint16_t* from, uint64_t count, float* even, float* odd);
void SplitNumbers(const float* from, uint64_t count, float* even, float* odd);
// To nearest even. NaNs keep the part of their payload that fits.
void FloatsToHalves(const float* from, uint16_t* to, uint64_t count);
// The same with non-temporal stores (see StreamCopy); `to` is aligned to 64 bytes.
void StreamFloatsToHalves(const float* from, uint16_t* to, uint64_t count);
// Adds `bias` and clamps to [low, high]; NaNs become canonical.
void AddAndClip(const float* from, float* to, uint64_t count, float bias, float low, float high);
void AddAndClipToHalves(const float* from, uint16_t* to, uint64_t count, float bias, float low, float high);
// Sign- or zero-extends.
void ToWords(const uint8_t* from, uint32_t* to, uint64_t count);
void ToWords(const int8_t* from, uint32_t* to, uint64_t count);
void ToWords(const uint16_t* from, uint32_t* to, uint64_t count);
void ToWords(const int16_t* from, uint32_t* to, uint64_t count);
// Keeps the low bits.
void FromWords(const uint32_t* from, uint8_t* to, uint64_t count);
void FromWords(const uint32_t* from, uint16_t* to, uint64_t count);
// Truncates and saturates; NaN becomes 0.
void FloatsToIntegers(const float* from, uint8_t* to, uint64_t count);
void FloatsToIntegers(const float* from, int8_t* to, uint64_t count);
void FloatsToIntegers(const float* from, uint16_t* to, uint64_t count);
void FloatsToIntegers(const float* from, int16_t* to, uint64_t count);
void FloatsToIntegers(const float* from, int32_t* to, uint64_t count);

}  // namespace anydml
