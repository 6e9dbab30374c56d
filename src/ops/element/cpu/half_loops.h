// Functions of FLOAT16 by instructions that compute with it, where the processor has them: a sum or product
// that is rounded to FLOAT32 and then to FLOAT16 is the one that is rounded at once (24 >= 2 * 11 + 2 bits).
// Included by a file that is compiled for more than the others: nothing of the standard library's but types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

enum class HalfFunction : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,
  kMinimum,
  kClip,
  kRelu,
  // Their results are bytes.
  kEqual,
  kGreater,
  kLess,
  kGreaterOrEqual,
  kLessOrEqual,
};

// Multiples of 8 elements.
struct HalfPiece {
  const uint16_t* sources[2];
  uint32_t steps[2];  // 0: the first 8 elements stand for all
  std::byte* target;
  uint64_t count;
  float low, high;  // of kClip
};
using HalfLoop = void (*)(const HalfPiece& piece);

// Null where the processor has no such instructions.
HalfLoop FindHalfLoop(HalfFunction function);

}  // namespace anydml
